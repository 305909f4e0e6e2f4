"""`/compact`: old messages made short; `/undo` makes them long again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_terminal_app.chat.commands.actions import execute, find_offer
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.words import count

if TYPE_CHECKING:
    from agent_core import Session

_PLUGIN = "compaction"


@command("compact", "replace old messages by a summary", group="This conversation", takes="[HINT]", idle=True)
async def compact(talk: Talk, rest: str) -> None:
    """Have the older part of this session replaced by a summary, so that requests become shorter.

    A hint says what the summary shall pay attention to. Nothing is lost: /undo puts the messages back.
    """
    session_id = talk.need_session()
    offer = await find_offer(talk, _PLUGIN, "compact_range")
    if offer is None:
        raise AgentError(f"the plugin {_PLUGIN!r} is not on: /plugins {_PLUGIN} says why")
    before = _size(await talk.app.load_session_async(session_id))
    await execute(talk, offer, {"instructions": rest} if rest else {})
    after = _size(await talk.app.load_session_async(session_id))
    if after != before:
        talk.note(f"{before} → {after}; /undo puts them back")


def _size(session: Session) -> str:
    """Return how long a session is, in words; the tokens are estimated."""
    from agent_runtime.context.tokens import TokenCounter

    tokens = TokenCounter().messages(session.messages)
    return f"{count(len(session.messages), 'message')}, ~{tokens:,} tokens"
