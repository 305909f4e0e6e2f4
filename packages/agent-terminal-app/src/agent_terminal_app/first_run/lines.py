"""Asking in plain lines: a question, an answer, and nothing that moves. For pipes, and for who likes it."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TextIO

from agent_terminal_app.first_run.asking import choose_by_typing
from agent_terminal_app.tables import is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHOICE = "Number or name (Enter: 1): "
_BLOCK = 4_096


class LineAsk:
    """Asks on stderr and reads from a stream."""

    def __init__(self, source: TextIO | None = None) -> None:
        self._source = source or sys.stdin
        self._lines = LineReader(self._source)

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        """Show a list and read a number, or a part of a name."""
        return await choose_by_typing(title, options, tell=self.tell, read=partial(self.line, _CHOICE))

    async def secret(self, prompt: str) -> str | None:
        """Read a line without showing it."""
        with unseen(self._source):
            typed = await self.line(prompt)
        if is_terminal(self._source):
            self.tell("")  # the line break was not shown either
        return typed

    async def line(self, prompt: str) -> str | None:
        """Read a line; None at the end of the stream."""
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return await self._lines.read()

    def tell(self, text: str) -> None:
        """Write lines that are safe to show."""
        say(text)


class LineReader:
    """Reads lines of a stream on the event loop, so that a signal gets through while nobody types.

    A thread that waits for a line could not be ended, and would hold the program up when it wants to leave.
    """

    def __init__(self, source: TextIO | None) -> None:
        self._file = None if source is None else source.fileno()
        self._unread = b""

    async def read(self) -> str | None:
        """Return the next line without its end, or None if there is none."""
        while self._file is not None and b"\n" not in self._unread:
            await _until_readable(self._file)
            more = os.read(self._file, _BLOCK)
            self._unread += more
            if not more:
                break
        if not self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")


async def _until_readable(file: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(file, ready.set)
    except PermissionError:  # a file on a disk: it never lets anybody wait
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)


@contextmanager
def unseen(source: TextIO) -> Iterator[None]:
    """Let a terminal not show what is typed while the block lasts."""
    if not is_terminal(source):
        yield
        return
    import termios

    before = termios.tcgetattr(source)
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    termios.tcsetattr(source, termios.TCSAFLUSH, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(source, termios.TCSAFLUSH, before)
