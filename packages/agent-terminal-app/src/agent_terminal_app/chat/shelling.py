"""A line for the person's own shell, beside everything else that goes on in a chat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_terminal_app.chat.shell_line import ShellLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.remarks import Remarks
    from agent_terminal_app.chat.screen import Screen


class Shelling:
    """Runs one line at a time; what it prints goes with the next message.

    Args:
        screen: Where its output is shown.
        remarks: Says how it ended.
        changed: Called when it has.
        take_back: The key by which the agent is not told.
    """

    def __init__(
        self, screen: Screen, remarks: Remarks, changed: Callable[[], None], take_back: str = "Alt+Up"
    ) -> None:
        self._shell = ShellLine(screen.line)
        self._remarks = remarks
        self._changed = changed
        self._take_back = take_back
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether a line runs."""
        return self._task is not None and not self._task.done()

    def start(self, conversation: Conversation, command: str) -> None:
        """Run a line in the folder of the session."""
        if self.running:
            self._remarks.note("another command runs; Esc stops it")
        else:
            self._task = asyncio.create_task(self._run(conversation, command))

    def stop(self) -> bool:
        """End the line and everything that it started; False if none runs."""
        if self._task is None or self._task.done():
            return False
        if not self._shell.stop():
            self._task.cancel()
            self._task = None
            self._remarks.note("stopped before it ran")
        return True

    async def settle(self) -> None:
        """Wait until it has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, conversation: Conversation, command: str) -> None:
        try:
            ran = await self._shell.run(command, await asyncio.to_thread(conversation.folder))
        except OSError as error:
            self._remarks.fail(error)
            return
        conversation.attached.append(ran.attachment())
        self._remarks.note(ran.line(self._take_back))
        self._changed()
