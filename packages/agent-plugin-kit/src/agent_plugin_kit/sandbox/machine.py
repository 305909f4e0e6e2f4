"""The sandbox that this machine has, and commands that are put into it.

A `Sandbox` belongs to whoever starts programs: a tool plugin, a front end. It turns a command into one that
confines itself (`Sandbox.confine`), so it makes no difference whether that is then started by `subprocess`,
by asyncio or by a library. It owns the private temporary folders, one for each session, and the proxies.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from agent_plugin_kit.sandbox import bridge
from agent_plugin_kit.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from agent_plugin_kit.sandbox.landlock import Landlock, find_landlock
from agent_plugin_kit.sandbox.network import PORT, Host, Proxy, proxy_variables
from agent_plugin_kit.sandbox.profile import Profile, SandboxSettings
from agent_plugin_kit.sandbox.seatbelt import Seatbelt, find_seatbelt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Way = Bubblewrap | Landlock | Seatbelt
# What leads to programs outside, which would act for the command; their sockets are hidden as well.
_LEADS_OUT: Final = (
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DOCKER_HOST", "TMUX", "TMUX_PANE", "SESSION_MANAGER",
    "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE",
    "GIT_ASKPASS", "SSH_ASKPASS", "KITTY_LISTEN_ON", "NVIM", "EMACS_SERVER_FILE",
)  # fmt: skip


class NoSandbox(Exception):
    """A command must run in a sandbox and cannot; the text says why, and what would help."""


@lru_cache(maxsize=1)
def find_way() -> Way | str:
    """Return how this machine confines programs, or else why it cannot; tried out once."""
    if sys.platform == "darwin":
        return find_seatbelt()
    if sys.platform != "linux":
        return f"there is no sandbox for {sys.platform}"
    first = find_bubblewrap()
    if isinstance(first, Bubblewrap):
        return first
    second = find_landlock()
    return second if isinstance(second, Landlock) else f"{first}; {second}"


def describe(settings: SandboxSettings) -> str:
    """Return in one sentence what confines programs under these settings."""
    if settings.mode == "off":
        return "The sandbox is off: programs run with your rights."
    way = find_way()
    if isinstance(way, str):
        return f"This machine has no sandbox, so programs run with your rights: {way}."
    return f"Programs run in a sandbox ({way.name}, {settings.mode})."


@dataclass(frozen=True, slots=True)
class Confined:
    """A command in the sandbox, ready to be started.

    Attributes:
        command: The program and its arguments.
        env: All of its variables.
        descriptors: What it must inherit; `started` closes them here.
        profile: What it may do.
        proxy: What connects it to hosts, if any are allowed.
        is_tree: Whether everything that it starts ends with it.
    """

    command: list[str]
    env: dict[str, str]
    descriptors: tuple[int, ...]
    profile: Profile
    proxy: Proxy | None
    is_tree: bool
    _folder: Path | None = field(default=None, repr=False)

    def started(self) -> None:
        """Close what only the command needs; call it once it was started, or could not be."""
        for descriptor in self.descriptors:
            with suppress(OSError):
                os.close(descriptor)

    def ended(self) -> None:
        """Close the proxy; call it when the command has ended."""
        if self.proxy is not None:
            self.proxy.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class Sandbox:
    """Puts commands into the sandbox of this machine.

    Args:
        way: How; by default what the machine has.
    """

    def __init__(self, way: Way | str | None = None) -> None:
        self._given = way
        self._lock = threading.Lock()
        self._home: Path | None = None
        self._temporary: dict[str, Path] = {}

    @property
    def way(self) -> Way | str:
        """How programs are confined, or why they cannot be."""
        return find_way() if self._given is None else self._given

    @property
    def is_complete(self) -> bool:
        """Whether a confined command has no effect beyond the sandbox, nor plants one for later.

        Landlock cannot keep files inside a workspace from being changed, so git hooks are open to it.
        """
        return isinstance(self.way, (Bubblewrap, Seatbelt))

    def confines(self, settings: SandboxSettings) -> bool:
        """Say whether commands under these settings are confined.

        Raises:
            NoSandbox: If they must be, and cannot be.
        """
        if settings.mode == "off":
            return False
        if not isinstance(self.way, str):
            return True
        if settings.mode == "strict":
            raise NoSandbox(f'sandbox = "strict" needs a sandbox, and there is none: {self.way}')
        return False

    def confine(
        self,
        command: Sequence[str],
        settings: SandboxSettings,
        *,
        roots: Sequence[Path],
        folder: Path,
        env: Mapping[str, str],
        owner: str = "",
        hosts: Sequence[str] = (),
        visible: Sequence[Path] = (),
    ) -> Confined:
        """Return a command that runs in the sandbox.

        Args:
            command: The program and its arguments.
            settings: What it may do.
            roots: The folders of the workspace, which it may write.
            folder: Where it runs.
            env: Its variables; those that lead out of the sandbox are left out.
            owner: Who shares a temporary folder: the id of a session.
            hosts: What it may reach besides the hosts of the settings.
            visible: Files to show it although they are in a place that it has for itself, such as `/tmp`.

        Raises:
            NoSandbox: If it cannot be confined.
            ValueError: If a host or a root cannot be used.
        """
        way = self.way
        if isinstance(way, str):
            raise NoSandbox(way)
        profile = Profile.of(settings, roots, self._temporary_of(owner), hosts)
        if profile.strict and hosts:
            raise NoSandbox('sandbox = "strict" allows no host but those of the setting sandbox_hosts')
        for host in profile.hosts:
            Host.read(host)
        variables = {name: text for name, text in env.items() if name not in _LEADS_OUT}
        variables |= _writable_places(profile, isinstance(way, Bubblewrap))
        match way:
            case Bubblewrap():
                # Programs of our own Python, and servers that run on it, must find its packages.
                python = Path(sys.prefix), Path(sys.base_prefix)
                return self._in_bubblewrap(way, command, profile, folder, variables, (*visible, *python))
            case Landlock():
                if profile.hosts:
                    raise NoSandbox(
                        f"{', '.join(profile.hosts)}: no host can be reached in the sandbox of this machine "
                        "(Landlock); install bubblewrap, or run the command outside the sandbox"
                    )
                return Confined(way.arguments(profile, command), variables, (), profile, None, is_tree=False)
            case Seatbelt():
                proxy = Proxy(None, profile.hosts) if profile.hosts else None
                port = None if proxy is None else proxy.port
                variables |= {} if port is None else proxy_variables(port)
                made = way.arguments(profile, command, port)
                return Confined(made, variables, (), profile, proxy, is_tree=False)

    def _in_bubblewrap(
        self,
        way: Bubblewrap,
        command: Sequence[str],
        profile: Profile,
        folder: Path,
        env: dict[str, str],
        visible: Sequence[Path],
    ) -> Confined:
        proxy = None
        marks = shared = self._own() / f"run-{token_hex(8)}"
        shared.mkdir(mode=0o700)
        if profile.hosts:
            shared = marks / "net"
            shared.mkdir(mode=0o700)
            visible = (*visible, shared)
            proxy = Proxy(shared / "proxy", profile.hosts)
            env = {**env, **proxy_variables(PORT)}
            script = Path(bridge.__file__).read_text(encoding="utf-8")
            (shared / "bridge.py").write_text(script, encoding="utf-8")
            command = [
                _python(),
                "-I",
                "-S",
                str(shared / "bridge.py"),
                str(PORT),
                str(shared / "proxy"),
                *command,
            ]
        try:
            made, opened = way.arguments(profile, command, folder, self._nothing(), marks, visible)
        except BaseException:
            if proxy is not None:
                proxy.close()
            raise
        return Confined(made, env, tuple(opened), profile, proxy, is_tree=True, _folder=marks)

    def close(self) -> None:
        """Remove the private folders."""
        with self._lock:
            home, self._home = self._home, None
            self._temporary.clear()
        if home is not None:
            _remove(home)

    def forget(self, owner: str) -> None:
        """Remove the temporary folder of a session."""
        with self._lock:
            folder = self._temporary.pop(owner, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _own(self) -> Path:
        with self._lock:
            if self._home is None:
                self._home = Path(tempfile.mkdtemp(prefix="agent-sandbox-"))
                weakref.finalize(self, _remove, self._home)
                nothing = self._home / "nothing"
                nothing.mkdir()
                (nothing / "file").touch(mode=0)
                (nothing / "folder").mkdir(mode=0)
                (nothing / "folder").chmod(0)
            return self._home

    def _nothing(self) -> Path:
        return self._own() / "nothing"

    def _temporary_of(self, owner: str) -> Path:
        home = self._own()
        with self._lock:
            if owner not in self._temporary:
                folder = home / f"tmp-{token_hex(8)}"
                folder.mkdir(mode=0o700)
                self._temporary[owner] = folder
            return self._temporary[owner]


def _remove(home: Path) -> None:
    with suppress(OSError):
        (home / "nothing" / "folder").chmod(0o700)
    shutil.rmtree(home, ignore_errors=True)


def _writable_places(profile: Profile, is_mounted: bool) -> dict[str, str]:  # noqa: FBT001
    """Return variables that lead programs to places that they may write."""
    temporary = "/tmp" if is_mounted else str(profile.temporary)  # noqa: S108 - the command's own
    return {
        "TMPDIR": temporary,
        "XDG_CACHE_HOME": f"{temporary}/.cache",
        "npm_config_cache": f"{temporary}/.npm",
    }


def _python() -> str:
    """Return a Python that a sandbox can see; only the standard library is needed of it."""
    return shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin") or os.path.realpath(sys.executable)
