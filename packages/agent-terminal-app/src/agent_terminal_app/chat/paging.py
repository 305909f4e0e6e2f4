"""The session in a pager, which has the terminal meanwhile; afterwards the prompt is as it was."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.application import in_terminal

from agent_core import AgentError
from agent_terminal_app.chat.remarks import Remarks

if TYPE_CHECKING:
    from prompt_toolkit.application import Application

    from agent_app import AgentApplication
    from agent_terminal_app.chat.above import PromptScreen


class Paging:
    """Shows one session at a time.

    Args:
        application: The prompt.
        screen: What is written above it; held back while the pager is there.
    """

    def __init__(self, application: Application[None], screen: PromptScreen) -> None:
        self._application = application
        self._screen = screen
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the pager is there."""
        return self._task is not None and not self._task.done()

    def show(self, app: AgentApplication, session_id: str) -> None:
        """Show a session; what happens meanwhile is shown afterwards."""
        if not self.is_open:
            self._task = self._application.create_background_task(self._show(app, session_id))

    def stop(self) -> None:
        """End the pager: the prompt cannot end before."""
        if self._task is not None:
            self._task.cancel()

    async def _show(self, app: AgentApplication, session_id: str) -> None:
        from agent_terminal_app.chat.pager import page, pager_command
        from agent_terminal_app.chat.transcript import transcript_lines

        look = partial(transcript_lines, color=self._screen.color, width=self._screen.width)
        try:
            lines, command = await asyncio.to_thread(look, app, session_id), pager_command()
            if command is None:
                self._screen.line("\n".join(lines))
                return
            self._screen.hold()
            async with in_terminal():
                await page(lines, command)
        except (AgentError, OSError) as error:
            Remarks(self._screen).fail(error)
        finally:
            self._screen.release()
