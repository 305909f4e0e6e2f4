"""`/undo`, `/redo`: what was last, taken back and brought again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal

from agent_core import AgentError
from agent_terminal_app.chat.commands.actions import execute
from agent_terminal_app.chat.commands.branches import Said, go_back, messages_of_person
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.offers import by_name, find_offers
from agent_terminal_app.chat.words import one_line

if TYPE_CHECKING:
    from agent_terminal_app.chat.offers import Offer

_GROUP = "This conversation"
_FILES = "files_undo"
"""The plugin with a journal of what tools changed in files: its actions are undo, redo and changes."""
_COMPACTION = "compaction"
_COMPACTIONS = "compactions"
"""Where that feature keeps what its summaries stand for."""

Way = tuple[str, Callable[[], Awaitable[object]]]
"""Something that can be done, in words, and how."""


@command("undo", "take back what was last", group=_GROUP, idle=True)
async def undo(talk: Talk, _rest: str) -> None:
    """Take back the last change of files, the last turn of the conversation, or the last compaction.

    If more than one of these is possible you are asked which. A turn is taken back in a branch; the session
    stays as it is. /redo brings back what was undone.
    """
    session_id = talk.need_session()
    offers = by_name(await find_offers(talk.conversation))
    session = await talk.app.load_session_async(session_id)
    ways = await _of_files(talk, session_id, offers, "undo")
    compaction = offers.get(f"{_COMPACTION}.undo_compaction")
    if compaction is not None and session.metadata.get(_COMPACTIONS):
        ways.append(("the last compaction", lambda: execute(talk, compaction, {})))
    if any(message.role == "user" for message in session.messages):
        said = (await messages_of_person(talk, session_id))[-1]
        about = f"the conversation, back before: {one_line(said.text, 60)}"
        ways.append((about, lambda: _undo_turn(talk, session_id, said)))
    await _take(talk, ways, "there is nothing to undo yet")


@command("redo", "bring back what was undone", group=_GROUP, idle=True)
async def redo(talk: Talk, _rest: str) -> None:
    """Bring back what /undo took: files as they were, or the session that was left."""
    ways: list[Way] = []
    session_id = talk.conversation.session_id
    if session_id is not None:
        offers = by_name(await find_offers(talk.conversation))
        ways = await _of_files(talk, session_id, offers, "redo")
    if talk.notes.undone:
        ways.append((f"the conversation, session {talk.notes.undone[-1][:8]}", lambda: _redo_turn(talk)))
    await _take(talk, ways, "nothing was undone here: /sessions lists every branch")


async def _take(talk: Talk, ways: list[Way], nothing: str) -> None:
    """Go the only way, or ask which of several."""
    if not ways:
        raise AgentError(nothing)
    chosen = ways[0] if len(ways) == 1 else await _choose(talk, ways)
    if chosen is not None:
        await chosen[1]()


async def _choose(talk: Talk, ways: list[Way]) -> Way | None:
    for number, (about, _do) in enumerate(ways, 1):
        talk.line(f"  [{number}] {about}")
    answer = (await talk.ask("Which of these? A number (Esc leaves it)") or "").strip()
    if not answer:
        return None
    if not answer.isdecimal() or not 1 <= int(answer) <= len(ways):
        raise AgentError(f"{one_line(answer, 40)!r} is none of them; nothing was done")
    return ways[int(answer) - 1]


async def _of_files(
    talk: Talk, session_id: str, offers: Mapping[str, Offer], action_id: Literal["undo", "redo"]
) -> list[Way]:
    """Return how files can be undone or redone, if the journal has something for it."""
    offer = offers.get(f"{_FILES}.{action_id}")
    if offer is None:
        return []
    _, known = await talk.app.execute_session_action_async(session_id, _FILES, "changes", {})
    undone = [change["undone"] for change in known.get("changes", ())]
    if (action_id == "redo") not in undone:
        return []
    return [("the last change of files", lambda: execute(talk, offer, {}))]


async def _undo_turn(talk: Talk, session_id: str, said: Said) -> None:
    await go_back(talk, session_id, said)
    talk.notes.undone.append(session_id)


async def _redo_turn(talk: Talk) -> None:
    session_id = talk.notes.undone.pop()
    await talk.go_to(session_id)
    talk.note(f"This is {session_id[:8]} again.")
