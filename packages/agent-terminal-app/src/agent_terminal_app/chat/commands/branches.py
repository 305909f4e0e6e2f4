"""`/edit`, `/rewind`, `/fork`, `/compact`: another way on from an earlier point.

Each makes a branch or can be undone; nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_runtime.defaults import ADDED_BY_HOOK
from agent_runtime.tokens import TokenCounter
from agent_terminal_app.chat.commands.actions import execute, find_offer
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.picker import Choice, Picker
from agent_terminal_app.chat.rendering.text import count, one_line

if TYPE_CHECKING:
    from agent_core import Message, Session

_GROUP = "This conversation"
_LIST = "list"
_WIDTH = 90


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user, and where it stands in the session."""

    index: int
    text: str


@command("edit", "rewrite one of your messages", group=_GROUP, takes="[NUMBER | list]", idle=True)
async def edit(talk: Talk, rest: str) -> None:
    """Rewrite one of your messages and have it answered, in a branch; the session stays as it is.

    Without a number it is your last one. `/edit list` shows them with their numbers and asks.
    """
    session_id = talk.need_session()
    said = await _pick(talk, session_id, rest, "Which one do you want to edit?")
    if said is None:
        return
    talk.note("It was:")
    talk.line(said.text)
    fill(talk, said.text)
    text = await talk.ask("What should it say instead? (Esc leaves it as it is)")
    if text is None or not text.strip() or text == said.text:
        talk.note("It stays as it was.")
        return
    branch = await talk.app.edit_message_async(session_id, said.index, text)
    await talk.go_to(branch.session_id)
    talk.note(f"A branch, {branch.session_id[:8]}; {session_id[:8]} stays as it is (/sessions).")
    talk.send("")


@command("rewind", "go back before one of your messages", group=_GROUP, takes="[NUMBER | list]", idle=True)
async def rewind(talk: Talk, rest: str) -> None:
    """Go back before one of your messages, in a branch; the session stays as it is.

    Without a number it is your last one. `/rewind list` shows them with their numbers and asks.
    """
    session_id = talk.need_session()
    said = await _pick(talk, session_id, rest, "Before which one do you want to go back?")
    if said is not None:
        await go_back(talk, session_id, said)


@command("fork", "continue in a copy of this session", group=_GROUP, idle=True)
async def fork(talk: Talk, _rest: str) -> None:
    """Continue in a copy of this session, to try something; the session stays as it is."""
    session_id = talk.need_session()
    forked = await talk.app.fork_session_async(session_id, upto_index=-1)
    await talk.go_to(forked.session_id)
    talk.note(f"This is {forked.session_id[:8]} now; {session_id[:8]} stays as it is.")


async def go_back(talk: Talk, session_id: str, said: Said) -> None:
    """Go on from before a message, in a branch; before the first one that is a new session."""
    if said.index == 0:
        await talk.go_to(None)
    else:
        branch = await talk.app.fork_session_async(session_id, upto_index=said.index - 1)
        await talk.go_to(branch.session_id)
    fill(talk, said.text)
    talk.note(f"Back before: {one_line(said.text)}")
    talk.note(f"The session {session_id[:8]} still has it (/sessions).")


def fill(talk: Talk, text: str) -> None:
    """Put a text into the prompt, to be changed and sent again; in a pipe there is none."""
    if talk.conversation.fill is not None:
        talk.conversation.fill(text)


async def messages_of_person(talk: Talk, session_id: str) -> list[Said]:
    """Return what the user said in a session, in order.

    Raises:
        AgentError: If that is nothing.
    """
    session = await talk.app.load_session_async(session_id)
    said = [
        Said(place, _text(one))
        for place, one in enumerate(session.messages)
        if one.role == "user" and not one.metadata.get(ADDED_BY_HOOK)
    ]
    if not said:
        raise AgentError("there is no message of yours in this session: say something first")
    return said


async def _pick(talk: Talk, session_id: str, rest: str, question: str) -> Said | None:
    """Return the message that is meant; None if the user leaves the choice."""
    said = await messages_of_person(talk, session_id)
    wanted: str | None = rest
    if talk.screen.is_live and rest == _LIST:
        choices = [Choice(str(place), one_line(one.text, _WIDTH)) for place, one in enumerate(said, 1)]
        wanted = await talk.pick(Picker(question, choices, start=str(len(said))))
        if wanted is None:
            return None
    elif rest == _LIST:
        for number, one in enumerate(said, 1):
            talk.line(f"{number:>4}  {one_line(one.text, _WIDTH)}")
        wanted = await talk.ask(f"{question} A number (Esc leaves it)")
        if not (wanted or "").strip():
            return None
    return said[_place(wanted or "", len(said))]


def _place(wanted: str, many: int) -> int:
    if not wanted:
        return many - 1
    if not wanted.strip().isdecimal() or not 1 <= int(wanted) <= many:
        raise AgentError(f"{one_line(wanted, 40)!r} is not a number from 1 to {many}; `list` shows them")
    return int(wanted) - 1


def _text(message: Message) -> str:
    return message.content if isinstance(message.content, str) else str(message.content)


_PLUGIN = "compaction"


@command("compact", "replace old messages by a summary", group="This conversation", takes="[HINT]", idle=True)
async def compact(talk: Talk, rest: str) -> None:
    """Have the older part of this session replaced by a summary, so that requests become shorter.

    A hint says what the summary should focus on. Nothing is lost: /undo puts the messages back.
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
    tokens = TokenCounter().messages(session.messages)
    return f"{count(len(session.messages), 'message')}, ~{tokens:,} tokens"
