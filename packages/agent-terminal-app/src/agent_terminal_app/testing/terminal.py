"""A program in a terminal of its own: keys go in, a screen comes out.

The program is real, and so is the pseudo terminal; only the glass is made of `pyte`. What is looked at is
what a user would see: lines, cursor, what was scrolled away; and what is left behind at the end.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, Any, Self

import pyte

from agent_terminal_app.testing.launcher import Launched, shared_launcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_PATIENCE = 60.0
_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_HISTORY = 20_000


class Terminal:
    """A program in a terminal.

    Args:
        command: The program and its arguments.
        environment: Its environment.
        folder: Where it runs.
        columns: How wide the terminal is.
        rows: How high it is.
        fresh: Whether a new interpreter is started, and not a fork of one that has loaded its modules; for
            whoever measures the start.

    Attributes:
        process: The program.
        raw: Everything that it has written.
        screen: What is seen of it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path | None = None,
        columns: int = 80,
        rows: int = 24,
        fresh: bool = False,
    ) -> None:
        self._master, self._slave = pty.openpty()
        self._set_size(columns, rows)
        self.before = termios.tcgetattr(self._slave)
        self.raw = b""
        self.screen: Any = pyte.HistoryScreen(columns, rows, history=_HISTORY, ratio=0.5)
        self._stream: Any = pyte.ByteStream(self.screen)
        self._scrolled: list[str] = []
        self._scrolled_width = columns
        own = {**environment, "TERM": environment.get("TERM", "xterm-256color")}
        self.process: subprocess.Popen[bytes] | Launched
        if command[0] == sys.executable and not fresh:
            self.process = shared_launcher().start(
                command[1:], environment=own, folder=folder, handles=[self._slave] * 3, is_terminal=True
            )
            return
        self.process = subprocess.Popen(  # noqa: S603 - what the caller wants to see
            list(command),
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=own,
            cwd=folder,
            start_new_session=True,
            preexec_fn=_own_this_terminal,  # noqa: PLW1509 - no threads are started before
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program, if it has not ended, and give the terminal back."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for handle in (self._master, self._slave):
            if handle >= 0:
                os.close(handle)
        self._master = self._slave = -1

    # What is seen

    @property
    def lines(self) -> list[str]:
        """The lines that are on the screen, without those that are empty at its end."""
        return _trimmed([line.rstrip() for line in self.screen.display])

    @property
    def all_lines(self) -> list[str]:
        """Everything that was shown: what was scrolled away, and the screen."""
        width, top = self.screen.columns, self.screen.history.top
        if self._scrolled_width != width or len(top) < len(self._scrolled):
            self._scrolled, self._scrolled_width = [], width
        # A line that was scrolled away stays as it is, and a long conversation has thousands of them.
        fresh = itertools.islice(top, len(self._scrolled), None)
        self._scrolled += ["".join(row[n].data for n in range(width)).rstrip() for row in fresh]
        return [*self._scrolled, *self.lines]

    @property
    def text(self) -> str:
        """Everything that was shown, as one text."""
        return "\n".join(self.all_lines)

    @property
    def cursor(self) -> tuple[int, int]:
        """The cursor's column and row."""
        return self.screen.cursor.x, self.screen.cursor.y

    @property
    def modes(self) -> set[str]:
        """The private modes that are not as at first; with a minus if they are off that were on."""
        on: set[str] = set()
        for numbers, how in _MODE.findall(self.raw):
            for number in numbers.decode().split(";"):
                usual = number in ("7", "25")
                name = f"-{number}" if usual else number
                (on.add if (how == b"h") != usual else on.discard)(name)
        return on

    @property
    def settings(self) -> list[Any]:
        """How the terminal is set now, as `before` was at the beginning."""
        return termios.tcgetattr(self._slave)

    # What is done

    def type(self, keys: str) -> None:
        """Press keys."""
        data = keys.encode()
        while data:
            _, ready, _ = select.select([], [self._master], [], 0.05)
            if ready:
                data = data[os.write(self._master, data[:1024]) :]
            self.read(0)

    def paste(self, text: str) -> None:
        """Paste a text, as terminals do it for programs that asked for it."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal larger or smaller."""
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """Take the terminal away."""
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1

    # Waiting

    def read(self, seconds: float = 0.05) -> int:
        """Take what the program writes within some seconds, and return how many bytes that were."""
        count = 0
        while self._master >= 0 and select.select([self._master], [], [], seconds if not count else 0)[0]:
            data = os.read(self._master, 65536)
            self.raw += data
            self._stream.feed(data)
            count += len(data)
        return count

    def wait(self, seen: Callable[[], object], what: str = "what was expected") -> None:
        """Wait until something is seen.

        Raises:
            AssertionError: If that takes too long; with the screen.
        """
        until = time.monotonic() + _PATIENCE
        while not seen():
            if time.monotonic() > until:
                raise AssertionError(f"{what} was not seen:\n{self.text}")
            self.read()

    def time_until(self, keys: str, *written: bytes) -> float:
        """Press keys, and return after how many seconds the program has written one of several things.

        Raises:
            AssertionError: If that takes too long.
        """
        self.read(0)
        began, seen = time.monotonic(), b""
        os.write(self._master, keys.encode())
        while not any(one in seen for one in written):
            ready = select.select([self._master], [], [], _PATIENCE)[0]
            if not ready:
                raise AssertionError(f"{written!r} was not written")
            seen += os.read(self._master, 65536)
        took = time.monotonic() - began
        self.raw += seen
        self._stream.feed(seen)
        return took

    def expect(self, text: str) -> None:
        """Wait until a text is on the screen, or was."""
        self.wait(lambda: text in self.text, repr(text))

    def expect_line(self, pattern: str) -> None:
        """Wait until a line of the screen begins with what a pattern describes."""
        self.wait(lambda: any(re.match(pattern, line) for line in self.lines), repr(pattern))

    def until_quiet(self, seconds: float = 0.3) -> None:
        """Wait until the program has written nothing for some seconds."""
        while self.read(seconds):
            pass

    def end(self) -> int:
        """Wait until the program has ended, and return its exit code."""
        until = time.monotonic() + _PATIENCE
        while self.process.poll() is None:
            if time.monotonic() > until:
                raise AssertionError(f"the program has not ended:\n{self.text}")
            self.read()
        self.read(0)
        return self.process.wait()

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.send_signal(signal.SIGWINCH)


def _own_this_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _trimmed(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    return lines
