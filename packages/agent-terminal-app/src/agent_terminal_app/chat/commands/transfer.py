"""`/export`, `/import`: conversations as files."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_core import AgentError
from agent_terminal_app.arrivals import here, told_of_arrival
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.commands.sessions import open_session
from agent_terminal_app.chat.words import one_line

_GROUP = "Sessions"
_WHOLE = ".zip"


@command("export", "write this session to a file", group=_GROUP, takes="[FILE]")
async def export(talk: Talk, rest: str) -> None:
    """Write this session to a file. What looks like a secret is left out of it.

    The end of the name says what becomes of it: `.zip` has everything and can be imported again, `.md`,
    `.html` and `.json` are for reading. Without a name it is session-ID.zip in this folder.
    """
    from agent_terminal_app.transcripts import write_transcript

    session_id = talk.need_session()
    path = await asyncio.to_thread(target, rest or f"session-{session_id[:8]}{_WHOLE}")
    if path.exists() and not await _may_replace(talk, path):
        talk.note("Nothing was written.")
        return
    if path.suffix.lower() == _WHOLE:
        await talk.app.export_session_async(session_id, path)
    else:
        await asyncio.to_thread(write_transcript, talk.app, session_id, path)
    talk.note(f"Written to {one_line(path)}; what looks like a secret is left out.")


@command("import", "read a session from a file, and go on with it", group=_GROUP, takes="[FILE]", idle=True)
async def import_(talk: Talk, rest: str) -> None:
    """Read a session from a file that /export wrote (`.zip` or `.json`), and go on with it."""
    name = rest or (await talk.ask("Which file? (Esc leaves it)") or "").strip()
    if not name:
        return
    file = await asyncio.to_thread(source, name)
    info = await talk.app.import_session_async(file, metadata=here())
    await open_session(talk, info.id)
    talk.note("\n".join([f"Imported; this is {info.id[:8]} now.", *told_of_arrival(info)]))


def target(name: str) -> Path:
    """Return the file that shall be written.

    Raises:
        AgentError: If it cannot be one.
    """
    from agent_terminal_app.transcripts import FORMS

    path = Path(name).expanduser()
    if path.is_dir():
        raise AgentError(f"{one_line(path)!r} is a folder: give the name of a file in it")
    if path.suffix.lower() not in (_WHOLE, *FORMS):
        known = ", ".join((_WHOLE, *FORMS))
        raise AgentError(f"{one_line(path)!r} must end in one of {known}, which says what it becomes")
    if not path.parent.is_dir():
        raise AgentError(f"there is no folder {one_line(path.parent)!r}: make it first")
    return path


def source(name: str) -> Path:
    """Return the file that shall be read.

    Raises:
        AgentError: If there is none.
    """
    path = Path(name).expanduser()
    if not path.is_file():
        raise AgentError(f"there is no file {one_line(path)!r}: give the name of one that /export wrote")
    return path


async def _may_replace(talk: Talk, path: Path) -> bool:
    answer = await talk.ask(f"{one_line(path)} is there already. Replace it? [y/N]")
    return (answer or "").strip().lower() in ("y", "yes")
