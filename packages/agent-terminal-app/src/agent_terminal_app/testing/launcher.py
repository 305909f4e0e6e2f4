"""Programs that start quickly: forked from a process that has loaded the modules of `agent` already.

A new interpreter needs about a second for its imports, a fork a few milliseconds. The program is a process of
its own all the same, with its own environment, folder, session and streams; only what happens at import is
shared. So this is for tests of what a program does. Whoever measures or tests the start itself, or which
modules it loads, starts a new interpreter.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PRELOADED = (
    "agent_app.application",
    "agent_app.operations",
    "agent_app.run",
    "agent_app.store.sql",
    "agent_app.transfer",
    "agent_core.testing",
    "agent_runtime.runtime",
    "agent_terminal_app.application",
    "agent_terminal_app.chat.conversation",
    "agent_terminal_app.chat.plain",
    "agent_terminal_app.chat.prompt.prompt",
    "agent_terminal_app.cli",
    "agent_terminal_app.commands.chat",
    "agent_terminal_app.commands.doctor",
    "agent_terminal_app.commands.run",
    "agent_terminal_app.commands.sessions",
    "agent_terminal_app.demo",
    "pygments.lexers.python",
)
_GROUPS = ("providers", "extensions", "features", "tools", "applications")
_LENGTH = 4
_MOST_HANDLES = 3
_LOOK_AGAIN = 0.005
_PATIENCE = 120.0
_STDERR = 2


class Launched:
    """A program that was launched; has what is needed of `subprocess.Popen`.

    Attributes:
        pid: Its process id.
        returncode: Its exit code; negative if a signal ended it, None while it runs.
    """

    def __init__(self, launcher: Launcher, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._launcher = launcher

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        if self.returncode is None:
            self.returncode = self._launcher.exit_code(self.pid)
        return self.returncode

    def wait(self, timeout: float = _PATIENCE) -> int:
        """Wait until the program has ended, and return its exit code.

        Raises:
            subprocess.TimeoutExpired: If that takes too long.
        """
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self._launcher.wait_for_news(_LOOK_AGAIN)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send the program a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End the program."""
        self.send_signal(signal.SIGKILL)


class Launcher:
    """Starts Python programs from a process with loaded modules; that process ends with this one."""

    def __init__(self) -> None:
        self._connection, theirs = socket.socketpair()
        self._exit_codes: dict[int, int] = {}
        self._pids: list[int] = []
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()

    def close(self) -> None:
        """End the process with the loaded modules; what was launched goes on."""
        self._connection.close()
        self._process.terminate()
        self._process.wait()

    def start(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path | None,
        handles: Sequence[int],
        is_terminal: bool = False,
    ) -> Launched:
        """Start a program.

        Args:
            arguments: What follows `python`: `-m` and a module, or a file; and its own arguments.
            environment: Its environment.
            folder: Where it runs.
            handles: Its stdin, stdout and stderr.
            is_terminal: Whether they are a terminal, which becomes its controlling terminal.
        """
        order = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder or Path.cwd()),
            "is_terminal": is_terminal,
        }
        content = json.dumps(order).encode()
        socket.send_fds(self._connection, [len(content).to_bytes(_LENGTH, "big")], list(handles))
        self._connection.sendall(content)
        while not self._pids:
            self.wait_for_news(_PATIENCE)
        return Launched(self, self._pids.pop())

    def run(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path | None,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, and return its exit code and what it printed."""
        files = [tempfile.TemporaryFile("w+", encoding="utf-8", newline="") for _ in range(3)]  # noqa: SIM115
        try:
            files[0].write(stdin)
            files[0].seek(0)
            handles = [file.fileno() for file in files]
            launched = self.start(arguments, environment=environment, folder=folder, handles=handles)
            code = launched.wait()
            printed = []
            for file in files[1:]:
                file.seek(0)
                printed.append(file.read())
            return subprocess.CompletedProcess(list(arguments), code, *printed)
        finally:
            for file in files:
                file.close()

    def exit_code(self, pid: int) -> int | None:
        """Return how a program has ended; None if it has not, as far as is known."""
        self.wait_for_news(0)
        return self._exit_codes.pop(pid, None)

    def wait_for_news(self, seconds: float) -> None:
        """Take what the other process reports, and wait for it if there is nothing yet.

        Raises:
            RuntimeError: If it has ended.
        """
        while select.select([self._connection], [], [], seconds)[0]:
            news, _handles = _receive(self._connection)
            if news is None:
                raise RuntimeError("the process that starts programs has ended")
            if "code" in news:
                self._exit_codes[news["pid"]] = news["code"]
            else:
                self._pids.append(news["pid"])
            seconds = 0.0


@cache
def shared_launcher() -> Launcher:
    """Return the launcher of this process; it ends at exit."""
    launcher = Launcher()
    atexit.register(launcher.close)
    return launcher


def _send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    content = json.dumps(message).encode()
    connection.sendall(len(content).to_bytes(_LENGTH, "big") + content)


def _receive(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next message and the handles that came with it; None if the connection was closed."""
    begun, handles, _flags, _address = socket.recv_fds(connection, _LENGTH, _MOST_HANDLES)
    if not begun:
        return None, handles
    length = int.from_bytes(begun + _read(connection, _LENGTH - len(begun)), "big")
    message: dict[str, Any] = json.loads(_read(connection, length))
    return message, handles


def _read(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        piece = connection.recv(count - len(content))
        if not piece:
            raise EOFError("the connection was closed within a message")
        content += piece
    return content


# In the other process


class _Order(NamedTuple):
    """What a forked process should become."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    is_terminal: bool


def _preload() -> None:
    for name in _PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    with suppress(ImportError):
        importlib.import_module("agent_terminal_app.chat.commands.registry").load_commands()
    for group in _GROUPS:
        for point in entry_points(group=f"agent_platform.{group}"):
            with suppress(Exception):  # a plugin that cannot be loaded is reported by the program itself
                point.load()
    gc.collect()
    gc.freeze()


def _serve(connection: socket.socket) -> tuple[_Order, list[int]] | None:
    """Fork for each order; return the order in the forked process, and None here when there are no more."""
    running: set[int] = set()
    while True:
        if select.select([connection], [], [], _LOOK_AGAIN if running else None)[0]:
            message, handles = _receive(connection)
            if message is None:
                return None
            pid = os.fork()
            if pid == 0:
                connection.close()
                return _Order(**message), handles
            running.add(pid)
            for handle in handles:
                os.close(handle)
            _send(connection, {"pid": pid})
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            running.discard(ended[0])
            _send(connection, {"pid": ended[0], "code": os.waitstatus_to_exitcode(ended[1])})


def _become(order: _Order, handles: list[int]) -> None:
    """Turn this process into the program, as a new interpreter would begin it."""
    os.setsid()
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        os.close(handle)
    if order.is_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    for name, stream in (
        ("stdin", _stream(0, "r")),
        ("stdout", _stream(1, "w")),
        ("stderr", _stream(_STDERR, "w", errors="backslashreplace")),
    ):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    more = [one for one in order.environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:0] = [one for one in more if one not in sys.path]
    importlib.invalidate_caches()


def _stream(number: int, mode: str, errors: str = "strict") -> Any:
    raw = io.FileIO(number, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    line_buffering = mode == "w" and (os.isatty(number) or number == _STDERR)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=line_buffering)


def _run(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    """Load the modules, and fork whenever a program is wanted."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    _preload()
    job = _serve(connection)
    if job is not None:
        _become(*job)
        _run(job[0].arguments)


if __name__ == "__main__":
    main()
