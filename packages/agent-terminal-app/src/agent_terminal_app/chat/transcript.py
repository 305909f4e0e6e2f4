"""A whole session as lines: who said what, which tools were called, and what they answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_terminal_app.chat.markdown import LineMarkdown
from agent_terminal_app.chat.text import styled
from agent_terminal_app.transcripts import markdown_parts, who

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app import AgentApplication
    from agent_core import Message


def transcript_lines(app: AgentApplication, session_id: str, *, color: bool, width: int | None) -> list[str]:
    """Return everything of a session that is stored by now; called in a thread.

    Raises:
        SessionNotFound: If there is no such session.
    """
    session = app.load_session(session_id)
    return [line for message in session.messages for line in _lines(message, color=color, width=width)]


def _lines(message: Message, *, color: bool, width: int | None) -> Iterator[str]:
    """Yield a message; what it leaves open, such as a code block, ends with it."""
    yield styled(f"── {who(message)} ──", "bold", color=color)
    for part in markdown_parts(message):
        words = LineMarkdown(color=color, width=width)
        yield from (*words.feed(part), *words.end())
    yield ""
