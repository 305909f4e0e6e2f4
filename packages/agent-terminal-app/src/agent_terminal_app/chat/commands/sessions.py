"""`/new`, `/sessions`, `/resume`, `/rename`: which conversation this is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.markdown import LineMarkdown
from agent_terminal_app.chat.other_models import lend_key_of_session
from agent_terminal_app.chat.words import age, count, one_line

if TYPE_CHECKING:
    from agent_app import SessionInfo

_GROUP = "Sessions"
_LISTED = 20
_RECALLED = 6
_NAME = 60
_MARK = 2
"""How many cells stand in front of what was said."""


@command("new", "begin another session", group=_GROUP, idle=True)
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


@command("resume", "go on with a session", group=_GROUP, takes="[NUMBER | ID | TITLE]", idle=True)
async def resume(talk: Talk, rest: str) -> None:
    """Go on with a session: by its number in the last list, the beginning of its id, or its title.

    Without any of these the sessions are listed, and you are asked.
    """
    wanted = rest or await _choose(talk)
    if not wanted:
        return
    session_id = await find_session(talk, wanted)
    await open_session(talk, session_id)


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


async def open_session(talk: Talk, session_id: str) -> None:
    """Go on in a session, and show its last words."""
    await talk.go_to(session_id)
    await asyncio.to_thread(lend_key_of_session, talk.app, session_id)
    for message in await talk.app.read_messages_async(session_id, limit=_RECALLED):
        if message.role not in ("user", "assistant") or not message.content:
            continue
        who = "»" if message.role == "user" else " "
        width = None if talk.screen.width is None else talk.screen.width - _MARK
        words = LineMarkdown(color=talk.screen.color, width=width)
        for line in [*words.feed(f"{message.content}\n"), *words.end()]:
            talk.screen.line(f"{who} {line}")


async def find_session(talk: Talk, wanted: str) -> str:
    """Return the id of the session that is meant.

    Raises:
        AgentError: If there is none, or more than one.
    """
    listed = talk.notes.sessions or await _ids(talk)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(listed):
        return listed[int(wanted) - 1]
    from agent_terminal_app.commands.sessions import find_session as find
    from agent_terminal_app.errors import CommandError

    try:
        return (await asyncio.to_thread(find, talk.app, wanted)).id
    except CommandError as error:
        problem = str(error).removesuffix(error.hint).rstrip("; ")
        raise AgentError(f"{problem}: /sessions lists them, and /sessions WORDS finds any") from error


async def _choose(talk: Talk) -> str:
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
    for number, info in enumerate(page.sessions, 1):
        talk.row(_row(talk, number, info), await _name(talk, info))
        if info.match:
            talk.note(f"      … {one_line(info.match)}")
    if not page.sessions:
        talk.note(f"No session has {one_line(words)!r} in it." if words else "There are no sessions yet.")
    elif page.cursor is not None:
        talk.note("There are more; /sessions WORDS finds any of them.")


def _row(talk: Talk, number: int, info: SessionInfo) -> str:
    here = "→" if info.id == talk.conversation.session_id else " "
    about = f"{age(info.updated):>6}  {count(info.messages, 'message'):>12}  {info.agent_id or '-'}"
    return f"{here}{number:>3}  {info.id[:8]}  {about} "


async def _name(talk: Talk, info: SessionInfo) -> str:
    """Return what people know a session by: its title, or its first words."""
    if info.title:
        return one_line(info.title, _NAME)
    messages = await talk.app.read_messages_async(info.id, before=1, limit=1)
    return one_line(messages[0].content, _NAME) if messages else "(empty)"
