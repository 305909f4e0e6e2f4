"""A chat in lines: for pipes, for terminals that should not be drawn on, for screen readers.

Lines are read in a thread that does not delay the exit. Ctrl+C arrives as a signal here: it stops the
current work; if there is none, a second one ends the chat, and without a terminal the first one does.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, TextIO

from agent_terminal_app.chat.loop import in_own_thread, talk_through
from agent_terminal_app.chat.rendering.screen import TextScreen, on_signals
from agent_terminal_app.first_run.ask import unseen
from agent_terminal_app.output import say, this_command

if TYPE_CHECKING:
    from agent_terminal_app.chat.loop import Chat


def line_waits(stream: TextIO) -> bool:
    """Say whether a whole line was typed already; only a terminal can tell."""
    if not stream.isatty() or sys.platform == "win32":
        return False
    return bool(select([stream], [], [], 0)[0])


def drop_half_a_line(stream: TextIO) -> None:
    """Forget what was begun and not sent yet; other streams than terminals keep everything."""
    if not stream.isatty() or sys.platform == "win32":
        return
    termios.tcflush(stream, termios.TCIFLUSH)


NOTHING_TO_READ = (
    "Nothing came on standard input, and it is not a terminal. To talk, run this in a terminal.\n"
    "For one question:\n"
    '  {agent} run "What does this project do?"\n'
    "To ask line by line: printf 'Hello.\\n' | {agent} chat"
)
_INTERRUPTED = 130
_AGAIN = 2.0
"""Within how many seconds a second Ctrl+C leaves."""
_FAILED = 1
_PIECE = 65_536
_SIGN, _SIGN_OF_A_QUESTION = "> ", "your answer> "


async def run_in_lines(chat: Chat, stream: TextIO | None = None, first: str = "") -> int:
    """Take lines from a stream until it ends, or the user leaves; return the exit code.

    Args:
        first: What is said before the first line.

    Raises:
        AgentError: If the application cannot be opened.
    """
    opened = stream or sys.stdin or Path(os.devnull).open()  # noqa: ASYNC230, SIM115
    sitting = _Sitting(chat, opened, first)
    if isinstance(chat.screen, TextScreen):
        chat.screen.gone = sitting.reader_left
    with on_signals(sitting.end):
        await sitting.talk()
    return sitting.code


class _Sitting:
    def __init__(self, chat: Chat, stream: TextIO, first: str) -> None:
        self.code = 0
        self._first = first
        self._asked_at = -_AGAIN
        self._chat = chat
        self._stream = stream
        self._lines = _Lines(stream)
        self._talking: asyncio.Task[None] | None = None
        self._is_signed = False

    async def talk(self) -> None:
        self._talking = asyncio.create_task(talk_through(self._chat, self._next_line, self._first))
        with suppress(asyncio.CancelledError):
            await self._talking
        if self._is_signed:  # nobody has ended this line by Enter
            self._chat.screen.line()
        if not self._lines.any and not self._first and not self._stream.isatty() and not self.code:
            say(NOTHING_TO_READ.format(agent=this_command()))
        if not self._stream.isatty():  # a script wants to know
            self.code = self.code or self._chat.failure

    def end(self, code: int) -> None:
        """Stop the current work, if it is only that; else end the chat."""
        if code == _INTERRUPTED and (self._chat.interrupt() or self._stays()):
            return
        self._leave(code)

    def _stays(self) -> bool:
        """Say that pressing it again leaves, and whether the user stays for now."""
        last, self._asked_at = self._asked_at, time.monotonic()
        if not self._stream.isatty() or self._asked_at - last < _AGAIN:
            return False
        self._chat.screen.line()
        self._chat.screen.line("Ctrl+C again to leave")
        self._is_signed = False
        self._sign()
        return True

    def reader_left(self) -> None:
        """End the chat: whoever read the answers has left."""
        self._leave(_FAILED)

    def _leave(self, code: int) -> None:
        self.code = code
        if self._talking is not None:
            self._talking.cancel()

    async def _next_line(self) -> str | None:
        if self._chat.asking and line_waits(self._stream):
            self._chat.typed_before()
        elif self._chat.asking:
            drop_half_a_line(self._stream)
        self._sign()
        line = await (self._hidden_line() if self._chat.asks_for_a_secret else self._lines.next())
        self._is_signed = self._is_signed and line is None
        return line

    def _sign(self) -> None:
        """Show where to type, to somebody at a terminal whose line has not come yet."""
        screen, stream = self._chat.screen, self._stream
        if (
            isinstance(screen, TextScreen)
            and stream.isatty()
            and not self._lines.wait
            and not line_waits(stream)
        ):
            self._is_signed = screen.sign(_SIGN_OF_A_QUESTION if self._chat.asking else _SIGN)

    async def _hidden_line(self) -> str | None:
        """Read a line that a terminal does not show, nor the line break behind it."""
        with unseen(self._stream):
            line = await self._lines.next()
        if self._stream.isatty():
            self._chat.screen.line()
        return line


class _Lines:
    """Lines of a stream, read past Python's own buffer: a thread that waits in there spoils the end.

    Attributes:
        any: Whether anything has come.
    """

    def __init__(self, stream: TextIO) -> None:
        self._handle = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._rest = b""
        self.any = False

    @property
    def wait(self) -> bool:
        """Whether a line was read already."""
        return b"\n" in self._rest

    async def next(self) -> str | None:
        """Return the next line; None at the end."""
        while not self.wait:
            piece = await in_own_thread(self._read)
            if not piece:
                break
            self._rest += piece
            self.any = True
        line, end, self._rest = self._rest.partition(b"\n")
        return line.decode(self._encoding, "replace") if line or end else None

    def _read(self) -> bytes:
        try:
            return os.read(self._handle, _PIECE)
        except OSError:  # the terminal is gone
            return b""
