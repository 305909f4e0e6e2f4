"""`/undo` and `/redo`: one step back or forward, in the files, in the conversation, or in both.

A change of files is shown as a diff first, and Enter makes it. A turn of the conversation is taken back in a
branch, so nothing is lost. Which of the two is meant is asked once in a chat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agent_core import AgentError
from agent_terminal_app.chat.commands.actions import execute
from agent_terminal_app.chat.commands.branches import Said, go_back, messages_of_person
from agent_terminal_app.chat.commands.offers import by_name, find_offers
from agent_terminal_app.chat.commands.registry import Talk, Undone, command
from agent_terminal_app.chat.rendering.displays import display_lines
from agent_terminal_app.chat.rendering.text import count, one_line
from agent_terminal_app.chat.rendering.wrap import rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core import Session
    from agent_terminal_app.chat.commands.offers import Offer
    from agent_terminal_app.chat.conversation import Conversation

_GROUP = "This conversation"
_FILES = "files_undo"
"""The plugin with a journal of what tools changed in files: its actions are undo, redo and changes."""
_COMPACTION = "compaction"
_COMPACTIONS = "compactions"
"""Where that feature keeps what its summaries stand for."""
_MODES = ("files", "both", "conversation")

Direction = Literal["undo", "redo"]


@dataclass(frozen=True, slots=True)
class _Possible:
    """What could be taken back now.

    Attributes:
        journal: The session whose journal has the last change of files; empty if no file was changed.
        said: The last message of the user.
        changes: How many changes of files were made since then.
        compaction: What takes back the last summary, if there is one.
    """

    journal: str
    said: Said | None
    changes: int
    compaction: Offer | None

    def ways(self) -> dict[str, str]:
        """Return the ways to go, each in words."""
        found = {}
        if self.compaction is not None:
            found["summary"] = "the last summary: the messages it replaced are sent again"
        if self.journal:
            found["files"] = "files: the last change"
        if self.journal and self.said is not None and self.changes:
            made = count(self.changes, "change")
            found["both"] = f"files and conversation: your last message, and the {made} of files since"
        if self.said is not None:
            found["conversation"] = f"conversation: back before {one_line(self.said.text, 50)!r}"
        return found


def _choices(_conversation: Conversation, _typed: str) -> list[tuple[str, str]]:
    abouts = ("the last change of files", "the last message and its changes", "the last message alone")
    return list(zip(_MODES, abouts, strict=True))


@command(
    "undo", "take back the last step", group=_GROUP, takes="[files | both | conversation]", idle=True,
    choices=_choices, covers=(f"{_FILES}.undo",),
)  # fmt: skip
async def undo(talk: Talk, rest: str) -> None:
    """Take back the last change of files, your last message, or both.

    A change of files is shown first, and Enter takes it back; /undo again takes back the one before. The chat
    asks once which of these you mean; a word after /undo means another one from then on. A message is taken
    back in a branch, and the session stays as it is. /redo brings back what was undone.
    """
    session_id = talk.need_session()
    possible = await _look(talk, session_id)
    way = await _way(talk, rest, possible.ways())
    if way == "summary" and possible.compaction is not None:
        await execute(talk, possible.compaction, {})
        return
    if way is None:
        talk.note("Nothing was changed.")
        return
    changes = 0
    if way in ("files", "both"):
        changes = await _reverse(talk, possible.journal, "undo", possible.changes if way == "both" else 1)
        if not changes:
            return
    left = ""
    if way in ("both", "conversation") and possible.said is not None:
        await go_back(talk, session_id, possible.said)
        left = session_id
        talk.notes.journals[talk.conversation.session_id or ""] = possible.journal or session_id
    talk.notes.undone.append(Undone(left, possible.journal, changes))


@command("redo", "bring back what was undone", group=_GROUP, idle=True, covers=(f"{_FILES}.redo",))
async def redo(talk: Talk, _rest: str) -> None:
    """Bring back what the last /undo took: the change of files, which is shown first, or the session."""
    if talk.notes.undone:
        last = talk.notes.undone[-1]
        if last.changes and not await _reverse(talk, last.journal, "redo", last.changes):
            return
        talk.notes.undone.pop()
        if last.session_id:
            await talk.go_to(last.session_id)
            talk.note(f"This is {last.session_id[:8]} again.")
        return
    session_id = talk.conversation.session_id
    offers = by_name(await find_offers(talk.conversation))
    if (
        session_id is None
        or f"{_FILES}.redo" not in offers
        or True not in (await _journal(talk, session_id)).values()
    ):
        raise AgentError("nothing was undone here: /sessions lists every branch")
    await _reverse(talk, session_id, "redo", 1)


async def _look(talk: Talk, session_id: str) -> _Possible:
    offers = by_name(await find_offers(talk.conversation))
    session = await talk.app.load_session_async(session_id)
    has_words = any(message.role == "user" for message in session.messages)
    said = (await messages_of_person(talk, session_id))[-1] if has_words else None
    compaction = offers.get(f"{_COMPACTION}.undo_compaction") if session.metadata.get(_COMPACTIONS) else None
    journal, known = await _journal_with_changes(talk, session_id, offers)
    before = 0 if said is None else _changes_before(session, said.index, known, is_own=journal == session_id)
    return _Possible(
        journal=journal,
        said=said,
        changes=sum(number > before for number, is_undone in known.items() if not is_undone),
        compaction=compaction,
    )


async def _journal_with_changes(
    talk: Talk, session_id: str, offers: Mapping[str, Offer]
) -> tuple[str, Mapping[int, bool]]:
    """Return the session whose journal has the last change of files, this one or one it branched from."""
    if f"{_FILES}.undo" not in offers:
        return "", {}
    seen: set[str] = set()
    here = session_id
    while here and here not in seen:
        known = await _journal(talk, here)
        if False in known.values():
            return here, known
        seen.add(here)
        here = talk.notes.journals.get(here, "")
    return "", {}


async def _journal(talk: Talk, session_id: str) -> dict[int, bool]:
    """Return the changes of files that a session knows, by their numbers, and whether each was undone."""
    _, known = await talk.app.execute_session_action_async(session_id, _FILES, "changes", {})
    return {int(change["number"]): bool(change["undone"]) for change in known.get("changes", ())}


def _changes_before(session: Session, index: int, known: Mapping[int, bool], *, is_own: bool) -> int:
    """Return the number of the last change of files before a message.

    A branch has the messages of its session, and not its journal. So its own journal is counted from the end,
    and that of the session that it branched from, which may have gone on, from the beginning.
    """
    messages = session.messages[index:] if is_own else session.messages[:index]
    shown = (message.metadata.get("display") for message in messages if message.role == "tool")
    diffs: int = sum(isinstance(one, dict) and one.get("type") == "diff" for one in shown)
    return max([0, *known]) - diffs if is_own else diffs


async def _way(talk: Talk, rest: str, ways: Mapping[str, str]) -> str | None:
    """Return the way that is meant: as typed, as chosen before, the only one, or as answered now."""
    word = rest.strip().lower()
    if word and word not in _MODES:
        raise AgentError(f"/undo takes {', '.join(_MODES)}, not {one_line(rest, 40)!r}")
    if word and word not in ways:
        raise AgentError(f"there is nothing to undo in {word}")
    if not ways:
        raise AgentError("there is nothing to undo yet")
    if word:
        talk.notes.undo_mode = word
    if talk.notes.undo_mode in ways and "summary" not in ways:
        return talk.notes.undo_mode
    if len(ways) == 1:
        return next(iter(ways))
    chosen = await _ask(talk, ways)
    if chosen in _MODES:
        talk.notes.undo_mode = chosen
    return chosen


async def _ask(talk: Talk, ways: Mapping[str, str]) -> str | None:
    for number, about in enumerate(ways.values(), 1):
        talk.line(f"  [{number}] {about}")
    keys = "".join(str(number + 1) for number in range(len(ways)))
    answer = (
        await talk.ask("What does /undo take back in this chat? (Esc leaves it)", keys=keys) or ""
    ).strip()
    if not answer:
        return None
    if answer not in keys:
        raise AgentError(f"{one_line(answer, 40)!r} is not one of them; nothing was done")
    return list(ways)[int(answer) - 1]


async def _reverse(talk: Talk, session_id: str, direction: Direction, changes: int) -> int:
    """Show what undoing or redoing does to the files, do it on Enter, and return the number of changes."""
    run = talk.app.execute_session_action_async
    _, plan = await run(session_id, _FILES, direction, {"count": max(changes, 1)})
    if plan.get("status") != "plan":
        raise AgentError(_problem(plan) or f"there is nothing to {direction}")
    for line in display_lines(
        {"type": "diff", "content": _diff_of(plan)}, width=None, color=talk.screen.color
    ):
        for row in rows_of(f"  {line}", talk.screen.width):
            talk.screen.line(row)
    answer = await talk.ask(_ENTER[direction].format(_named(plan["changes"])))
    if answer is None or answer.strip().lower() not in ("", "y", "yes"):
        talk.note("Nothing was changed.")
        return 0
    confirmed = {"count": len(plan["changes"]), "confirm": True, "change": plan["changes"][0]}
    _, done = await run(session_id, _FILES, direction, confirmed)
    if done.get("status") != "ok":
        raise AgentError(_problem(done) or "it could not be done")
    talk.note(_done(direction, done["changes"]))
    return len(done["changes"])


_ENTER = {"undo": "Enter takes back {}, Esc leaves it.", "redo": "Enter makes {} again, Esc leaves it."}


def _done(direction: Direction, changes: list[int]) -> str:
    if direction == "redo":
        return f"Made {_named(changes)} again."
    before = " /undo takes back the one before," if min(changes) > 1 else ""
    return f"Took back {_named(changes)}.{before} /redo makes {'it' if len(changes) == 1 else 'them'} again."


def _named(changes: list[int]) -> str:
    if len(changes) == 1:
        return f"change {changes[0]}"
    first, last = min(changes), max(changes)
    return f"changes {first} {'and' if last == first + 1 else 'to'} {last}"


def _diff_of(plan: Mapping[str, Any]) -> str:
    """Return the diff of a plan, which stands in its display as a block of code."""
    lines = str(plan["display"]["body"]).split("\n")
    return "\n".join(lines[1:-1]) if lines and lines[0].startswith("```") else "\n".join(lines)


def _problem(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    about = error.get("message") if isinstance(error, dict) else error
    return one_line(str(about or result.get("message") or ""))
