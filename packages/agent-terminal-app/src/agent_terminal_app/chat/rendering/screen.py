"""Where lines go: a pipe, a file or a terminal. The chat only ever adds lines; the terminal keeps them.

While a chat runs, signals end it in an orderly way, and what other code prints becomes lines of the
screen, so that nothing is written over the prompt.

Everything but the answer goes through `Asides`. A command can be typed while the agent speaks, and what it
shows would cut a paragraph in two, so it is kept back until the paragraph that is being streamed has ended,
or nothing more has come for a moment.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Protocol, TextIO

from agent_terminal_app.chat.rendering.text import only_styles, printed
from agent_terminal_app.output import terminal_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Screen(Protocol):
    """Something that shows lines, one below the other.

    Attributes:
        color: Whether styles are wanted.
        is_live: Whether there is a line that changes, for current work.
    """

    color: bool
    is_live: bool

    @property
    def width(self) -> int | None:
        """How many cells fit in a row; None if there is no limit."""

    def line(self, text: str = "") -> None:
        """Show a line."""


class TextScreen:
    """Lines on a stream: a pipe, a file, or a terminal that should not be drawn on.

    Attributes:
        gone: Called when the reader of the pipe has left; nothing is written after that.
    """

    is_live = False

    def __init__(self, stream: TextIO | None = None, *, color: bool = False) -> None:
        self._stream = stream or sys.stdout
        self.color = color
        self.gone: Callable[[], None] = lambda: None

    @property
    def width(self) -> int | None:
        """How many cells fit, if it is a terminal."""
        return terminal_width() if self._stream.isatty() else None

    def line(self, text: str = "") -> None:
        """Write a line and let it be seen at once."""
        shown = "\n".join(only_styles(part, color=self.color) for part in text.split("\n"))
        self._write(f"{shown}\n")

    def sign(self, text: str) -> bool:
        """Write what the user types behind, if it is a terminal; False if it is none."""
        if not self._stream.isatty():
            return False
        self._write(only_styles(text, color=self.color))
        return True

    def _write(self, text: str) -> None:
        encoding = self._stream.encoding or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except BrokenPipeError:
            _write_to_nobody(self._stream)
            self.gone()


def _write_to_nobody(stream: TextIO) -> None:
    """Let a stream go nowhere, so that what is still in it does not fail again at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def wants_color(stream: TextIO, *, plain: bool = False) -> bool:
    """Say whether a stream is a terminal whose owner has not said no to colours."""
    return not plain and not os.environ.get("NO_COLOR") and not is_dumb() and stream.isatty()


def is_dumb() -> bool:
    """Say whether the terminal can do nothing but show lines."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown", "")


_ENDING = ("SIGTERM", "SIGHUP", "SIGINT")
_SIGNALLED = 128
_LONGEST = 10_000


@contextmanager
def on_signals(end: Callable[[int], None]) -> Iterator[None]:
    """While the block lasts, call a function with the exit code when a signal asks the program to end."""
    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    for number in numbers:
        loop.add_signal_handler(number, end, _SIGNALLED + number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class Printed(io.TextIOBase):
    """What anybody prints, as lines of a screen that are safe to show."""

    encoding = "utf-8"

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._open = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Take a piece of text, and show the lines that it finishes."""
        *lines, self._open = (self._open + text).split("\n")
        if len(self._open) > _LONGEST:
            lines, self._open = [*lines, self._open], ""
        for line in lines:
            self._screen.line(printed(line.rstrip("\r")))
        return len(text)

    def end(self) -> None:
        """Show the line that was begun."""
        if self._open:
            self.write("\n")


@contextmanager
def prints_as_lines(screen: Screen) -> Iterator[None]:
    """Show what is printed while the block lasts above the prompt, and not over it."""
    printed_text = Printed(screen)
    with redirect_stdout(printed_text), redirect_stderr(printed_text):
        try:
            yield
        finally:
            printed_text.end()


PATIENCE = 3.0
"""For how many seconds lines wait for more of a paragraph: streams pause for a second now and then."""


class Asides:
    """A screen for everything but the answer itself.

    Args:
        screen: Where all lines go in the end.

    Attributes:
        is_live: Whether there is a line that changes, for current work.
    """

    def __init__(self, screen: Screen) -> None:
        self.is_live = screen.is_live
        self._screen = screen
        self._kept: list[str] = []
        self._is_open = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def color(self) -> bool:
        """Whether styles are wanted."""
        return self._screen.color

    @color.setter
    def color(self, wanted: bool) -> None:
        self._screen.color = wanted

    @property
    def width(self) -> int | None:
        """How many cells fit in a row; None if there is no limit."""
        return self._screen.width

    def line(self, text: str = "") -> None:
        """Show a line, now or when the paragraph has ended."""
        if self._is_open:
            self._kept.append(text)
        else:
            self._screen.line(text)

    def paragraph_begins(self) -> None:
        """Keep lines back: the answer is in the middle of a paragraph."""
        if not self._screen.is_live:
            return
        self._is_open = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self.paragraph_ends)

    def paragraph_ends(self) -> None:
        """Show what was kept back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_open = False
        kept, self._kept = self._kept, []
        for line in kept:
            self._screen.line(line)
