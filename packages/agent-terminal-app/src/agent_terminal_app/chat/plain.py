"""A chat in lines: for pipes, for terminals that shall not be drawn on, for people who listen to theirs.

Lines are read in a thread of their own, which keeps nobody from leaving. Ctrl+C stops what goes on, or ends
the chat if nothing does; it comes as a signal here.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_terminal_app.chat.loop import talk_through
from agent_terminal_app.chat.terminal import on_signals
from agent_terminal_app.chat.typed_ahead import drop_half_a_line, line_waits

if TYPE_CHECKING:
    from typing import TextIO

    from agent_terminal_app.chat.loop import Chat

_INTERRUPTED = 130
_FAILED = 1


async def run_in_lines(chat: Chat, stream: TextIO | None = None) -> int:
    """Take lines from a stream until it ends, or the person leaves; return the exit code.

    Raises:
        AgentError: If the application cannot be opened.
    """
    sitting = _Sitting(chat, stream or sys.stdin)
    with on_signals(sitting.end):
        try:
            await sitting.talk()
        except BrokenPipeError:  # whoever read the answers has left
            sys.stdout = None
            return _FAILED
    return sitting.code


class _Sitting:
    def __init__(self, chat: Chat, stream: TextIO) -> None:
        self.code = 0
        self._chat = chat
        self._stream = stream
        self._line: asyncio.Future[str | None] | None = None
        self._talking: asyncio.Task[None] | None = None

    async def talk(self) -> None:
        self._talking = asyncio.create_task(talk_through(self._chat, self._next_line))
        with suppress(asyncio.CancelledError):
            await self._talking

    def end(self, code: int) -> None:
        """Stop what goes on, if it is only that; else end the chat."""
        if code == _INTERRUPTED and self._chat.interrupt():
            return
        self.code = code
        if self._talking is not None:
            self._talking.cancel()

    async def _next_line(self) -> str | None:
        if self._chat.asking and line_waits(self._stream):
            self._chat.typed_before()
        elif self._chat.asking:
            drop_half_a_line(self._stream)
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()
        threading.Thread(target=self._read, args=(loop, line), daemon=True).start()
        text = await line
        return text.rstrip("\n") if text else None

    def _read(self, loop: asyncio.AbstractEventLoop, line: asyncio.Future[str]) -> None:
        try:
            text = self._stream.readline()
        except (OSError, ValueError):  # the terminal is gone, or closed at the end
            text = ""
        with suppress(RuntimeError):  # the chat has ended meanwhile
            loop.call_soon_threadsafe(_give, line, text)


def _give(line: asyncio.Future[str], text: str) -> None:
    if not line.done():
        line.set_result(text)
