"""A session that another process has: who that is, and what becomes of words that were meant for it.

Nothing that was typed is lost: it waits there, is said here, or goes back to where it was typed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_terminal_app.chat.text import one_line
from agent_terminal_app.first_run.asking import choose_by_typing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_app import SessionHeld
    from agent_terminal_app.chat.attachments import Attachment
    from agent_terminal_app.chat.commands import Talk
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.work import Work

_CHOICE = "Number or name (Enter: 1; Esc leaves it)"
_QUEUE, _TAKE_OVER, _KEEP = 0, 1, 2
_OF_WORDS = (
    "queue  your words wait there, and whoever has it answers them",
    "take over  it goes on here, and ends there with its next step",
    "keep  nothing is sent, and your words go back into the input line",
)
_OF_WHAT_WAITS = (
    "wait  whoever has it answers what waits",
    "take over  it goes on here, and ends there with its next step",
)


@dataclass(frozen=True, slots=True)
class Words:
    """What somebody wants to say; no text at all if they want the agent to go on."""

    text: str
    attached: Sequence[Attachment] = ()

    def __bool__(self) -> bool:
        """Say whether there is anything."""
        return bool(self.text or self.attached)


async def ask_what_then(talk: Talk, work: Work, words: Words, held: SessionHeld) -> None:
    """Ask what becomes of words for a session that another process has, and do it."""
    title = f"This session is in use by {one_line(held.holder.owner)}. What now?"
    options = _OF_WORDS if words else _OF_WHAT_WAITS
    chosen = await choose_by_typing(title, options, tell=talk.line, read=partial(talk.ask, _CHOICE))
    if chosen == _TAKE_OVER:
        work.begin(talk.conversation, words.text, words.attached, take_over=True)
    elif chosen == _QUEUE:
        if words:
            await asyncio.to_thread(talk.conversation.add, words.text, "queue", words.attached)
        work.watch(talk.conversation)
    else:
        talk.note(give_back(talk.conversation, words))


def give_back(conversation: Conversation, words: Words) -> str:
    """Put words back to where they were typed, and return what to say about it."""
    if not words:
        return "nothing was sent; what waits is kept"
    conversation.attached += [one for one in words.attached if not _is_mentioned(one, words.text)]
    conversation.changed()
    if conversation.fill is None:
        return f"not sent: {one_line(words.text)}"
    conversation.fill(words.text)
    return "not sent; your words are in the input line"


def _is_mentioned(attachment: Attachment, text: str) -> bool:
    """Say whether a file goes with a text because that mentions it."""
    return "@" in text and Path(attachment.label).name in text
