"""The terminal around a chat: signals end it in order, and nobody else writes over the prompt."""

from __future__ import annotations

import asyncio
import io
import signal
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

from agent_terminal_app.chat.text import printed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_terminal_app.chat.screen import Screen

_ENDING = ("SIGTERM", "SIGHUP", "SIGINT")
_SIGNALLED = 128
_LONGEST = 10_000


@contextmanager
def on_signals(end: Callable[[int], None]) -> Iterator[None]:
    """Call a function with an exit code when the program is told to end, while the block lasts."""
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
        """Say yes."""
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
