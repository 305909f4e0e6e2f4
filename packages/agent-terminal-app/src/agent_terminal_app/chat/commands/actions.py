"""`/actions`, every plugin action as a command of its own, and the follow-ups of a card by their number.

Nothing that a card offers happens unless the user chooses it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_core.errors import nearest
from agent_terminal_app.chat.agent import who_answers
from agent_terminal_app.chat.commands.cards import Card
from agent_terminal_app.chat.commands.messages import copy_and_tell
from agent_terminal_app.chat.commands.offers import (
    Field,
    Offer,
    by_name,
    fill_in,
    find_elements,
    find_offers,
    missing,
    read_inline,
    shortest_names,
    unknown_elements,
)
from agent_terminal_app.chat.commands.registry import (
    Command,
    Talk,
    command,
    covered_actions,
    finder,
    fixed_names,
    still_working,
    suggester,
)
from agent_terminal_app.chat.rendering.text import count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_core.actions import ActionInput
    from agent_terminal_app.chat.commands.cards import FollowUp
    from agent_terminal_app.chat.conversation import Conversation

_SHOWN_BY = {
    "sessions": "/sessions",
    "settings": "/config",
    "plugins": "/plugins",
    "models": "/model",
    "agents": "/agent",
}
"""The commands for the places that an effect can lead to."""
_YES = ("y", "yes")
_QUERY = "query"
"""The input by which the list of a collection is searched."""


async def show_outcome(talk: Talk, label: str, result: Mapping[str, Any]) -> None:
    """Show what an action came to."""
    card = Card.read(result["display"]) if "display" in result else None
    if error := result.get("error"):
        talk.fail(error.get("message") or error if isinstance(error, Mapping) else error)
    elif card is None:
        talk.note(f"{label}: {one_line(result.get('message') or 'done')}")
    if card is not None:
        show_card(talk, card)
    await _show_mutations(talk, result.get("mutations") or {})
    for effect in result.get("ui_effects") or ():
        await _follow_effect(talk, effect)


def show_card(talk: Talk, card: Card) -> None:
    """Show a card; its follow-ups can be chosen from now on, those of an earlier card no longer."""
    updated = bool(card.display_id) and card.display_id in talk.notes.shown
    screen = talk.screen
    for line in card.lines(color=screen.color, width=screen.width, updated=updated, by_key=screen.is_live):
        screen.line(line)
    talk.notes.shown.add(card.display_id)
    talk.notes.card = card
    talk.conversation.card_choices = len(card.follow_ups)
    talk.conversation.changed()


async def _show_mutations(talk: Talk, mutations: Mapping[str, Any]) -> None:
    made, changed, deleted = (list(mutations.get(key, ())) for key in ("created", "updated", "deleted"))
    here = talk.conversation.session_id
    if made:
        talk.notes.sessions = tuple(made)
        for number, session_id in enumerate(made, 1):
            talk.note(f"Made session {one_line(session_id)}; /resume {number} goes there.")
    if here in changed:
        talk.note("This session was changed.")
    if others := [one for one in changed if one != here]:
        talk.note(f"Changed {count(len(others), 'other session')}.")
    if deleted:
        talk.note(f"Deleted {count(len(deleted), 'session')}.")
    if here in deleted:
        await talk.go_to(None)
        talk.note("This session was among them; your next message starts a new one.")


async def _follow_effect(talk: Talk, effect: Mapping[str, Any]) -> None:
    """Do what an action wants of a front end, as far as a terminal can."""
    match effect:
        case {"type": "toast", "text": text}:
            (talk.fail if effect.get("variant") == "error" else talk.note)(one_line(text))
        case {"type": "open_session", "session_id": session_id}:
            await _open_wanted(talk, session_id)
        case {"type": "reload"}:
            pass  # a terminal reads a session anew with every request
        case {"type": "navigate", "to": place} if place in _SHOWN_BY:
            talk.note(f"{_SHOWN_BY[place]} shows the {place}.")
        case {"type": "open_url", "url": url}:
            talk.note("There is a page to see; it was not opened:")
            talk.line(url)
        case {"type": "set_input", "text": text} if talk.conversation.fill is not None:
            talk.conversation.fill(text)
        case _:
            kind = one_line(str(effect.get("type", "")), 40)
            talk.note(f"(The effect {kind!r} means nothing in a terminal.)")


async def _open_wanted(talk: Talk, session_id: str) -> None:
    if talk.conversation.running:
        talk.note(f"The agent is working; /resume {one_line(session_id)} opens the session it wants.")
        return
    await talk.open_session(session_id)
    talk.note(f"This is {one_line(session_id)[:8]} now.")


_GROUP = "Plugins"
_SESSION = "session_id"


def _choices(conversation: Conversation, _typed: str) -> list[tuple[str, str]]:
    return [(offer.name, offer.about) for offer in _offers_now(conversation)]


@command(
    "actions",
    "list the actions of plugins, or run one",
    group=_GROUP,
    takes="[NAME [INPUT=VALUE …]]",
    choices=_choices,
)
async def actions(talk: Talk, rest: str) -> None:
    """List the actions of plugins for this session and for the program, or run one.

    Each is a command of its own as well: /PLUGIN.ACTION, or /ACTION where that means only one. The chat asks
    for its inputs, unless you write them after the name as INPUT=VALUE. Texts that it needs can be written
    without INPUT=.
    """
    if rest:
        name, _, inline = rest.partition(" ")
        await run_offer(talk, await need_offer(talk, name), inline)
        return
    offers = await find_offers(talk.conversation)
    for offer in offers:
        talk.row(f"  /{offer.name:<34}", offer.about)
    talk.note("/actions PLUGIN.ACTION runs one." if offers else "No plugin offers an action.")
    if unknown := unknown_elements(await find_elements(talk.conversation)):
        talk.note(f"(A terminal cannot show: {', '.join(unknown)}.)")


@finder
async def find_action(talk: Talk, name: str) -> Command | None:
    """Return the action of that name as a command; mere numbers are choices of a card."""
    if name.isdecimal():
        return None
    offer = by_name(await find_offers(talk.conversation), fixed_names()).get(name)
    return None if offer is None else as_command(name, offer)


def as_command(name: str, offer: Offer) -> Command:
    """Return an action as a command."""
    inputs = offer.action.inputs.values()
    takes = " ".join(f"{one.name}=…" if one.required else f"[{one.name}=…]" for one in inputs)
    lines = [offer.description, *(_input_line(one) for one in inputs)]
    if offer.confirm:
        lines.append(f"It asks before it runs: {one_line(offer.confirm)}")
    if offer.icon:
        lines.append(f"(A terminal does not show its icon, {one_line(offer.icon)}.)")
    return Command(
        name=name,
        run=partial(_run_by_name, offer=offer),
        about=offer.about,
        group=_GROUP,
        takes=one_line(takes),
        details="\n".join(line for line in lines if line),
    )


@suggester
def suggest_actions(conversation: Conversation) -> list[tuple[str, str]]:
    """Return the actions that can be asked for now, by their shortest names."""
    return shortest_names(_offers_now(conversation), fixed_names(), covered_actions())


def _offers_now(conversation: Conversation) -> list[Offer]:
    """Return what can be asked for; somebody is typing, so a plugin that fails must not get in the way."""
    try:
        return asyncio.run(find_offers(conversation))
    except AgentError:
        return []


async def find_offer(talk: Talk, plugin: str, action_id: str) -> Offer | None:
    """Return an action of a plugin, if it is on offer."""
    return by_name(await find_offers(talk.conversation)).get(f"{plugin}.{action_id}")


async def need_offer(talk: Talk, name: str) -> Offer:
    """Return the action of that name.

    Raises:
        AgentError: If there is none.
    """
    known = by_name(await find_offers(talk.conversation))
    if name not in known:
        whole = [one for one in known if "." in one]
        raise AgentError(f"no plugin offers {one_line(name, 60)!r}: {nearest(name, whole)}")
    return known[name]


async def run_offer(talk: Talk, offer: Offer, inline: str = "") -> None:
    """Ask for what an action needs, run it, and show what came of it."""
    if offer.is_list and _QUERY in offer.action.inputs and "=" not in inline:
        given = {_QUERY: inline.strip()}
    else:
        given = read_inline(offer.action, inline)
    wanted = missing(offer.action, given) if given else list(offer.action.inputs.values())
    values = await ask_for(talk, offer, wanted)
    if values is not None:
        await execute(talk, offer, {**given, **values})


async def ask_for(talk: Talk, offer: Offer, wanted: Iterable[ActionInput]) -> dict[str, Any] | None:
    """Return the values that the user gives; None if they leave."""
    inputs = list(wanted)
    if inputs:
        talk.note(f"{offer.title} (Esc leaves it)")
        for line in str(offer.dialog.get("body", "")).splitlines():
            talk.line(line)
    values = await fill_in([_field(talk, offer, one) for one in inputs], talk.ask, talk.fail)
    if values is None:
        talk.note(f"{one_line(offer.label)}: cancelled, nothing was done.")
    return values


async def execute(talk: Talk, offer: Offer, params: Mapping[str, Any]) -> dict[str, Any]:
    """Run an action, show what came of it, and return its result; it asks first if it wants that."""
    session_id = talk.need_session() if offer.needs_session else talk.conversation.session_id
    if offer.confirm:
        answer = await talk.ask(f"{one_line(offer.confirm)} [y/N]")
        if (answer or "").strip().lower() not in _YES:
            talk.note(f"{one_line(offer.label)}: cancelled, nothing was done.")
            return {"status": "cancelled"}
    terminal = {"width": talk.screen.width, "color": talk.screen.color}
    place = {"terminal": terminal, **({"confirmed": True} if offer.confirm else {})}
    async with still_working(talk.note, one_line(offer.label)):
        result = await _result(talk, offer, session_id, params, place)
    await show_outcome(talk, one_line(offer.label), result)
    return result


async def _result(
    talk: Talk, offer: Offer, session_id: str | None, params: Mapping[str, Any], place: dict[str, Any]
) -> dict[str, Any]:
    action, app = offer.action, talk.app
    if offer.is_of_application:
        return await app.execute_application_action_async(action.plugin, action.id, params, place)
    if session_id is None:
        who = await who_answers(talk.conversation)
        run = who.core.execute_session_action_async
        _, result = await run(who.session, dict(who.config), action.plugin, action.id, dict(params), place)
    else:
        _, result = await app.execute_session_action_async(
            session_id, action.plugin, action.id, params, place
        )
        await talk.conversation.count_again()
    return result


async def _run_by_name(talk: Talk, rest: str, *, offer: Offer) -> None:
    await run_offer(talk, offer, rest)


def _field(talk: Talk, offer: Offer, wanted: ActionInput) -> Field:
    """Return the field of an input; where a session is wanted, this one is meant unless somebody says so."""
    here = talk.conversation.session_id if wanted.name == _SESSION and wanted.default is None else None
    return Field.of(wanted, offer.input(wanted.name), default=here)


def _input_line(wanted: ActionInput) -> str:
    plain = replace(wanted, description="")
    about = f": {one_line(wanted.description)}" if wanted.description else ""
    return f"  {one_line(wanted.name)}={Field.of(plain).question.partition(' ')[2]}{about}"


_DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@finder
async def find_follow_up(talk: Talk, name: str) -> Command | None:
    """Return a follow-up of the last card as a command."""
    card = talk.notes.card
    if not name.isdecimal() or card is None:
        return None
    number = int(name)
    if not 1 <= number <= len(card.follow_ups):
        raise AgentError(f"the last card has no choice {number}")
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
        answer = await talk.ask(f"{chosen.host} is reached without encryption. Open it anyway? [y/N]")
        if (answer or "").strip().lower() not in _YES:
            talk.note("It was not opened.")
            return
    if not has_browser(os.environ):
        talk.note("There is no desktop here: open the address above yourself.")
        return
    opened = await asyncio.to_thread(webbrowser.open, chosen.url)
    talk.note(f"Opened {chosen.host}." if opened else "No browser opened: open the address above yourself.")


def has_browser(environment: Mapping[str, str]) -> bool:
    """Say whether a browser could open in a window; one inside this terminal would only be in the way."""
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
