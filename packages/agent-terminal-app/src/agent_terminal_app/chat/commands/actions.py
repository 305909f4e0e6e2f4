"""`/actions`, and every action of a plugin as a command of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.answering import who_answers
from agent_terminal_app.chat.commands.outcomes import show_outcome
from agent_terminal_app.chat.commands.registry import COMMANDS, Command, Talk, command, finder, suggester
from agent_terminal_app.chat.forms import Field, fill_in, missing, read_inline
from agent_terminal_app.chat.meanwhile import telling
from agent_terminal_app.chat.offers import Offer, by_name, find_offers, shortest_names
from agent_terminal_app.chat.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_core.actions import ActionInput
    from agent_terminal_app.chat.conversation import Conversation

_GROUP = "Plugins"
_SESSION = "session_id"


def _choices(conversation: Conversation, _typed: str) -> list[tuple[str, str]]:
    return [(offer.name, offer.about) for offer in _offers_now(conversation)]


@command(
    "actions",
    "list what plugins can do, or do it",
    group=_GROUP,
    takes="[NAME [INPUT=VALUE …]]",
    choices=_choices,
)
async def actions(talk: Talk, rest: str) -> None:
    """List what plugins can do with this session and with the program, or do one of these things.

    Each is a command of its own as well: /PLUGIN.ACTION, or /ACTION where that means only one. What it
    needs to know is asked for, unless it stands behind the name as INPUT=VALUE.
    """
    if rest:
        name, _, inline = rest.partition(" ")
        await run_offer(talk, await need_offer(talk, name), inline)
        return
    offers = await find_offers(talk.conversation)
    for offer in offers:
        talk.row(f"  /{offer.name:<34}", offer.about)
    talk.note("/actions PLUGIN.ACTION runs one." if offers else "No plugin offers anything.")


@finder
async def find_action(talk: Talk, name: str) -> Command | None:
    """Return the action of that name as a command; mere numbers are choices of a card."""
    if name.isdecimal():
        return None
    offer = by_name(await find_offers(talk.conversation), COMMANDS).get(name)
    return None if offer is None else as_command(name, offer)


def as_command(name: str, offer: Offer) -> Command:
    """Return an action as a command."""
    inputs = offer.action.inputs.values()
    takes = " ".join(f"{one.name}=…" if one.required else f"[{one.name}=…]" for one in inputs)
    lines = [offer.action.description, *(_input_line(one) for one in inputs)]
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
    return shortest_names(_offers_now(conversation), COMMANDS)


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
    from agent_runtime.errors import nearest

    known = by_name(await find_offers(talk.conversation))
    if name not in known:
        whole = [one for one in known if "." in one]
        raise AgentError(f"no plugin offers {one_line(name, 60)!r}: {nearest(name, whole)}")
    return known[name]


async def run_offer(talk: Talk, offer: Offer, inline: str = "") -> None:
    """Ask for what an action needs, run it, and show what came of it."""
    given = read_inline(offer.action, inline)
    wanted = missing(offer.action, given) if given else list(offer.action.inputs.values())
    values = await ask_for(talk, offer, wanted)
    if values is not None:
        await execute(talk, offer, {**given, **values})


async def ask_for(talk: Talk, offer: Offer, wanted: Iterable[ActionInput]) -> dict[str, Any] | None:
    """Return the values that a person gives; None if they leave."""
    inputs = list(wanted)
    if inputs:
        talk.note(f"{one_line(offer.label)} (Esc leaves it)")
    values = await fill_in([_field(talk, offer, one) for one in inputs], talk.ask, talk.fail)
    if values is None:
        talk.note(f"{one_line(offer.label)}: left, nothing was done.")
    return values


async def execute(talk: Talk, offer: Offer, params: Mapping[str, Any]) -> dict[str, Any]:
    """Run an action, show what came of it, and return its result."""
    session_id = talk.need_session() if offer.needs_session else talk.conversation.session_id
    told = {"terminal": {"width": talk.screen.width, "color": talk.screen.color}}
    async with telling(talk.note, one_line(offer.label)):
        result = await _result(talk, offer, session_id, params, told)
    await show_outcome(talk, one_line(offer.label), result)
    return result


async def _result(
    talk: Talk, offer: Offer, session_id: str | None, params: Mapping[str, Any], told: dict[str, Any]
) -> dict[str, Any]:
    action, app = offer.action, talk.app
    if offer.is_of_application:
        return await app.execute_application_action_async(action.plugin, action.id, params, told)
    if session_id is None:
        who = await who_answers(talk.conversation)
        run = who.core.execute_session_action_async
        _, result = await run(who.session, dict(who.config), action.plugin, action.id, dict(params), told)
    else:
        _, result = await app.execute_session_action_async(session_id, action.plugin, action.id, params, told)
    return result


async def _run_by_name(talk: Talk, rest: str, *, offer: Offer) -> None:
    await run_offer(talk, offer, rest)


def _field(talk: Talk, offer: Offer, wanted: ActionInput) -> Field:
    """Return the field of an input; where a session is wanted, this one is meant unless somebody says so."""
    here = talk.conversation.session_id if wanted.name == _SESSION and wanted.default is None else None
    return Field.of(wanted, label=offer.input_labels.get(wanted.name, ""), default=here)


def _input_line(wanted: ActionInput) -> str:
    plain = replace(wanted, description="")
    about = f": {one_line(wanted.description)}" if wanted.description else ""
    return f"  {one_line(wanted.name)}={Field.of(plain).question.partition(' ')[2]}{about}"
