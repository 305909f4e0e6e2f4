"""Lifecycles: application plugins first, then the plugins of the session's agent, one after the other.

Each action sees the session as those before it left it. A lifecycle never costs the operation that it is
part of: an action that fails is named in the results, and the rest goes on.

What an action asks to be done to other sessions has lifecycles of its own, in which the action takes no part:
one that makes a session for every new session would never end.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_app.mutations import Mutations, carry_out, own_part, public_result
from agent_app.services import effective_config, noting_readings, read_whole
from agent_core import AgentError, PluginError, Session, build_context
from agent_core.actions import check_inputs
from agent_core.frozen import NotData, freeze_data, thaw
from agent_core.log import get_logger
from agent_core.pipeline.action_run import run_action, token_for
from agent_core.side_request import COUNT_USAGE
from agent_runtime.errors import describe
from agent_runtime.results import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app.app_plugins import Member
    from agent_app.services import Readings, Services
    from agent_app.store.base import SessionInfo
    from agent_core import AgentCore, Cancellation
    from agent_core.actions import Action
    from agent_core.events import UsageEvent
    from agent_core.steps import Flow
    from agent_runtime import ResolvedAgent
    from agent_runtime.results import Reason

Within = frozenset[tuple[str, str]]
"""The actions, by plugin and id, whose own mutations led to a lifecycle."""
REQUEST_ENDS: Final = {
    "suspended": "request_suspended",
    "cancelled": "request_cancelled",
    **dict.fromkeys(
        ("max_rounds", "timeout", "token_budget", "cost_budget", "consecutive_errors", "repeated_calls"),
        "request_limited",
    ),
}
"""The lifecycles of requests that ended before their work was done, by the code of the reason."""
_log = get_logger("app")


class SideUsage:
    """What the questions of actions used, for titles and summaries: events for the log of their session.

    Args:
        agent: Whose model answers questions that name no other one.
    """

    def __init__(self, agent: ResolvedAgent) -> None:
        self.events: list[UsageEvent] = []
        self._model = agent.model

    @property
    def facts(self) -> dict[str, Any]:
        """What the actions receive, so that their questions are counted."""
        return {COUNT_USAGE: self._count}

    def _count(self, used: Mapping[str, Any], model: str | None) -> None:
        counted = Usage.of_answer(used, self._model).to_dict() if model is None else dict(used)
        self.events.append(
            {
                "type": "usage",
                "model": model or self._model.id,
                "usage": counted,
                "total": counted,
                "beside": True,
            }
        )


@dataclass(frozen=True, slots=True)
class LifecycleOutcome:
    """What a lifecycle came to.

    Attributes:
        session: The session as the actions left it; not stored yet.
        results: For each action its plugin, id, owner and result, or its error.
    """

    session: Session
    results: tuple[dict[str, Any], ...]

    @property
    def problems(self) -> list[dict[str, Any]]:
        """The actions that failed: plugin, id and error of each."""
        failed = [{**one, **(one.get("result") or {})} for one in self.results]
        names = ("plugin", "action_id", "error")
        return [{name: one[name] for name in names} for one in failed if one.get("error")]


def lifecycle(
    services: Services,
    name: str,
    session: Session,
    *,
    config: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    within: Within = frozenset(),
) -> Flow[LifecycleOutcome]:
    """Run a lifecycle of any name on a session; nothing is stored.

    If the session's agent cannot be had, only application plugins take part.
    """
    if not somebody_acts(services, name):
        return LifecycleOutcome(session, ())
    agent = services.resolve_if_possible(session) if services.agents_act else None
    settings: Mapping[str, Any] = config or {}
    if agent is not None:
        settings = config or effective_config(agent, session, {})
    return (
        yield from run_lifecycle(
            services, name, session, agent=agent, config=settings, context=context, facts=facts, within=within
        )
    )


def run_lifecycle(
    services: Services,
    name: str,
    session: Session,
    *,
    agent: ResolvedAgent | None,
    config: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    within: Within = frozenset(),
) -> Flow[LifecycleOutcome]:
    """Run every action that waits for the lifecycle *name*.

    Args:
        agent: Whose plugins take part after those of the application; None if it cannot be had.
        context: What the caller adds for the plugins, as `caller_context` returned it.
        facts: What the platform itself says about this lifecycle; it wins over the caller's.
        within: The actions that are not run, since this is about what they asked for themselves.
    """
    if not somebody_acts(services, name):
        return LifecycleOutcome(session, ())
    yield from read_whole(session)
    extra = application_context(services, context, agent, lifecycle=name, **(facts or {}))
    results: list[dict[str, Any]] = []
    for member, action in services.plugins.triggered(name):
        if (member.wrapper.name, action.id) in within:
            continue
        session, result = yield from _application_action(services, member, action, session, extra, within)
        results.append(result)
    if agent is not None and services.agents_act:
        session, more = yield from _core_actions(agent.core, session, dict(config), name, extra)
        results += more
    return LifecycleOutcome(session, tuple(results))


def end_lifecycle(reason: Reason) -> str:
    """Return the lifecycle of a request that ended without an error: only one that succeeded is complete."""
    return REQUEST_ENDS.get(reason.code, "request_complete")


def somebody_acts(services: Services, name: str) -> bool:
    """Say whether a plugin may have an action that waits for the lifecycle *name*."""
    return services.agents_act or bool(services.plugins.triggered(name))


def application_context(
    services: Services, context: Mapping[str, Any] | None, agent: ResolvedAgent | None = None, **facts: Any
) -> dict[str, Any]:
    """Return what plugins receive from the application.

    Args:
        context: What `caller_context` left of the caller's.
        agent: The agent that this is about, if it is about one.
        facts: What the platform says about a lifecycle.
    """
    owned = {
        "app": services.app,
        "application": services.app,
        "base_config": services.base_config(agent),
        "session_asset_store": services.assets,
        "trigger_source": "application",
        **facts,
    }
    return build_context(owned, context)


def _application_action(
    services: Services,
    member: Member,
    action: Action,
    session: Session,
    context: Mapping[str, Any],
    within: Within,
) -> Flow[tuple[Session, dict[str, Any]]]:
    plugin, action_id = member.wrapper, action.id
    facts = build_context({"session": session.frozen_dict()}, context)
    about = {"plugin": plugin.name, "action_id": action_id, "action_owner": "application"}
    try:
        params = _params(action, session.session_id)
        result, readings = yield from execute(services, member, action, params, facts)
        mutations = Mutations.read(plugin.name, result)
        others = own_part(plugin.name, mutations, session, readings)
        yield from mutate(services, others, readings, {*within, (plugin.name, action_id)})
    except AgentError as error:
        _log.warning("lifecycle_action_failed", plugin=plugin.name, action=action_id, error=str(error))
        return session, {**about, "error": describe(error)}
    return mutations.of(session), {**about, "result": public_result(services.plugins, plugin.name, result)}


def _params(action: Action, session_id: str) -> dict[str, Any]:
    """Return what a lifecycle runs an application action with: its session, and the defaults of its inputs.

    Raises:
        ActionInputError: If it needs something that a lifecycle does not give.
    """
    given = {"session_id": session_id}
    return {**check_inputs(action, given if "session_id" in action.inputs else {}), **given}


def execute(
    services: Services,
    member: Member,
    action: Action,
    params: Mapping[str, Any],
    context: Mapping[str, Any],
    cancellation: Cancellation | None = None,
) -> Flow[tuple[dict[str, Any], Readings]]:
    """Run an action of an application plugin; return its result, and what it has seen of sessions.

    Raises:
        ActionTimeoutError: If it took longer than it may.
        ActionCancelledError: If it was cancelled.
    """
    token = token_for(action, cancellation)
    facts = context if token is None else build_context({"cancellation": token}, context)

    def work() -> tuple[dict[str, Any], Readings]:
        with noting_readings() as readings:
            return member.wrapper.execute(services.app, action.id, params, facts, member.state), readings

    return (yield from run_action(action, work, token, cancellation))


def mutate(
    services: Services, mutations: Mutations, readings: Readings, within: set[tuple[str, str]]
) -> Flow[None]:
    """Carry out what an action asked for; the actions *within*, of which it is one, take no part in it."""

    def look_at(name: str, session: Session, facts: Mapping[str, Any]) -> Flow[Session]:
        outcome = yield from lifecycle(services, name, session, facts=facts, within=frozenset(within))
        return outcome.session

    yield from carry_out(services, mutations, readings, look_at)


def list_summary(services: Services, info: SessionInfo) -> dict[str, Any]:
    """Return what application plugins add to a session in a list, by plugin; nothing is changed by them."""
    facts = application_context(services, None, lifecycle="session_list", session_info=asdict(info))
    extra: dict[str, Any] = {}
    for member, action in services.plugins.triggered("session_list"):
        plugin = member.wrapper
        try:
            params = _params(action, info.id)
            result = plugin.execute(services.app, action.id, params, facts, member.state)
            if result.get("mutations"):
                _log.warning("mutations_ignored", plugin=plugin.name, hint="a list is only read")
            shown = public_result(services.plugins, plugin.name, {**result, "mutations": None})
            data = freeze_data(shown)  # an object in it would cost every front end the list
        except (AgentError, NotData) as error:
            failed = error if isinstance(error, AgentError) else _no_data(plugin.name, action, error)
            _log.warning("lifecycle_action_failed", plugin=plugin.name, action=action.id, error=str(failed))
            data = {"error": describe(failed)}
        extra[plugin.name] = {**extra.get(plugin.name, {}), **thaw(data)}
    return extra


def _no_data(plugin: str, action: Action, error: NotData) -> PluginError:
    return PluginError(plugin, "execute_action", f"action {action.id!r}: {error.path.lstrip('.')}: {error}")


def _core_actions(
    core: AgentCore, session: Session, config: dict[str, Any], name: str, context: dict[str, Any]
) -> Flow[tuple[Session, list[dict[str, Any]]]]:
    try:
        return (yield from core.lifecycle_flow(session, config, name, context=context, describe=describe))
    except AgentError as error:
        _log.warning("lifecycle_failed", lifecycle=name, error=str(error))
        about = {"plugin": getattr(error, "plugin", None), "action_id": None, "action_owner": "core"}
        return session, [{**about, "error": describe(error)}]
