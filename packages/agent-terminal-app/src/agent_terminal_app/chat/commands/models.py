"""`/model`, `/agent`, `/cost`, `/context`: who answers, what was used, what the next request would send."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.context_windows import WindowCache
from agent_app.model_list import ModelChoices
from agent_app.overview import next_prompt
from agent_app.services import OVERRIDES, own_overrides
from agent_core import AgentError
from agent_runtime.state import State
from agent_runtime.suspension import STATE
from agent_runtime.tokens import counter_for
from agent_terminal_app.application import catalogue_of, model_list_of
from agent_terminal_app.chat.agent import Responder, agent_of, who_answers
from agent_terminal_app.chat.commands.registry import Talk, command, follow_model, still_working
from agent_terminal_app.chat.picker import Choice, Picker
from agent_terminal_app.chat.rendering.text import count, one_line
from agent_terminal_app.chat.usage import used_by_model
from agent_terminal_app.errors import error_text
from agent_terminal_app.output import short_count
from agent_terminal_app.paths import Paths
from agent_terminal_app.remote import RemoteApplication, server_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_app import AgentApplication
    from agent_app.model_list import ListedModel, Server
    from agent_core import Message, Session
    from agent_runtime import ModelSpec, ResolvedAgent

_GROUP = "Model and usage"
_DEFAULT = "default"


@command(
    "model",
    "list models, or switch to another",
    group=_GROUP,
    takes="[NUMBER | NAME | PROVIDER:MODEL | PROVIDER | default]",
    idle=True,
)
async def model(talk: Talk, rest: str) -> None:
    """Choose the model that answers in this session, from all that your settings and servers offer.

    Favourites (Ctrl+F) and the last ones come first. It answers from your next message on, and the session
    keeps it. /model PROVIDER:MODEL takes one by name, also of a server that you have set up under a name;
    /model PROVIDER lists what one offers. /model default goes back to the agent's own.
    """
    if (server := server_of(talk.app)) is not None:
        await _choose_on_server(talk, server, "model", rest)
    elif not rest:
        await (_choose(talk) if talk.screen.is_live else _list(talk))
    elif provider := catalogue_of(talk.app).find_provider(rest):
        await _list_offered(talk, provider)
    else:
        listed = dict(enumerate(talk.notes.models, 1))
        await use_model(talk, listed.get(int(rest), rest) if rest.isdecimal() else rest)


@command("agent", "list agents, or switch to another", group=_GROUP, takes="[NAME]", idle=True)
async def agent(talk: Talk, rest: str) -> None:
    """List the agents that are declared, or give this session to another one."""
    if (server := server_of(talk.app)) is not None:
        await _choose_on_server(talk, server, "agent", rest)
        return
    if rest:
        await _use_agent(talk, rest)
        return
    here = (await who_answers(talk.conversation)).agent.spec.id
    if talk.screen.is_live:
        found = talk.app.config["agents"].items()
        choices = [
            Choice(name, name, str(one.get("description", "")), "→" if name == here else " ")
            for name, one in found
        ]
        chosen = await talk.pick(Picker("Which agent answers from now on?", choices, start=here))
        if chosen is not None and chosen != here:
            await _use_agent(talk, chosen)
        return
    for name, spec in talk.app.config["agents"].items():
        mark = "→" if name == here else " "
        asked, about = one_line(spec.get("model", "")), one_line(spec.get("description", ""))
        talk.row(f"{mark} {one_line(name):<16} {asked:<24}", about)
    talk.note("/agent NAME switches to another one.")


async def _use_agent(talk: Talk, name: str) -> None:
    session_id = await asyncio.to_thread(talk.conversation.begin)
    await talk.app.switch_agent_async(session_id, name)
    who = await who_answers(talk.conversation)
    kept = f" with {_shown(who.model)}; /model default takes its own model" if _whose(who) else ""
    talk.note(f"{one_line(name)} answers from now on{kept}.")
    await follow_model(talk)


async def _choose(talk: Talk) -> None:
    """Have the user choose from every model; what servers offer is added when they have answered."""
    who = await who_answers(talk.conversation)
    kept, listed = ModelChoices(Paths.of_this_user().models), model_list_of(talk.app)
    known = {one.id: one for one in await asyncio.to_thread(listed.declared)}
    current = who.model.id.rstrip(":")

    def choice(name: str) -> Choice:
        mark = "→" if name == current else "★" if name in kept.favourites else " "
        return Choice(name, name, _about(known[name]) if name in known else "", mark)

    def star(one: Choice) -> Choice:
        kept.star(one.value)
        return choice(one.value)

    first = dict.fromkeys([*kept.favourites, *kept.recent, *known])
    picker = Picker(
        "Which model answers from your next message on?", map(choice, first), start=current, star=star
    )
    asked, silent = list(listed.servers()), list[str]()

    async def ask(server: Server) -> None:
        try:
            offered = await asyncio.to_thread(listed.offered, server, who.agent.spec.id)
            named = known.get(server.name)
            for one in offered:
                # What the settings declare under the name of its server is listed once, under that name.
                is_named = named is not None and one.model == named.model and one.id not in first
                name = server.name if is_named else one.id
                known[name] = _completed(known.get(name), one)
                picker.add([choice(name)])
        except AgentError as error:
            if type(error).__name__ != "KeyMissing":  # one without a key was never connected
                silent.append(server.name)
        asked.remove(server)
        waits = f"asking {', '.join(one.name for one in asked)} …" if asked else ""
        lost = f"no list from {', '.join(silent)}" if silent else ""
        picker.note = " · ".join(filter(None, [lost, waits]))
        talk.conversation.changed()

    asking = [asyncio.create_task(ask(server)) for server in tuple(asked)]
    try:
        chosen = await talk.pick(picker)
    finally:
        for task in asking:
            task.cancel()
    if chosen is None or chosen == current:
        talk.note(f"{one_line(current)} answers, as before.")
        return
    await use_model(talk, chosen)


def _completed(declared: ListedModel | None, offered: ListedModel) -> ListedModel:
    """Return a model with what its server says of it, where the settings do not say it."""
    if declared is None:
        return offered
    fields = ("context_window", "input_price", "output_price")
    unsaid = {name: getattr(offered, name) for name in fields if getattr(declared, name) is None}
    return replace(declared, **unsaid)


def _about(model: ListedModel) -> str:
    """Return what is known of a model, for the list to choose from."""
    real = f"{model.provider} {model.model}".rstrip() if model.declared and ":" not in model.id else ""
    window = "" if model.context_window is None else f"{short_count(model.context_window)} context"
    price = ""
    if model.input_price is not None and model.output_price is not None:
        price = f"${model.input_price:g} in, ${model.output_price:g} out"
    return " · ".join(filter(None, [real, window, price]))


async def _choose_on_server(talk: Talk, app: RemoteApplication, what: str, name: str) -> None:
    """List the models or agents of a server, or have another one answer."""
    if not name:
        for one in app.config[f"{what}s"].values():
            talk.row(
                f"  {one_line(one['id']):<28}", one_line(one.get("description") or one.get("model") or "")
            )
        talk.note(f"/{what} NAME has another one answer.")
        return
    session_id = await asyncio.to_thread(talk.conversation.begin)
    if what == "agent":
        await app.switch_agent_async(session_id, name)
    else:
        await asyncio.to_thread(app.use_model, session_id, "" if name == _DEFAULT else name)
    talk.note(f"{one_line(name)} answers from now on.")


async def use_model(talk: Talk, name: str) -> None:
    """Have a model answer in this session from the next message on.

    Raises:
        AgentError: If there is no such model, or it cannot be used; the session keeps the one it has.
    """
    who = await who_answers(talk.conversation)
    own = who.agent.model
    wanted = own if name == _DEFAULT else await asyncio.to_thread(_declare, talk.app, name)
    async with still_working(talk.note, f"looking whether {_shown(wanted)} can be used"):
        await asyncio.to_thread(catalogue_of(talk.app).check, who.agent.spec.id, wanted)
    session = await talk.app.load_session_async(await asyncio.to_thread(talk.conversation.begin))
    overrides = {key: value for key, value in own_overrides(session).items() if key != "model"}
    if (wanted.provider, wanted.model) != (own.provider, own.model):
        overrides["model"] = wanted.id
    await talk.app.save_session_async(session.with_metadata({OVERRIDES: overrides}))
    ModelChoices(Paths.of_this_user().models).take(_shown(wanted))
    talk.note(f"{_shown(wanted)} answers from your next message on.")
    await follow_model(talk)


def _shown(model: ModelSpec) -> str:
    return one_line(model.id.rstrip(":"))


async def _list(talk: Talk) -> None:
    who = await who_answers(talk.conversation)
    models = talk.app.models
    talk.notes.models = tuple(models)
    for number, (name, spec) in enumerate(models.items(), 1):
        mark = "→" if name == who.model.id else " "
        real = f"{spec.provider} {spec.model}".rstrip()
        talk.row(f"{mark}{number:>3}  {one_line(name):<28} {one_line(real):<36}", _terms(spec))
    talk.note(f"{_shown(who.model)} answers{_whose(who)}. /model NUMBER or PROVIDER:MODEL takes another.")
    providers = ", ".join(talk.app.providers)
    talk.note(f"/model PROVIDER lists what one offers: {one_line(providers)}")


def _whose(who: Responder) -> str:
    return "" if who.model.id == who.agent.model.id else f" in place of {_shown(who.agent.model)}"


def _terms(spec: ModelSpec) -> str:
    """Return the window and the prices of a model, as far as they are known."""
    parts = [] if spec.context_window is None else [f"context {spec.context_window:,}"]
    if spec.input_price is not None and spec.output_price is not None:
        parts.append(f"{spec.input_price:g} in, {spec.output_price:g} out per million tokens")
    return " · ".join(parts)


def _declare(app: AgentApplication, name: str) -> ModelSpec:
    """Return the model that a name stands for, declared for as long as this program runs.

    Raises:
        AgentError: If there is no such model, and no such provider.
    """
    try:
        return catalogue_of(app).declare(name)
    except AgentError as error:
        problem = one_line(str(error).replace(repr(name), repr(one_line(name, 80))))
        end = "" if problem.endswith("?") else "."
        raise AgentError(f"{problem}{end} /model lists the models") from error


def _offered_by(app: AgentApplication, provider: str) -> list[dict[str, Any]]:
    """Return the models that a provider offers, and remember their context windows.

    Raises:
        AgentError: If it cannot be asked.
    """
    windows = WindowCache(Paths.of_this_user().windows)
    try:
        return catalogue_of(app).offered_by(provider, agent_of(app, None), windows)
    except AgentError as error:
        raise AgentError(error_text(error)) from error


async def _list_offered(talk: Talk, provider: str) -> None:
    async with still_working(talk.note, f"asking {one_line(provider)} what it offers"):
        offered = await asyncio.to_thread(_offered_by, talk.app, provider)
    talk.notes.models = tuple(f"{provider}:{one.get('id') or one.get('name')}" for one in offered)
    for number, (name, one) in enumerate(zip(talk.notes.models, offered, strict=True), 1):
        window = one.get("context_window")
        about = f"context {window:,}" if isinstance(window, int) else ""
        talk.row(f"{number:>4}  {one_line(name):<48}", about)
    hint = "/model NUMBER takes one." if offered else "It lists none; /model PROVIDER:MODEL takes any."
    talk.note(hint)


_WHAT = {"user": "message", "assistant": "answer", "tool": "tool result", "system": "note to the model"}


class Part(NamedTuple):
    """Something that is sent, and about how many tokens it has."""

    what: str
    tokens: int


def parts_sent(agent: ResolvedAgent, model: ModelSpec, session: Session) -> list[Part]:
    """Return what would be sent to a model: the system prompt, the tools, and the messages by kind."""
    kept = session.metadata.get(STATE)
    state = State.restored(agent.env.keys, kept if isinstance(kept, Mapping) else {})
    counter = counter_for(state, model.id)
    prompt = next_prompt(replace(agent, model=model), session)
    system, messages = _split(agent.spec.system_prompt, prompt.messages)
    parts = [Part("system prompt", counter.messages(system))] if system else []
    if prompt.tools:
        parts.append(Part(count(len(prompt.tools), "tool"), counter.tools(prompt.tools)))
    for role in dict.fromkeys(message.role for message in messages):
        said = [message for message in messages if message.role == role]
        parts.append(Part(count(len(said), _WHAT.get(role, role)), counter.messages(said)))
    return parts


def _split(system_prompt: str, messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return the system prompt with what plugins put behind it, if it is sent, and everything else."""
    first = list(messages[:1])
    if first and first[0].role == "system" and str(first[0].content).startswith(system_prompt):
        return first, list(messages[1:])
    return [], list(messages)


