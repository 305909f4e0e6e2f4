"""`/config`: settings with where they come from, and a change of one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.commands.config import find_value, literal, readings
from agent_terminal_app.errors import CommandError
from agent_terminal_app.opening import open_quietly
from agent_terminal_app.settings import unset_value
from agent_terminal_app.settings.ways import leaves, read_way, spell

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_terminal_app.chat.conversation import Conversation


def _choices(_conversation: Conversation, _typed: str) -> list[tuple[str, str]]:
    settings = open_quietly().settings
    return [(spell(place), f"{literal(leaf)} now") for place, leaf in leaves(settings.values)]


@command(
    "config",
    "show settings, or change one",
    group="The program",
    takes="[KEY | KEY=VALUE | unset KEY]",
    choices=_choices,
)
async def config(talk: Talk, rest: str) -> None:
    """Show all settings and where each comes from, or those below a key; KEY=VALUE changes one in your file.

    Keys have dots, as in `ui.theme=dark`. A value that cannot be right is refused. A change counts from the
    next start on; /model changes the model of this session at once.
    """
    verb, _, more = rest.partition(" ")
    if verb == "unset":
        await _change(talk, _unset, more.strip())
    elif "=" in rest:
        key, _, value = (more if verb == "set" else rest).partition("=")
        await _change(talk, _set, key.strip(), value.strip())
    elif verb == "set":
        raise AgentError("it is /config KEY=VALUE, for example /config ui.theme=dark")
    else:
        for line in await asyncio.to_thread(_shown, more.strip() if verb == "get" else rest):
            talk.line(line)


async def _change(talk: Talk, change: Callable[..., Path], key: str, *value: str) -> None:
    path = await asyncio.to_thread(change, key, *value)
    talk.note(f"Changed {path}; it counts from the next start of `agent` on.")
    for line in await asyncio.to_thread(_now, key):
        talk.line(line)
    if key in ("model", "default_agent"):
        talk.note(f"/{'model' if key == 'model' else 'agent'} changes this session at once.")


def _shown(key: str) -> list[str]:
    """Return the lines of all settings, or of those below a key."""
    settings = open_quietly().settings
    way = read_way(key) if key else ()
    value = find_value(settings.values, way)
    found = leaves(value, way) if isinstance(value, Mapping) else [(way, value)]
    lines = [(spell(place), literal(leaf)) for place, leaf in found]
    return [f"{name} = {leaf}   # {settings.origins.get(name, 'several places')}" for name, leaf in lines]


def _now(key: str) -> list[str]:
    """Return what holds at the next start; another place may say more than the person's file."""
    try:
        return _shown(key)
    except CommandError:
        return []


def _set(key: str, value: str) -> Path:
    from agent_terminal_app.plugin_settings import set_checked

    paths = open_quietly().paths
    refusals: list[CommandError] = []
    for reading in readings(value):
        try:
            return set_checked(paths, key, reading)
        except CommandError as error:
            refusals.append(error)
    raise refusals[0]


def _unset(key: str) -> Path:
    return unset_value(open_quietly().paths, key)
