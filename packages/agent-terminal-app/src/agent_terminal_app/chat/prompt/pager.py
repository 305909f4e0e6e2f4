"""The whole session in the user's own pager: `$PAGER`, or `less`; without either it is printed.

The pager has the terminal while it runs; afterwards the prompt is as it was.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from asyncio.subprocess import PIPE
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.application import in_terminal

from agent_core import AgentError
from agent_terminal_app import lazy
from agent_terminal_app.chat.rendering.markdown import LineMarkdown
from agent_terminal_app.chat.rendering.renderer import Remarks
from agent_terminal_app.chat.rendering.text import styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prompt_toolkit.application import Application

    from agent_app import AgentApplication
    from agent_core import Message
    from agent_terminal_app.chat.prompt.screen import PromptScreen

_USUAL = ("less", "-R")


def pager_command(environment: Mapping[str, str] | None = None) -> list[str] | None:
    """Return the program that pages, with its arguments; None if there is none."""
    variables = os.environ if environment is None else environment
    try:
        named = shlex.split(variables.get("PAGER", ""))
    except ValueError:  # a quote that is not closed
        named = []
    found = (one for one in (named, list(_USUAL)) if one and shutil.which(one[0], path=variables.get("PATH")))
    return next(found, None)


async def page(lines: Sequence[str], command: Sequence[str]) -> None:
    """Show lines in a pager, which has the terminal until the user closes it.

    Raises:
        OSError: If it cannot be started.
    """
    styles = {"LESS": os.environ.get("LESS", "-R")}  # a `less` in $PAGER would show codes in place of colours
    pager = await asyncio.create_subprocess_exec(*command, stdin=PIPE, env={**os.environ, **styles})
    try:
        await pager.communicate("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    finally:
        if pager.returncode is None:  # we must leave before the user is done
            pager.terminate()
            await pager.wait()


def transcript_lines(app: AgentApplication, session_id: str, *, color: bool, width: int | None) -> list[str]:
    """Return everything of a session that is stored by now; called in a thread.

    Raises:
        SessionNotFound: If there is no such session.
    """
    session = app.load_session(session_id)
    return [line for message in session.messages for line in _lines(message, color=color, width=width)]


def _lines(message: Message, *, color: bool, width: int | None) -> Iterator[str]:
    """Yield a message; what it leaves open, such as a code block, ends with it."""
    yield styled(f"── {lazy.who(message)} ──", "bold", color=color)
    for part in lazy.markdown_parts(message):
        words = LineMarkdown(color=color, width=width)
        yield from (*words.feed(part), *words.end())
    yield ""


class Pager:
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
        """Show a session; lines that come while the pager is open are shown afterwards."""
        if not self.is_open:
            self._task = self._application.create_background_task(self._show(app, session_id))

    def stop(self) -> None:
        """End the pager: the prompt cannot end before."""
        if self._task is not None:
            self._task.cancel()

    async def _show(self, app: AgentApplication, session_id: str) -> None:
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
