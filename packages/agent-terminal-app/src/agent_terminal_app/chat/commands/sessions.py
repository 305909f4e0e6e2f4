"""`/new`, `/sessions`, `/resume`, `/branches`, `/rename`, `/export`, `/import`: sessions and their files."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app.transfer import SystemMessagesRefused
from agent_core import AgentError
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.picker import Choice, Picker
from agent_terminal_app.chat.rendering.text import age, count, one_line
from agent_terminal_app.errors import CommandError
from agent_terminal_app.views.sessions import (
    FORMS,
    added_line,
    find_session as find,
    here,
    import_lines,
    instruction_lines,
    write_transcript,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_app import SessionInfo
    from agent_core import Message

_GROUP = "Sessions"
_LISTED, _MOST = 20, 200
_NAME = 60


@command("new", "begin another session", group=_GROUP, idle=True, alias="clear")
async def new(talk: Talk, _rest: str) -> None:
    """Begin another session with your next words. The one that is open is kept; /sessions lists it."""
    await talk.go_to(None)
    talk.note("A new session; the old one is kept (/sessions).")


@command("sessions", "list sessions; with words, those that have them", group=_GROUP, takes="[WORDS]")
async def sessions(talk: Talk, rest: str) -> None:
    """List sessions, the last used first; → marks the one that is open.

    With words, those whose title or text has all of them, each with the piece that was found.
    /resume takes the number, the id or the title.
    """
    await _list(talk, rest)


@command("resume", "continue a session", group=_GROUP, takes="[NUMBER | ID | TITLE]", idle=True)
async def resume(talk: Talk, rest: str) -> None:
    """Continue a session: by its number in the last list, the beginning of its id, or its title.

    Without any of these you choose from a list.
    """
    wanted = rest or await _choose(talk)
    if not wanted:
        return
    session_id = await find_session(talk, wanted)
    await talk.open_session(session_id)


@command("rename", "give this session a title", group=_GROUP, takes="[TITLE]")
async def rename(talk: Talk, rest: str) -> None:
    """Give this session a title, by which it is listed and resumed. Without one you are asked."""
    session_id = talk.need_session()
    title = rest or (await talk.ask("Which title? (Esc leaves it as it is)") or "").strip()
    if not title:
        talk.note("The title stays as it was.")
        return
    info = await talk.app.rename_session_async(session_id, title)
    talk.note(f"This session is called {one_line(info.title)!r} now.")


async def find_session(talk: Talk, wanted: str) -> str:
    """Return the id of the session that is meant.

    Raises:
        AgentError: If there is none, or more than one.
    """
    listed = talk.notes.sessions or await _ids(talk)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(listed):
        return listed[int(wanted) - 1]
    try:
        return (await asyncio.to_thread(find, talk.app, wanted)).id
    except CommandError as error:
        problem = str(error).removesuffix(error.hint).rstrip("; ")
        raise AgentError(f"{problem}: /sessions lists them, and /sessions WORDS finds any") from error


@command("branches", "choose another branch of this session", group=_GROUP, idle=True)
async def branches(talk: Talk, _rest: str) -> None:
    """Choose among the sessions that this one was forked from, and those that were forked from it.

    /edit, /rewind, /fork and /undo make branches; each stands below the one that it was made from.
    """
    own = talk.need_session()
    infos = {info.id: info for info in await _all(talk)}
    family = list(_family(infos, own))
    if len(family) == 1:
        talk.note("This session has no branches; /fork, /edit and /rewind make them.")
        return
    listed = await _choices(talk, [infos[one] for one, _depth in family])
    choices = [
        replace(choice, label=f"{'  ' * depth}{choice.label}")
        for choice, (_one, depth) in zip(listed, family, strict=True)
    ]
    chosen = await talk.pick(Picker("Which branch?", choices, start=own))
    if chosen is not None and chosen != own:
        await talk.open_session(chosen)


def _family(infos: Mapping[str, SessionInfo], own: str) -> Iterator[tuple[str, int]]:
    """Yield the sessions that have a common beginning with one, each with how far down it stands."""
    top, seen = own, {own}
    while (parent := infos[top].parent_id) is not None and parent in infos and parent not in seen:
        top = parent
        seen.add(parent)
    below: list[tuple[str, int]] = [(top, 0)]
    while below:
        one, depth = below.pop()
        yield one, depth
        made = [info.id for info in infos.values() if info.parent_id == one]
        below += [(each, depth + 1) for each in made]


async def _all(talk: Talk) -> list[SessionInfo]:
    page = await talk.app.list_sessions_async(limit=_MOST)
    return list(page.sessions)


async def _choices(talk: Talk, infos: Sequence[SessionInfo]) -> list[Choice]:
    own = talk.conversation.session_id
    first = await talk.app.first_messages_async([info.id for info in infos if not info.title])
    return [
        Choice(
            info.id,
            _name(info, first.get(info.id)),
            f"{age(info.updated)} · {count(info.messages, 'message')} · {info.id[:8]}",
            "→" if info.id == own else " ",
        )
        for info in infos
    ]


async def _choose(talk: Talk) -> str:
    if talk.screen.is_live:
        choices = await _choices(talk, await _all(talk))
        if not choices:
            talk.note("There are no sessions yet.")
            return ""
        return await talk.pick(Picker("Which session?", choices)) or ""
    await _list(talk, "")
    if not talk.notes.sessions:
        return ""
    answer = await talk.ask("Which one? Its number, id or title (Esc stays here)")
    return (answer or "").strip()


async def _ids(talk: Talk) -> tuple[str, ...]:
    page = await talk.app.list_sessions_async(limit=_LISTED)
    return tuple(info.id for info in page.sessions)


async def _list(talk: Talk, words: str) -> None:
    page = await talk.app.list_sessions_async(words or None, limit=_LISTED)
    talk.notes.sessions = tuple(info.id for info in page.sessions)
    first = await talk.app.first_messages_async([info.id for info in page.sessions if not info.title])
    for number, info in enumerate(page.sessions, 1):
        talk.row(_row(talk, number, info), _name(info, first.get(info.id)))
        if info.match:
            talk.note(f"      … {one_line(info.match)}")
        if added := added_line(info):
            talk.note(f"      {added}")
    if not page.sessions:
        talk.note(f"No session has {one_line(words)!r} in it." if words else "There are no sessions yet.")
    elif page.cursor is not None:
        talk.note("There are more; /sessions WORDS finds any of them.")


def _row(talk: Talk, number: int, info: SessionInfo) -> str:
    here = "→" if info.id == talk.conversation.session_id else " "
    about = f"{age(info.updated):>6}  {count(info.messages, 'message'):>12}  {info.agent_id or '-'}"
    return f"{here}{number:>3}  {info.id[:8]}  {about} "


def _name(info: SessionInfo, first: Message | None) -> str:
    """Return what people know a session by: its title, or its first words."""
    if info.title:
        return one_line(info.title, _NAME)
    return one_line(first.content, _NAME) if first is not None else "(empty)"


_WHOLE = ".zip"


@command("export", "write this session to a file", group=_GROUP, takes="[FILE]")
async def export(talk: Talk, rest: str) -> None:
    """Write this session to a file. Text that looks like a secret is left out.

    The end of the name decides the format: `.zip` has everything and can be imported again, `.md`,
    `.html` and `.json` are for reading. Without a name it is session-ID.zip in this folder.
    """
    session_id = talk.need_session()
    path = await asyncio.to_thread(target, rest or f"session-{session_id[:8]}{_WHOLE}")
    if path.exists() and not await _may_replace(talk, path):
        talk.note("Nothing was written.")
        return
    if path.suffix.lower() == _WHOLE:
        await talk.app.export_session_async(session_id, path)
    else:
        await asyncio.to_thread(write_transcript, talk.app, session_id, path)
    talk.note(f"Written to {one_line(path)}; text that looks like a secret is left out.")


@command("import", "read a session from a file, and continue it", group=_GROUP, takes="[FILE]", idle=True)
async def import_(talk: Talk, rest: str) -> None:
    """Read a session from a file that /export wrote (`.zip` or `.json`), and continue it.

    A system message in it, which the model would take for instructions of yours, is shown to you first.
    """
    name = rest or (await talk.ask("Which file? (Esc leaves it)") or "").strip()
    if not name:
        return
    file = await asyncio.to_thread(source, name)
    try:
        info = await talk.app.import_session_async(file, metadata=here())
    except SystemMessagesRefused as refusal:
        if not await _agrees(talk, refusal):
            talk.note("Nothing was imported.")
            return
        info = await talk.app.import_session_async(file, metadata=here(), allow_system=refusal.texts)
    await talk.open_session(info.id)
    talk.note("\n".join([f"Imported; this is {info.id[:8]} now.", *import_lines(info)]))


def target(name: str) -> Path:
    """Return the path of the file to write.

    Raises:
        AgentError: If it cannot be one.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        raise AgentError(f"{one_line(path)!r} is a folder: give the name of a file in it")
    if path.suffix.lower() not in (_WHOLE, *FORMS):
        known = ", ".join((_WHOLE, *FORMS))
        raise AgentError(f"{one_line(path)!r} must end in one of {known}, which says what it becomes")
    if not path.parent.is_dir():
        raise AgentError(f"there is no folder {one_line(path.parent)!r}: create it first")
    return path


def source(name: str) -> Path:
    """Return the path of the file to read.

    Raises:
        AgentError: If there is none.
    """
    path = Path(name).expanduser()
    if not path.is_file():
        raise AgentError(f"there is no file {one_line(path)!r}: give the name of one that /export wrote")
    return path


async def _agrees(talk: Talk, refusal: SystemMessagesRefused) -> bool:
    """Show the system messages of a file, and ask whether they may come."""
    talk.note("\n".join(instruction_lines(refusal)))
    answer = await talk.ask("Import it, and let the model follow these instructions? [y/N]")
    return (answer or "").strip().lower() in ("y", "yes")


async def _may_replace(talk: Talk, path: Path) -> bool:
    answer = await talk.ask(f"{one_line(path)} exists already. Replace it? [y/N]")
    return (answer or "").strip().lower() in ("y", "yes")
