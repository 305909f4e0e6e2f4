"""What front ends ask about an application and its sessions, as plain data. Each question is a flow."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent_app import journal
from agent_app.agents import choose_agent
from agent_app.app_plugins import usable_elements
from agent_app.plans import plan_of
from agent_app.services import core_of
from agent_core import ArgumentError, Message
from agent_core.steps import Flow, run_blocking
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.env import Prompt
from agent_runtime.phases import Phase
from agent_runtime.prices import list_terms
from agent_runtime.results import Usage
from agent_runtime.run import Run
from agent_runtime.runs import RunRequest
from agent_runtime.side_request import ask_beside
from agent_runtime.suspension import unanswered
from agent_runtime.tokens import TokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from agent_app.assets import AssetStore
    from agent_app.services import Services
    from agent_core import AgentCore, Session
    from agent_runtime import ModelSpec, ResolvedAgent

R = TypeVar("R")


def state(services: Services, session_id: str) -> Flow[dict[str, Any]]:
    """Return info, holder, running state, waiting messages, approvals, plan and a cut answer of a session."""
    return (yield from run_blocking(partial(_state, services, session_id)))


def _state(services: Services, session_id: str) -> dict[str, Any]:
    store = services.store
    # First, so that the rest is at least as new: whoever goes on from there misses nothing.
    last_event = services.last_event(session_id)
    info, holder = store.info(session_id), store.holder(session_id)
    active = services.active.get(session_id)
    elsewhere = holder is not None and holder.owner != services.owner
    approvals = [one.to_dict() for one in store.approvals(session_id, undecided=True)]
    session = services.read(session_id).session
    is_idle = holder is None and active is None and not approvals
    return {
        "info": info.to_dict(),
        "holder": None if holder is None else holder.to_dict(),
        "running": "here" if active is not None and active.is_run else "elsewhere" if elsewhere else None,
        "queued": [one.to_dict() for one in store.inputs(session_id)],
        "approvals": approvals,
        "plan": [asdict(item) for item in plan_of(session)],
        "unfinished": _unfinished_answer(services, session) if is_idle else None,
        "last_event": last_event,
    }


_ENDS = frozenset({"final", "error"})
_BEGINNINGS = frozenset({"run_start", "step_start"})
_BEGINS_AGAIN = frozenset({"retry", "fallback"})
_MOST_EVENTS = 2000
"""How far back the log is read for the words of an answer; a step with more has shown much of a tool."""


def _unfinished_answer(services: Services, session: Session) -> dict[str, Any] | None:
    """Return the answer of a session that a crash has cut short; the caller knows that nobody works on it.

    A process that is killed logs no end: the log of the session has the beginning of a run or of a step, and
    behind it neither `final` nor `error`. The words that people have seen are in the log alone, since an
    answer becomes a message when it ends or is stopped. Calls of tools are messages by then, and have no
    results.

    Returns:
        `text`, the words that were shown, and `calls` without a result, each with its `call_id`, `name`,
        `arguments` and whether it was `begun`: then it may have run, in part or completely. None if the
        last answer was finished, or ended otherwise.
    """
    calls = unanswered(session)
    if not session.history or (session.history[-1].role == "assistant" and not calls):
        return None
    text = _words_since_beginning(services, session.session_id)
    if text is None:
        return None
    begun = services.store.open_intents(session.session_id) if calls else {}
    return {"text": "" if calls else text, "calls": [_described(call, begun) for call in calls]}


def _words_since_beginning(services: Services, session_id: str) -> str | None:
    """Return what was said since the last step or run began; None if that has ended, or there is none."""
    said: list[str] = []
    for place, event in enumerate(services.hub.read_back(session_id)):
        kind = event["type"]
        if kind in _ENDS:
            return None
        is_beginning = kind in _BEGINNINGS or (kind in _BEGINS_AGAIN and event.get("discarded"))
        if is_beginning or place >= _MOST_EVENTS:
            return "".join(reversed(said))
        if kind == "text":
            said.append(event["text"])
    return None


def _described(call: Mapping[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    about = call.get("function") or call.get("custom") or {}
    return {
        "call_id": call["id"],
        "name": about.get("name") or "",
        "arguments": about.get("arguments") or about.get("input") or "",
        "begun": call["id"] in begun,
    }


def agents(services: Services) -> list[dict[str, Any]]:
    """Return the declared agents."""
    default = choose_agent(services.config, None)
    registries = services.runtime.registries
    return [
        {
            "id": agent_id,
            "description": spec.description,
            "model": spec.model,
            "plugins": list(spec.plugin_ids),
            "delegates": list(spec.delegates),
            "handoffs": [handoff.agent for handoff in spec.handoffs],
            "default": agent_id == default,
        }
        for agent_id, spec in registries.agents.items()
    ]


def models(services: Services) -> list[dict[str, Any]]:
    """Return the declared models."""
    registries = services.runtime.registries
    return [
        {
            "id": model_id,
            "provider": spec.provider,
            "model": spec.model,
            **_terms(spec),
            "agents": [name for name, agent in registries.agents.items() if agent.model == model_id],
        }
        for model_id, spec in registries.models.items()
    ]


def _terms(spec: ModelSpec) -> dict[str, Any]:
    """Return the window and the prices of a model: as declared, else as the public list has them."""
    listed = list_terms(spec.provider, spec.model)
    declared = {
        "context_window": spec.context_window,
        "input_price": spec.input_price,
        "output_price": spec.output_price,
    }
    return {name: getattr(listed, name, None) if value is None else value for name, value in declared.items()}


def usage(services: Services, session_id: str) -> Flow[dict[str, Any]]:
    """Return what models used in a session."""
    return (yield from run_blocking(partial(_usage, services, session_id)))


def _usage(services: Services, session_id: str) -> dict[str, Any]:
    used: dict[str, Usage] = {}
    for event in services.store.usage_events(session_id):
        model = str(event["model"])
        used[model] = used.pop(model, Usage()) + Usage.from_dict(event["usage"])  # the last one is last
    return {
        "models": [{"model": model, **one.to_dict()} for model, one in used.items()],
        "total": sum(used.values(), Usage()).to_dict(),
    }


# The next request


def next_request(services: Services, session_id: str) -> Flow[dict[str, Any]]:
    """Return what the next request of a session would send, before a provider puts it in its own form."""
    return (yield from run_blocking(partial(_next_request, services, session_id)))


def _next_request(services: Services, session_id: str) -> dict[str, Any]:
    session = services.read(session_id).session
    agent = services.resolve(session)
    return describe_prompt(agent, next_prompt(agent, session))


def describe_prompt(agent: ResolvedAgent, prompt: Prompt) -> dict[str, Any]:
    """Return what an agent sends with a prompt, with estimated tokens."""
    counter = TokenCounter()
    return {
        "agent": agent.spec.id,
        "model": agent.model.id,
        "context_window": agent.model.context_window,
        "messages": [
            {**message.to_dict(), "tokens": counter.messages([message])} for message in prompt.messages
        ],
        "tools": [
            {"name": tool.name, "description": tool.description, "tokens": counter.tools([tool])}
            for tool in prompt.tools
        ],
    }


def next_prompt(agent: ResolvedAgent, session: Session) -> Prompt:
    """Return the prompt as an agent's plugins would leave it: summaries in place, old messages left out."""
    own = agent.spec.system_prompt
    front = [Message("system", own)] if own else []
    prompt = Prompt([*front, *session.messages], agent.descriptors, agent.config)
    if not agent.env.request_transforms:
        return prompt
    run = Run(agent, RunRequest(agent.spec.id, session=session), SYSTEM_CLOCK, ask_beside, keeps=False)
    try:
        view = run.view(Phase.BEFORE_INFERENCE, run.state)
        for _plugin, transform in agent.env.request_transforms:
            prompt = transform(prompt, view)
    finally:
        run.end()
    return prompt


