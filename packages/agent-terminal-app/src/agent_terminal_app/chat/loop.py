"""The chat as a whole: lines come in, the agent works beside them, lines go out.

What is typed and what the agent does happen at the same time, on one event loop. Opening the application
takes a moment (models, plugins, sessions), so that happens in a thread while the first words are typed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_terminal_app.chat.approvals import answer, show_question
from agent_terminal_app.chat.commands import Quit, Talk, run_command
from agent_terminal_app.chat.conversation import Conversation
from agent_terminal_app.chat.dialogue import Dialogue
from agent_terminal_app.chat.markdown import clean, styled
from agent_terminal_app.chat.rendering import Renderer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_app import AgentApplication
    from agent_terminal_app.chat.screen import Screen


class Chat:
    """One sitting at the terminal.

    Args:
        open_app: Opens the application; called in a thread.
        screen: Where lines go.
        session_id: The session to go on with; by default a new one.
    """

    def __init__(
        self, open_app: Callable[[], AgentApplication], screen: Screen, session_id: str | None = None
    ) -> None:
        self._open_app = open_app
        self._screen = screen
        self._session_id = session_id
        self._conversation: Conversation | None = None
        self._working: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[AgentApplication] | None = None
        self._dialogue = Dialogue(screen)

    def start(self) -> None:
        """Begin to open the application; called on the event loop."""
        self._opening = asyncio.create_task(asyncio.to_thread(self._open_app))

    @property
    def running(self) -> bool:
        """Whether the agent is at work."""
        return self._working is not None and not self._working.done()

    @property
    def conversation(self) -> Conversation | None:
        """The conversation, once the application is open."""
        return self._conversation

    def interrupt(self) -> bool:
        """Stop the command, else the agent; False if neither is at work."""
        return self._dialogue.stop() or self._stop_agent()

    def _stop_agent(self) -> bool:
        return self._conversation is not None and self._conversation.interrupt()

    async def take(self, line: str, *, queue: bool = False) -> None:
        """Take a line that was typed: words, a command, or the answer to a question.

        Raises:
            Quit: If the person wants to leave.
            AgentError: If the application cannot be opened.
        """
        if self._dialogue.asking:
            await self._dialogue.answer(line)
            return
        if not line.strip():
            return
        conversation = await self._opened()
        if line.startswith("/"):
            await self._command(conversation, line)
        elif self.running:
            conversation.add(line, "queue" if queue else "steer")
            self._note(f"{'queued' if queue else 'will be read after this step'}: {clean(line)}")
        elif questions := conversation.questions():
            answer(conversation, questions[0], line)
            self._work(conversation, "")
        else:
            self._work(conversation, line)

    async def _command(self, conversation: Conversation, line: str) -> None:
        if self._dialogue.running:
            self._note("another command is at work; Esc stops it")
            return
        talk = Talk(conversation, self._screen, self._dialogue.ask)
        await self._dialogue.begin(run_command(talk, line))

    def _work(self, conversation: Conversation, line: str) -> None:
        self._working = asyncio.create_task(self._say(conversation, line))

    async def _say(self, conversation: Conversation, line: str) -> None:
        renderer = Renderer(self._screen)
        try:
            await conversation.say(line, renderer.show)
        except AgentError as error:
            text = styled(f"Error: {clean(str(error))}", "red", color=self._screen.color)
            self._screen.line(text)
        if questions := conversation.questions():
            show_question(self._screen, questions[0])

    async def finish(self) -> None:
        """Wait until the agent is done, and the command as well, or asks something."""
        await self._dialogue.settle()
        if self._working is not None:
            await self._working

    async def close(self) -> None:
        """Stop the agent, keep everything, and let go."""
        while self._dialogue.running:
            self._dialogue.stop()
            await self._dialogue.settle()
        self._stop_agent()
        await self.finish()
        if self._conversation is not None:
            self._conversation.app.close()

    async def _opened(self) -> Conversation:
        if self._conversation is None:
            assert self._opening is not None
            app = await self._opening
            self._conversation = Conversation(app, self._session_id)
            for problem in app.problems:
                self._note(f"! plugin {problem.plugin!r} is left out: {clean(problem.reason)}")
        return self._conversation

    def _note(self, text: str) -> None:
        self._screen.line(styled(text, "dim", color=self._screen.color))


async def talk_through(chat: Chat, next_line: Callable[[], Awaitable[str | None]]) -> None:
    """Take lines one after the other, each answered before the next; for pipes and plain terminals."""
    chat.start()
    try:
        while (line := await next_line()) is not None:
            await chat.take(line)
            await chat.finish()
    except Quit:
        pass
    finally:
        await chat.close()
