"""Questions to the user. A dialogue is written once, against the four methods of `Ask`.

`LineAsk` asks in plain lines, with nothing that moves, for pipes and for users who prefer it. `hold` runs a
dialogue to its end: a signal that ends the program ends the dialogue first, so that the terminal is restored.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from agent_terminal_app.errors import Exit
from agent_terminal_app.output import is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence


class Ask(Protocol):
    """Asks the user. None is the answer of a user who wants to leave."""

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        """Ask for one of some options, and return its number, from 0; the first is the default."""

    async def secret(self, prompt: str) -> str | None:
        """Ask for a text that is not shown."""

    async def line(self, prompt: str) -> str | None:
        """Ask for a line of text."""

    def tell(self, text: str) -> None:
        """Say something that needs no answer."""


MOST_SHOWN = 20
"""How many things of a long list are shown at once."""
_GAP = "  "


async def choose_by_typing(
    title: str,
    options: Sequence[str],
    *,
    tell: Callable[[str], None],
    read: Callable[[], Awaitable[str | None]],
) -> int | None:
    """Show a list, read numbers or parts of names until one option matches, and return its number.

    What follows two spaces in an option describes it, and is not part of its name.
    """
    tell("\n".join([title, *listed(options)]))
    while (typed := await read()) is not None:
        found = matching(options, typed)
        if len(found) == 1:
            return found[0]
        tell("\n".join(listed(options, found)) if found else f"No option matches {typed.strip()!r}.")
    return None


def listed(options: Sequence[str], numbers: Sequence[int] | None = None) -> list[str]:
    """Return the lines of a list, numbered from 1; of a long one the beginning."""
    chosen = range(len(options)) if numbers is None else numbers
    lines = [f"  {number + 1:>2}  {options[number]}" for number in chosen[:MOST_SHOWN]]
    more = len(chosen) - MOST_SHOWN
    return lines if more <= 0 else [*lines, f"  and {more} more: type a part of the name"]


def matching(options: Sequence[str], typed: str) -> list[int]:
    """Return the numbers of the options that match what was typed.

    Nothing typed means the first. Then a number or a whole name counts, and the beginning of one alone;
    anything else matches the options that have all its words.
    """
    wanted = typed.strip().casefold()
    if not wanted:
        return [0] if options else []
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(options):
        return [int(wanted) - 1]
    folded = [option.casefold() for option in options]
    named = [number for number, option in enumerate(folded) if wanted in (option, option.partition(_GAP)[0])]
    begun = [number for number, option in enumerate(folded) if option.startswith(wanted)]
    words = wanted.split()
    return (
        named[:1]
        or (begun if len(begun) == 1 else [])
        or [number for number, option in enumerate(folded) if all(word in option for word in words)]
    )


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
    """Reads lines of a stream on the event loop, so that a signal gets through while it waits.

    A thread that waits for a line could not be ended, and would keep the program from exiting.
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
    except PermissionError:  # a regular file, which is always ready
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)


@contextmanager
def unseen(source: TextIO) -> Iterator[None]:
    """Keep a terminal from showing what is typed."""
    if not is_terminal(source):
        yield
        return

    before = termios.tcgetattr(source)
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    termios.tcsetattr(source, termios.TCSAFLUSH, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(source, termios.TCSAFLUSH, before)


T = TypeVar("T")

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_AFTER_A_SIGNAL = 128


def open_ask(*, plain: bool = False) -> Ask:
    """Return an `Ask`: with keys and completion if the terminal can do that and the user wants it."""
    moves = is_terminal(sys.stdin) and is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if plain or not moves:
        return LineAsk()
    from agent_terminal_app.first_run.terminal import TerminalAsk

    return TerminalAsk()


def hold(dialogue: Callable[[], Awaitable[T]]) -> T:
    """Run a dialogue to its end.

    Raises:
        SystemExit: If the user interrupts it, or a signal ends it.
    """
    try:
        return asyncio.run(_heeding(dialogue))
    except KeyboardInterrupt:
        raise SystemExit(Exit.INTERRUPTED) from None


async def _heeding(dialogue: Callable[[], Awaitable[T]]) -> T:
    """Let signals cancel a dialogue; a signal that was ignored when the program started stays ignored."""
    loop, came = asyncio.get_running_loop(), [0]
    task = asyncio.ensure_future(dialogue())

    def end(number: int) -> None:
        came.append(number)
        task.cancel()

    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if came[-1]:
            raise SystemExit(_AFTER_A_SIGNAL + came[-1]) from None
        raise