# Files of a session


def assets(services: Services, session_id: str) -> Flow[list[dict[str, Any]]]:
    """Return the files of a session."""
    yield from run_blocking(partial(services.store.info, session_id))
    if services.assets is None:
        return []
    found = yield from run_blocking(partial(services.assets.list, session_id))
    return [one.to_dict() for one in found]


def add_asset(
    services: Services, session_id: str, data: bytes | BinaryIO, name: str, media_type: str | None
) -> Flow[dict[str, Any]]:
    """Keep a file for a session."""
    store = _assets(services)
    yield from run_blocking(partial(services.store.info, session_id))
    asset = yield from run_blocking(partial(store.put, session_id, data, name=name, media_type=media_type))
    about = asset.to_dict()
    yield from run_blocking(
        partial(
            journal.record,
            services,
            session_id,
            lambda: None,
            lambda _nothing: {"type": "asset_added", "asset": about},
        )
    )
    return about


def read_asset(services: Services, session_id: str, asset_id: str) -> Flow[tuple[dict[str, Any], bytes]]:
    """Return what is known of a file, and its content."""
    store = _assets(services)
    yield from run_blocking(partial(services.store.info, session_id))
    asset = yield from run_blocking(partial(store.get, asset_id, session_id=session_id))
    return asset.to_dict(), (yield from run_blocking(partial(store.read, asset_id)))


