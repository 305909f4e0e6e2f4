"""`/permissions`: which calls of tools run, wait or never run, and who said so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.words import one_line
from agent_terminal_app.opening import open_quietly

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_app import Grant

_SHORT = 8


@command("permissions", "list rules and grants, or take a grant back", group="Plugins", takes="[revoke ID]")
async def permissions(talk: Talk, rest: str) -> None:
    """List the rules and grants that say which calls of tools run, wait for you, or never run.

    The strictest come first. `/permissions revoke ID` takes a grant back, by its id or the beginning of it;
    from the next call on it does not count any more.
    """
    verb, _, wanted = rest.partition(" ")
    if not rest:
        await _list(talk)
    elif verb == "revoke" and wanted.strip():
        await _revoke(talk, wanted.strip())
    else:
        raise AgentError("it is /permissions, or /permissions revoke ID with the id of a grant")


async def _list(talk: Talk) -> None:
    from agent_terminal_app.permission_rows import permission_rows

    settings = (await asyncio.to_thread(open_quietly)).settings
    session_id = talk.conversation.session_id
    for row in await asyncio.to_thread(permission_rows, talk.app, settings, session_id):
        name = f"{row.effect:<10} {one_line(row.pattern):<32} {one_line(row.scope):<20}"
        talk.row(f"  {name} {row.id[:_SHORT]:<{_SHORT}}", one_line(row.origin))
    talk.note("/permissions revoke ID takes a grant back; [permissions] of /config has the rules.")


async def _revoke(talk: Talk, wanted: str) -> None:
    grant = _meant(await talk.app.grants_async(), wanted)
    await talk.app.revoke_async(grant.id)
    talk.note(f"Taken back: {grant.effect} {one_line(grant.pattern)}. It does not count for the next call.")


def _meant(grants: Iterable[Grant], wanted: str) -> Grant:
    found = [grant for grant in grants if grant.id.startswith(wanted)]
    if len(found) != 1:
        problem = "several grants begin" if found else "there is no grant that begins"
        raise AgentError(f"{problem} with {one_line(wanted, 60)!r}: /permissions lists their ids")
    return found[0]
