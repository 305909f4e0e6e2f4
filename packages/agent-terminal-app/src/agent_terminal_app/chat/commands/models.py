"""`/model`, `/agent`: who answers in this session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_terminal_app.chat.answering import Answering, who_answers
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.commands.talk import tell_tools
from agent_terminal_app.chat.meanwhile import telling
from agent_terminal_app.chat.other_models import check, declare, find_provider, offered_by
from agent_terminal_app.chat.words import one_line

if TYPE_CHECKING:
    from agent_runtime import ModelSpec

_GROUP = "What answers"
_DEFAULT = "default"


@command(
    "model",
    "list models, or have another one answer",
    group=_GROUP,
    takes="[NUMBER | NAME | PROVIDER:MODEL | PROVIDER | default]",
    idle=True,
)
async def model(talk: Talk, rest: str) -> None:
    """List the models that are declared, or have another one answer in this session.

    It answers from your next message on, and the session keeps it. /model PROVIDER asks a provider what it
    offers; /model PROVIDER:MODEL takes one of these. /model default goes back to the agent's own.
    """
    if not rest:
        await _list(talk)
    elif provider := find_provider(talk.app, rest):
        await _list_offered(talk, provider)
    else:
        listed = dict(enumerate(talk.notes.models, 1))
        await use_model(talk, listed.get(int(rest), rest) if rest.isdecimal() else rest)


@command("agent", "list agents, or have another one answer", group=_GROUP, takes="[NAME]", idle=True)
async def agent(talk: Talk, rest: str) -> None:
    """List the agents that are declared, or give this session to another one."""
    if rest:
        session_id = await asyncio.to_thread(talk.conversation.begin)
        await talk.app.switch_agent_async(session_id, rest)
        who = await who_answers(talk.conversation)
        kept = f" with {_shown(who.model)}; /model default takes its own model" if _whose(who) else ""
        talk.note(f"{one_line(rest)} answers from now on{kept}.")
        await tell_tools(talk)
        return
    here = (await who_answers(talk.conversation)).agent.spec.id
    for name, spec in talk.app.config["agents"].items():
        mark = "→" if name == here else " "
        asked, about = one_line(spec.get("model", "")), one_line(spec.get("description", ""))
        talk.row(f"{mark} {one_line(name):<16} {asked:<24}", about)
    talk.note("/agent NAME has another one answer.")


async def use_model(talk: Talk, name: str) -> None:
    """Have a model answer in this session from the next message on.

    Raises:
        AgentError: If there is no such model, or it cannot be used; the session keeps the one it has.
    """
    from agent_app.services import OVERRIDES, own_overrides

    who = await who_answers(talk.conversation)
    own = who.agent.model
    wanted = own if name == _DEFAULT else await asyncio.to_thread(declare, talk.app, name)
    async with telling(talk.note, f"looking whether {_shown(wanted)} can be used"):
        await asyncio.to_thread(check, talk.app, who.agent.spec.id, wanted)
    session = await talk.app.load_session_async(await asyncio.to_thread(talk.conversation.begin))
    overrides = {key: value for key, value in own_overrides(session).items() if key != "model"}
    if (wanted.provider, wanted.model) != (own.provider, own.model):
        overrides["model"] = wanted.id
    await talk.app.save_session_async(session.with_metadata({OVERRIDES: overrides}))
    talk.note(f"{_shown(wanted)} answers from your next message on.")
    await tell_tools(talk)


def _shown(model: ModelSpec) -> str:
    return one_line(model.id.rstrip(":"))


async def _list(talk: Talk) -> None:
    who = await who_answers(talk.conversation)
    models = talk.app.runtime.registries.models
    talk.notes.models = tuple(models)
    for number, (name, spec) in enumerate(models.items(), 1):
        mark = "→" if name == who.model.id else " "
        real = f"{spec.provider} {spec.model}".rstrip()
        talk.row(f"{mark}{number:>3}  {one_line(name):<28} {one_line(real):<36}", _terms(spec))
    talk.note(f"{_shown(who.model)} answers{_whose(who)}. /model NUMBER or PROVIDER:MODEL takes another.")
    providers = ", ".join(talk.app.runtime.registries.providers)
    talk.note(f"/model PROVIDER lists what one offers: {one_line(providers)}")


def _whose(who: Answering) -> str:
    return "" if who.model.id == who.agent.model.id else f" in place of {_shown(who.agent.model)}"


def _terms(spec: ModelSpec) -> str:
    """Return the window and the prices of a model, as far as they are known."""
    parts = [] if spec.context_window is None else [f"context {spec.context_window:,}"]
    if spec.input_price is not None and spec.output_price is not None:
        parts.append(f"{spec.input_price:g} in, {spec.output_price:g} out per million tokens")
    return " · ".join(parts)


async def _list_offered(talk: Talk, provider: str) -> None:
    async with telling(talk.note, f"asking {one_line(provider)} what it offers"):
        offered = await asyncio.to_thread(offered_by, talk.app, provider)
    talk.notes.models = tuple(f"{provider}:{one.get('id') or one.get('name')}" for one in offered)
    for number, (name, one) in enumerate(zip(talk.notes.models, offered, strict=True), 1):
        window = one.get("context_window")
        told = f"context {window:,}" if isinstance(window, int) else ""
        talk.row(f"{number:>4}  {one_line(name):<48}", told)
    hint = "/model NUMBER takes one." if offered else "It says nothing; /model PROVIDER:MODEL takes any."
    talk.note(hint)