def remove_asset(services: Services, session_id: str, asset_id: str) -> Flow[bool]:
    """Take a file from a session."""
    remove = partial(_assets(services).remove, session_id, asset_id)
    yield from run_blocking(partial(services.store.info, session_id))
    removed = yield from run_blocking(remove)
    if removed:
        event: Any = {"type": "asset_removed", "asset_id": asset_id}
        tell = partial(journal.record, services, session_id, lambda: None, lambda _nothing: event)
        yield from run_blocking(tell)
    return removed


def _assets(services: Services) -> AssetStore:
    if services.assets is None:
        raise ArgumentError(
            "the application has no place for files: give assets=, a folder, when you make it"
        )
    return services.assets


# What plugins show


def ui_schema(services: Services, session_id: str | None) -> Flow[list[dict[str, Any]]]:
    """Return the elements of application plugins and, for a session, of its agent's plugins."""
    own = yield from run_blocking(partial(services.plugins.ui_elements, services.config))
    if session_id is None:
        return own
    elements = yield from _of_core(services, session_id, lambda core, config: core.get_ui_schema(config))
    return [*own, *usable_elements(elements)]


def completions(services: Services, session_id: str, text: str) -> Flow[list[dict[str, Any]]]:
    """Return suggestions for what a person is typing."""
    return (
        yield from _of_core(services, session_id, lambda core, config: core.get_completions(config, text))
    )


def apply_completion(
    services: Services, session_id: str, text: str, completion: Mapping[str, Any]
) -> Flow[str]:
    """Return the text to insert for an accepted suggestion."""
    accepted = dict(completion)
    return (
        yield from _of_core(
            services,
            session_id,
            lambda core, config: core.apply_feature_completion(config, text, accepted),
        )
    )


def config_schema(services: Services, session_id: str) -> Flow[list[dict[str, Any]]]:
    """Return the settings that the plugins of a session's agent read."""
    return (yield from _of_core(services, session_id, lambda core, _config: core.get_config_schema()))


def _of_core(
    services: Services, session_id: str, question: Callable[[AgentCore, dict[str, Any]], R]
) -> Flow[R]:
    """Ask the core of a session's agent; plugins may be slow to answer."""

    def work() -> R:
        return question(*core_of(services, services.read(session_id).session))

    return (yield from run_blocking(work))
