"""A house to break out of: a home with secrets, a workspace in it, a process, sockets and a server of others.

Nothing in it reaches further than this machine's loopback, and everything is removed afterwards.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import pytest

from agent_plugin_kit.sandbox import Sandbox, SandboxSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_plugin_kit.sandbox import Confined

SECRET = "TOP" + "SECRET"
SECONDS = 60


@pytest.fixture(scope="module")
def open_house() -> Iterator[House]:
    built = House.build()
    with built.stack:
        yield built


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    built = House.build()
    patch = pytest.MonkeyPatch()
    patch.setenv("HOME", str(built.home))
    with built.stack:
        yield built
        patch.undo()


@dataclass
class House:
    """Where commands are run, and what they must leave alone."""

    home: Path
    secret: str = SECRET
    mark: str = field(default_factory=lambda: token_hex(6))
    stack: ExitStack = field(default_factory=ExitStack)
    datagrams: list[bytes] = field(default_factory=list)
    connections: list[str] = field(default_factory=list)

    @classmethod
    def build(cls) -> House:
        base = _home_that_is_seen() / ".cache"
        base.mkdir(parents=True, exist_ok=True)
        house = cls(Path(tempfile.mkdtemp(prefix="sandbox-house-", dir=base)))
        house.stack.callback(shutil.rmtree, house.home, ignore_errors=True)
        house.host_tmp = Path(tempfile.gettempdir()) / f"house-{house.mark}"
        house.stack.callback(house.host_tmp.unlink, missing_ok=True)
        house.shared_memory = Path("/dev/shm") / f"house-{house.mark}"
        house.stack.callback(house.shared_memory.unlink, missing_ok=True)
        house.furnish()
        subprocess.run(["git", "init", "-q", str(house.work)], check=True, timeout=SECONDS)
        house._listen()
        victim = subprocess.Popen(["sleep", "600"], env={**os.environ, "HELD": SECRET}, cwd=house.home)
        house.stack.callback(victim.wait)
        house.stack.callback(victim.kill)
        house.victim = victim
        house.sandbox = house.stack.enter_context(_closing(Sandbox))
        return house

    def furnish(self) -> None:
        """Put everything back that a command may have broken."""
        for name, text in {
            ".ssh/id_ed25519": SECRET,
            ".config/agent/secrets.json": SECRET,
            ".bashrc": "",
            "outside/file": "as it was",
            "work/.env": SECRET,
            "work/sub/.env.local": SECRET,
            "work/.agent/config.toml": "",
            "work/.vscode/tasks.json": "{}",
        }.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.host_tmp.write_text(SECRET)
        with suppress(OSError):
            self.shared_memory.write_text(SECRET)

    victim: Any = None
    host_tmp: Path = Path()
    shared_memory: Path = Path()
    sandbox: Any = None

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def outside(self) -> Path:
        return self.home / "outside"

    def _listen(self) -> None:
        self.tcp = self._server(socket.create_server(("127.0.0.1", 0)))
        self.path_socket = self._server(_bound(socket.AF_UNIX, str(self.home / "service.sock")))
        self.abstract = self._server(_bound(socket.AF_UNIX, f"\0house-{self.mark}"))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.stack.callback(self.udp.close)
        threading.Thread(target=self._hear, daemon=True).start()

    def _server(self, listener: socket.socket) -> socket.socket:
        self.stack.callback(listener.close)
        return listener

    def _hear(self) -> None:
        with suppress(OSError):
            while True:
                self.datagrams.append(self.udp.recv(100))

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "OUT": str(self.outside),
            "WORK": str(self.work),
            "SECRET": SECRET,
            "VICTIM": str(self.victim.pid),
            "PORT": str(self.tcp.getsockname()[1]),
            "UDP": str(self.udp.getsockname()[1]),
            "SOCKET": str(self.home / "service.sock"),
            "MARK": self.mark,
            "HOST_TMP": str(self.host_tmp),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    def run(
        self, command: str, config: dict[str, Any] | None = None, *, sandbox: Sandbox | None = None
    ) -> str:
        """Run a command in the sandbox, and return what it printed."""
        settings = SandboxSettings.read(
            {"protected_paths": [str(self.home / ".config" / "agent")], **(config or {})}
        )
        confined = (sandbox or self.sandbox).confine(
            ["bash", "--noprofile", "--norc", "-c", command],
            settings,
            roots=[self.work],
            folder=self.work,
            env=self.variables,
        )
        return self.start(confined)

    def start(self, confined: Confined) -> str:
        """Run a command that is in a sandbox, and return what it printed."""
        try:
            return _run(confined.command, env=confined.env, pass_fds=confined.descriptors, cwd=self.work)
        finally:
            confined.started()
            confined.ended()

    def run_freely(self, command: str) -> str:
        """Run a command without the sandbox."""
        return _run(["bash", "--noprofile", "--norc", "-c", command], env=self.variables, cwd=self.work)


def _run(command: list[str], **how: Any) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        timeout=SECONDS,
        check=False,
        **how,
    )
    printed: str = done.stdout.decode(errors="replace")
    return printed


def _bound(family: int, address: str) -> socket.socket:
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen(8)
    return listener


class _closing:  # noqa: N801 - reads as a statement
    def __init__(self, make: Any) -> None:
        self._made = make()

    def __enter__(self) -> Any:
        return self._made

    def __exit__(self, *_: object) -> None:
        self._made.close()


def _home_that_is_seen() -> Path:
    """Return a home outside of /tmp: that is private in a sandbox, and would hide more than is meant."""
    for home in (Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)):
        is_private = any(home.resolve().is_relative_to(place) for place in ("/tmp", "/var/tmp"))
        if not is_private and os.access(home, os.W_OK):
            return home
    pytest.skip("needs a home that can be written and is not below /tmp")
