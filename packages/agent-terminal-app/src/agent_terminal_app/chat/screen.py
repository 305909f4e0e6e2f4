"""Where lines go. The chat only ever adds lines; the terminal keeps them."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Protocol, TextIO


class Screen(Protocol):
    """Something that shows lines, one below the other.

    Attributes:
        color: Whether styles are wanted.
    """

    color: bool

    @property
    def width(self) -> int | None:
        """How many characters fit beside each other; None if that does not matter."""

    def line(self, text: str = "") -> None:
        """Show a line."""


class TextScreen:
    """Lines on a stream: a pipe, a file, or a terminal that shall not be drawn on."""

    def __init__(self, stream: TextIO | None = None, *, color: bool = False) -> None:
        self._stream = stream or sys.stdout
        self.color = color

    @property
    def width(self) -> int | None:
        """How many characters fit, if it is a terminal."""
        return terminal_width() if self._stream.isatty() else None

    def line(self, text: str = "") -> None:
        """Write a line and let it be seen at once."""
        self._stream.write(f"{text}\n")
        self._stream.flush()


def wants_color(stream: TextIO, *, plain: bool = False) -> bool:
    """Say whether a stream is a terminal whose owner has not said no to colours."""
    return (
        not plain and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()
    )


def terminal_width() -> int:
    """Return how many characters fit into a line of the terminal."""
    return shutil.get_terminal_size().columns