def system_text(agent: ResolvedAgent, session: Session) -> str:
    """Return the whole system prompt that would be sent."""
    system, _messages = _split(agent.spec.system_prompt, next_prompt(agent, session).messages)
    return "\n".join(str(message.content) for message in system)


@command("cost", "show tokens and cost", group=_GROUP)
async def cost(talk: Talk, _rest: str) -> None:
    """Show the size of the last request, and the use of this session by model.

    Tokens are as the providers counted them. Money is known only for models that are declared with prices.
    """
    talk.line(f"last request: {talk.conversation.context:,} tokens")
    session_id = talk.conversation.session_id
    used = {} if session_id is None else await asyncio.to_thread(used_by_model, talk.app, session_id)
    for model, usage in used.items():
        spent = f" · {usage.cost:.4f} spent" if usage.cost else ""
        talk.line(
            f"{one_line(model)}: {count(usage.requests, 'request')}, {usage.input_tokens:,} tokens in "
            f"({usage.cached_input_tokens:,} cached), {usage.output_tokens:,} out{spent}"
        )
    total = sum(usage.total_tokens for usage in used.values())
    money = sum(usage.cost for usage in used.values())
    talk.line(f"this session: {total:,} tokens" + (f" · {money:.4f} spent" if money else ""))


@command("context", "show the parts of the next request", group=_GROUP, takes="[prompt]")
async def context(talk: Talk, rest: str) -> None:
    """Show the parts of the next request with their tokens, and the rest of the window.

    The counts are estimates; /cost has what the provider counted. `/context prompt` shows the system prompt.
    """
    who = await who_answers(talk.conversation)
    if rest.strip() == "prompt":
        text = await asyncio.to_thread(system_text, replace(who.agent, model=who.model), who.session)
        talk.line(text or "There is no system prompt.")
        return
    parts = await asyncio.to_thread(parts_sent, who.agent, who.model, who.session)
    total = sum(part.tokens for part in parts)
    for part in parts:
        talk.row(f"  {part.what:<28}", _share(part, total))
    windows = talk.conversation.windows
    window = await asyncio.to_thread(windows.find, who.agent.spec.id, who.model.id)
    left = "the window of the model is not known" if window is None else f"{total / window:.0%} of {window:,}"
    talk.row(f"  {'in all':<28}", f"~{total:,} tokens, {left}")
    talk.note("/context prompt shows the system prompt.")


def _share(part: Part, total: int) -> str:
    return f"~{part.tokens:,} tokens ({part.tokens / total:.0%})" if total else "~0 tokens"
