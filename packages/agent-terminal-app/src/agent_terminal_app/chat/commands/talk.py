"""What a command works with: the conversation, the screen, the person; and what the chat remembers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from agent_core import AgentError
from agent_terminal_app.chat.text import clean, styled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_app import AgentApplication
    from agent_terminal_app.chat.cards import Card
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.screen import Screen


@dataclass(slots=True)
class Notes:
    """What a chat remembers from one command to the next.

    Attributes:
        sessions: The ids that were listed last, so that they can be named by their number.
        models: The same for models.
        undone: The sessions that `/undo` left, the last one at the end.
        card: The card whose follow-ups can be chosen by number.
        shown: The ids of displays that were shown, so that a newer one is told from a first one.
    """

    sessions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    undone: list[str] = field(default_factory=list)
    card: Card | None = None
    shown: set[str] = field(default_factory=set)


# A `Talk` lives as long as one command, and a conversation as long as the chat.
_NOTES: WeakKeyDictionary[Conversation, Notes] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Talk:
    """What a command works with.

    Attributes:
        conversation: The session that is open, and the application.
        screen: Where lines go.
        ask: Asks the person for a line; None comes back if they leave it.
        send: Says something to the agent as if it were typed; nothing at all makes it go on.
    """

    conversation: Conversation
    screen: Screen
    ask: Callable[[str], Awaitable[str | None]]
    send: Callable[[str], None]

    @property
    def app(self) -> AgentApplication:
        """The application."""
        return self.conversation.app

    @property
    def notes(self) -> Notes:
        """What the chat remembers between commands."""
        return _NOTES.setdefault(self.conversation, Notes())

    def line(self, text: str = "", style: str = "") -> None:
        """Show a line, or several; whatever it quotes, nothing in it moves the cursor."""
        for line in clean(text).split("\n"):
            self.screen.line(styled(line, style, color=self.screen.color))

    def note(self, text: str) -> None:
        """Show a line that is no part of the conversation."""
        self.line(text, "dim")

    def fail(self, problem: object) -> None:
        """Tell what went wrong."""
        self.line(f"Error: {problem}", "red")

    def need_session(self) -> str:
        """Return the session that is open.

        Raises:
            AgentError: If nothing was said yet.
        """
        if self.conversation.session_id is None:
            raise AgentError("nothing was said yet: say something first, or /resume a session")
        return self.conversation.session_id

    async def go_to(self, session_id: str | None) -> None:
        """Go on in another session; None for one that is made with the next words.

        Raises:
            SessionNotFound: If it is not there; the chat stays where it is.
        """
        if session_id is not None:
            await asyncio.to_thread(self.app.store.info, session_id)
        await self.conversation.go_to(session_id)
