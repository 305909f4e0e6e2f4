"""A running command: it may ask for lines, take its time, and be stopped. The next ones wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING

from agent_terminal_app.first_run.ask import choose_by_typing
from agent_terminal_app.rows import in_rows

if TYPE_CHECKING:
    from agent_terminal_app.chat.picker import Picker
    from agent_terminal_app.chat.rendering.screen import Screen

Command = Callable[[], Coroutine[None, None, None]]

_SOON = 0.2
"""How many seconds the lines after a command wait for it; a slower command runs while they are taken."""


class Dialogue:
    """Runs one command at a time, and those that were begun while it ran afterwards.

    Args:
        screen: Where questions are shown.
        ended: Called when a command has ended, with what it raised, if that was anything.
        asked: Called when it asks something.
    """

    def __init__(
        self,
        screen: Screen,
        ended: Callable[[BaseException | None], None] = lambda _error: None,
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        self._screen = screen
        self._ended = ended
        self._has_asked = asked
        self._task: asyncio.Task[None] | None = None
        self._next: deque[Command] = deque()
        self._wanted: asyncio.Future[str | None] | None = None
        self._hidden = False
        self._picker: Picker | None = None
        self._keys = ""
        self._asked = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether a command is working."""
        return self._task is not None and not self._task.done()

    @property
    def asking(self) -> bool:
        """Whether the command waits for a line."""
        return self._wanted is not None and not self._wanted.done()

    @property
    def asking_for_a_secret(self) -> bool:
        """Whether it waits for a secret."""
        return self.asking and self._hidden

    @property
    def keys(self) -> str:
        """The keys that answer what the command asks, at once."""
        return self._keys if self.asking else ""

    async def ask(self, question: str, *, hidden: bool = False, keys: str = "") -> str | None:
        """Ask the user something, for a command; the next line that is typed is the answer.

        Args:
            hidden: Whether the line is a secret: it is never shown and never kept.
            keys: Characters that are the answer as soon as they are pressed.

        Returns:
            The line; None if the user wants to leave it.
        """
        self._hidden, self._keys = hidden, keys
        self._wanted = asyncio.get_running_loop().create_future()
        # Behind that, so that nothing can be seen that is typed for it.
        self._tell(question)
        self._asked.set()
        self._has_asked()
        try:
            return await self._wanted
        finally:
            self._wanted = None

    @property
    def picker(self) -> Picker | None:
        """The list that the command has the user choose from, if there is one."""
        return None if self._picker is None or self._picker.result.done() else self._picker

    async def pick(self, picker: Picker) -> str | None:
        """Have the user choose from a list, for a command.

        Returns:
            The value of the choice; None if the user leaves it.
        """
        if not self._screen.is_live:
            return await self._pick_by_typing(picker)
        self._picker = picker
        picker.result.add_done_callback(lambda _result: self._asked.clear())
        self._asked.set()
        self._has_asked()
        try:
            return await picker.result
        finally:
            self._has_asked()

    async def _pick_by_typing(self, picker: Picker) -> str | None:
        options = [f"{one.label}  {one.about}".rstrip() for one in picker.choices]
        read = partial(self.ask, "Number or name (an empty line: the first; Esc leaves it)")
        number = await choose_by_typing(picker.title, options, tell=self._tell, read=read)
        return None if number is None else picker.choices[number].value

    def _tell(self, text: str) -> None:
        for line in text.split("\n"):
            self._screen.line("\n".join(in_rows(line, self._screen.width)))

    async def begin(self, command: Command) -> bool:
        """Start a command, and wait a moment for it: until it is done, asks, or takes long.

        Returns:
            False if it waits for another one.
        """
        if not self.running:
            self._start(command)
            await self._soon(_SOON)
            return True
        self._next.append(command)
        await self._soon(_SOON)
        return command not in self._next

    def _start(self, command: Command) -> None:
        self._task = asyncio.create_task(command())
        self._task.add_done_callback(self._done)

    async def answer(self, line: str | None) -> None:
        """Hand the command the line that it waits for."""
        assert self._wanted is not None
        self._asked.clear()
        self._wanted.set_result(line)
        await self._soon(_SOON)

    def stop(self) -> bool:
        """Take the question back that is open, or stop the commands; False if there is none."""
        if self.picker is not None:
            self._asked.clear()  # at once, since who closes the chat waits for the command now
            self.picker.leave()
            return True
        if self.asking:
            assert self._wanted is not None
            self._asked.clear()
            self._wanted.set_result(None)
            return True
        return self._task is not None and self._task.cancel()

    async def act_on_choice(self) -> None:
        """Wait a moment for a command whose list was just left: a line typed behind it is for afterwards."""
        if self._picker is not None and self._picker.result.done():
            self._picker = None
            await self._soon(_SOON)

    async def settle(self) -> None:
        """Wait until all commands are done, or one asks something."""
        while self.running and not self._asked.is_set():
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
        if task.cancelled():
            self._next.clear()
        if self._next:
            self._start(self._next.popleft())
        self._ended(None if task.cancelled() else task.exception())
