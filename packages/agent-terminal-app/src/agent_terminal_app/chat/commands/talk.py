"""What a command works with: the conversation, the screen, the person; and what the chat remembers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from agent_core import AgentError
from agent_terminal_app.chat.rows import beside, in_rows
from agent_terminal_app.chat.text import clean, styled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from agent_app import AgentApplication
    from agent_terminal_app.chat.cards import Card
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.screen import Screen


class Asking(Protocol):
    """Asks the person for a line."""

    def __call__(self, question: str, *, hidden: bool = False) -> Awaitable[str | None]:
        """Return the line; None if they leave it. A hidden one is never shown and never kept."""


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
        ask: Asks the person for a line, perhaps a hidden one; None comes back if they leave it.
        send: Says something to the agent as if it were typed; nothing at all makes it go on.
    """

    conversation: Conversation
    screen: Screen
    ask: Asking
    send: Callable[[str], None]

    @property
    def app(self) -> AgentApplication:
        """The application."""
        return self.conversation.app

    @property
    def notes(self) -> Notes:
        """What the chat remembers between commands."""
        return _NOTES.setdefault(self.conversation, Notes())

    def line(self, text: str = "", style: str = "", *, hang: int | None = None) -> None:
        """Show a line, or several, cut between words; whatever it quotes, nothing in it moves the cursor.

        Args:
            hang: How far what goes on in another row is set off.
        """
        for line in clean(text).split("\n"):
            self._show(in_rows(line, self.screen.width, hang), style)

    def row(self, front: str, about: str, style: str = "") -> None:
        """Show a row of a table: the columns before the last one, and that, in as many rows as it takes."""
        self._show(beside(clean(front), clean(about), self.screen.width), style)

    def _show(self, rows: Iterable[str], style: str) -> None:
        for row in rows:
            self.screen.line(styled(row, style, color=self.screen.color))

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
        with suppress(AgentError):  # an agent that cannot run says so when it is asked something
            await tell_tools(self)


async def tell_tools(talk: Talk) -> None:
    """Let the agent's tools follow the model that answers now, and say so if they have changed.

    Raises:
        AgentError: If no agent is declared, or it cannot run.
    """
    from agent_terminal_app.chat.model_tools import follow_model

    if line := await follow_model(talk.conversation):
        talk.note(line)
