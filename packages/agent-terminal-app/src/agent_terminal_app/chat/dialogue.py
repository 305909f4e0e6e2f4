"""A command at work: it may ask for lines, take its time, and be stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from agent_terminal_app.chat.screen import Screen

_SOON = 0.2
"""For how many seconds the lines behind a command wait for it; one that takes longer works beside them."""


class Dialogue:
    """Runs one command at a time.

    Args:
        screen: Where questions are shown.
        ended: Called when a command has ended, with what it raised, if that was anything.
    """

    def __init__(
        self, screen: Screen, ended: Callable[[BaseException | None], None] = lambda _error: None
    ) -> None:
        self._screen = screen
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._wanted: asyncio.Future[str | None] | None = None
        self._asked = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether a command is at work."""
        return self._task is not None and not self._task.done()

    @property
    def asking(self) -> bool:
        """Whether the command waits for a line."""
        return self._wanted is not None and not self._wanted.done()

    async def ask(self, question: str) -> str | None:
        """Ask the person something, for a command; the next line that is typed is the answer.

        Returns:
            The line; None if the person wants to leave it.
        """
        self._screen.line(question)
        self._wanted = asyncio.get_running_loop().create_future()
        self._asked.set()
        try:
            return await self._wanted
        finally:
            self._wanted = None

    async def begin(self, command: Coroutine[None, None, None]) -> None:
        """Start a command, and wait a moment for it: until it is done, asks, or takes long."""
        self._task = asyncio.create_task(command)
        self._task.add_done_callback(self._done)
        await self._soon(_SOON)

    async def answer(self, line: str | None) -> None:
        """Hand the command the line that it waits for."""
        assert self._wanted is not None
        self._asked.clear()
        self._wanted.set_result(line)
        await self._soon(_SOON)

    def stop(self) -> bool:
        """Take the question back that is open, or stop the command; False if there is none."""
        if self.asking:
            assert self._wanted is not None
            self._asked.clear()
            self._wanted.set_result(None)
            return True
        return self._task is not None and self._task.cancel()

    async def settle(self) -> None:
        """Wait until the command is done, or asks something."""
        await self._soon(None)

    async def _soon(self, seconds: float | None) -> None:
        if self._task is None or self._task.done():
            return
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait([self._task, asked], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._asked.clear()
        self._ended(None if task.cancelled() else task.exception())
