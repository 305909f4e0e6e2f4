"""Where lines go. The chat only ever adds lines; the terminal keeps them."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Protocol, TextIO

from agent_terminal_app.chat.text import only_styles

if TYPE_CHECKING:
    from collections.abc import Callable

_USUAL = 80


class Screen(Protocol):
    """Something that shows lines, one below the other.

    Attributes:
        color: Whether styles are wanted.
        is_live: Whether there is a line that changes for what goes on now.
    """

    color: bool
    is_live: bool

    @property
    def width(self) -> int | None:
        """How many cells fit beside each other; None if that does not matter."""

    def line(self, text: str = "") -> None:
        """Show a line."""


class TextScreen:
    """Lines on a stream: a pipe, a file, or a terminal that shall not be drawn on.

    Attributes:
        gone: Called when whoever read the lines has left; nothing is written any more then.
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
        """Write what a person types behind, if it is a terminal; False if it is none."""
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


def terminal_width() -> int:
    """Return how many cells fit into a line of the terminal, as of now."""
    stdout = sys.__stdout__  # the terminal itself: what is printed may be redirected meanwhile
    try:
        return os.get_terminal_size(1 if stdout is None else stdout.fileno()).columns or _USUAL
    except (OSError, ValueError):  # it may be closed, or no terminal
        return shutil.get_terminal_size((_USUAL, 24)).columns
