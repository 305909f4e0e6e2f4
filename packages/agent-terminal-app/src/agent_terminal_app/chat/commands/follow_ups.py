"""`/1` to `/8`: what the last card offers. Nothing of it happens unless somebody chooses it."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_terminal_app.chat.commands.actions import ask_for, execute, need_offer
from agent_terminal_app.chat.commands.copying import copy_and_tell
from agent_terminal_app.chat.commands.registry import Command, finder
from agent_terminal_app.chat.forms import missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_terminal_app.chat.cards import Card, FollowUp
    from agent_terminal_app.chat.commands.registry import Talk

_DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@finder
async def find_follow_up(talk: Talk, name: str) -> Command | None:
    """Return a follow-up of the last card as a command."""
    card = talk.notes.card
    if not name.isdecimal() or card is None:
        return None
    number = int(name)
    if not 1 <= number <= len(card.follow_ups):
        raise AgentError(f"the last card has nothing of the number {number}")
    chosen = card.follow_ups[number - 1]
    return Command(
        name=name, run=partial(_follow, card=card, chosen=chosen), about=chosen.effect, group="Plugins"
    )


async def _follow(talk: Talk, _rest: str, *, card: Card, chosen: FollowUp) -> None:
    if chosen.kind == "open_url":
        await _open(talk, chosen)
    elif chosen.kind == "copy_text":
        talk.line(chosen.text)
        await copy_and_tell(talk, chosen.text)
    else:
        await _run(talk, card, chosen)


async def _open(talk: Talk, chosen: FollowUp) -> None:
    talk.line(chosen.url)
    if not chosen.url.startswith("https://"):
        answer = await talk.ask(f"{chosen.host} is reached without encryption. Open it all the same? [y/N]")
        if (answer or "").strip().lower() not in ("y", "yes"):
            talk.note("It was not opened.")
            return
    if not has_browser(os.environ):
        talk.note("There is no desktop here: open the address above yourself.")
        return
    import webbrowser

    opened = await asyncio.to_thread(webbrowser.open, chosen.url)
    talk.note(f"Opened {chosen.host}." if opened else "No browser took it: open the address above yourself.")


def has_browser(environment: Mapping[str, str]) -> bool:
    """Say whether a browser could open in a window; one inside of this terminal would only be in the way."""
    return sys.platform == "darwin" or any(environment.get(name) for name in _DESKTOPS)


async def _run(talk: Talk, card: Card, chosen: FollowUp) -> None:
    offer = await need_offer(talk, f"{chosen.plugin}.{chosen.action_id}")
    values = await ask_for(talk, offer, missing(offer.action, chosen.params))
    if values is None:
        return
    talk.notes.card = None
    try:
        await execute(talk, offer, {**chosen.params, **values})
    except BaseException:
        talk.notes.card = card  # what failed can be tried again
        raise
    newer: Card | None = talk.notes.card
    if chosen.keeps_card and (newer is None or not newer.follow_ups):
        talk.notes.card = card
