"""Everything that goes with a message: what was attached before, and the files that it mentions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_terminal_app.chat.attachments import Attachment, check_together, read_file
from agent_terminal_app.chat.mentions import find_mentions

if TYPE_CHECKING:
    from agent_terminal_app.chat.conversation import Conversation


class Gathered(NamedTuple):
    """What goes with a message, and what it mentions that is not there."""

    attached: list[Attachment]
    missing: tuple[str, ...]


async def gather(conversation: Conversation, text: str) -> Gathered:
    """Return what goes with a text.

    Raises:
        NotAttached: If one of these things cannot be sent, or all of them together.
    """
    attached, missing = list(conversation.attached), tuple[str, ...]()
    if "@" in text:
        files, missing = await asyncio.to_thread(_mentioned, conversation, text)
        attached += files
    check_together(attached)
    return Gathered(attached, missing)


def _mentioned(conversation: Conversation, text: str) -> tuple[list[Attachment], tuple[str, ...]]:
    mentions = find_mentions(text, [Path.cwd(), conversation.folder()])
    return [read_file(path) for path in mentions.files], mentions.missing
