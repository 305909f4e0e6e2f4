"""Lifecycles: application plugins first, then the plugins of the session's agent, one after the other.

Each action sees the session as those before it left it. A lifecycle never costs the operation that it is
part of: an action that fails is named in the results, and the rest goes on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_app.mutations import Mutations, public_result
from agent_app.services import read_whole
from agent_core import AgentError, PluginError, Session, build_context
from agent_core.log import get_logger
from agent_core.steps import Flow, run_blocking
from agent_runtime.errors import describe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app.app_plugins import Member
    from agent_app.services import Services
    from agent_app.store.base import SessionInfo
    from agent_core import AgentCore

_CORES = frozenset({"core", "config", "session"})
_log = get_logger("app")


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


def run_lifecycle(
    services: Services,
    name: str,
    session: Session,
    *,
    core: AgentCore | None,
    config: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    told: Mapping[str, Any] | None = None,
) -> Flow[LifecycleOutcome]:
    """Run every action that waits for the lifecycle *name*.

    Args:
        context: What the caller adds for the plugins.
        told: What the platform itself says about this lifecycle; it wins over the caller's.
    """
    if not somebody_acts(services, name):
        return LifecycleOutcome(session, ())
    yield from read_whole(session)
    extra = application_context(services, context, lifecycle=name, **(told or {}))
    results: list[dict[str, Any]] = []
    for member, action in services.plugins.triggered(name):
        session, result = yield from _application_action(services, member, action.id, session, extra)
        results.append(result)
    if core is not None and services.agents_act:
        session, more = yield from _core_actions(core, session, dict(config), name, extra)
        results += more
    return LifecycleOutcome(session, tuple(results))


def somebody_acts(services: Services, name: str) -> bool:
    """Say whether a plugin may have an action that waits for the lifecycle *name*."""
    return services.agents_act or bool(services.plugins.triggered(name))


def application_context(services: Services, context: Mapping[str, Any] | None, **told: Any) -> dict[str, Any]:
    """Return what plugins are told by the application; a caller's reuse of its keys is warned of."""
    owned = {
        "app": services.app,
        "application": services.app,
        "base_config": services.config,
        "session_asset_store": services.assets,
        "trigger_source": "application",
        **told,
    }
    return build_context(owned, _without_cores(context or {}))


def _without_cores(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out what only the core may tell plugins, unless it comes from the core."""
    reused = (_CORES & context.keys()) - getattr(context, "owned", frozenset())
    if not reused:
        return context
    _log.warning("reserved_context_key", keys=sorted(reused), hint="the caller's values are left out")
    return {key: value for key, value in context.items() if key not in reused}


def _application_action(
    services: Services, member: Member, action_id: str, session: Session, context: Mapping[str, Any]
) -> Flow[tuple[Session, dict[str, Any]]]:
    plugin = member.wrapper
    told = build_context({"session": session.frozen_dict()}, context)
    about = {"plugin": plugin.name, "action_id": action_id, "action_owner": "application"}
    params = {"session_id": session.session_id}
    try:
        work = partial(plugin.execute, services.app, action_id, params, told, member.state)
        result = yield from run_blocking(work)
        mutations = Mutations.read(plugin.name, result)
        _check_stays(plugin.name, mutations, session)
        yield from run_blocking(partial(apply_mutations, services, mutations, besides=session.session_id))
    except AgentError as error:
        _log.warning("lifecycle_action_failed", plugin=plugin.name, action=action_id, error=str(error))
        return session, {**about, "error": describe(error)}
    return mutations.of(session), {**about, "result": public_result(services.plugins, plugin.name, result)}


def _check_stays(plugin: str, mutations: Mutations, session: Session) -> None:
    if session.session_id in mutations.deleted:
        raise PluginError(plugin, "execute_action", "a lifecycle cannot delete the session that it is about")


def list_summary(services: Services, info: SessionInfo) -> dict[str, Any]:
    """Return what application plugins add to a session in a list, by plugin; nothing is changed by them."""
    told = application_context(services, None, lifecycle="session_list", session_info=asdict(info))
    extra: dict[str, Any] = {}
    for member, action in services.plugins.triggered("session_list"):
        plugin = member.wrapper
        try:
            result = plugin.execute(services.app, action.id, {"session_id": info.id}, told, member.state)
        except AgentError as error:
            _log.warning("lifecycle_action_failed", plugin=plugin.name, action=action.id, error=str(error))
            result = {"error": describe(error)}
        if result.get("mutations"):
            _log.warning("mutations_ignored", plugin=plugin.name, hint="a list is only read")
        shown = public_result(services.plugins, plugin.name, {**result, "mutations": None})
        extra[plugin.name] = {**extra.get(plugin.name, {}), **shown}
    return extra


def _core_actions(
    core: AgentCore, session: Session, config: dict[str, Any], name: str, context: dict[str, Any]
) -> Flow[tuple[Session, list[dict[str, Any]]]]:
    try:
        return (yield from core.lifecycle_flow(session, config, name, context=context, describe=describe))
    except AgentError as error:
        _log.warning("lifecycle_failed", lifecycle=name, error=str(error))
        about = {"plugin": getattr(error, "plugin", None), "action_id": None, "action_owner": "core"}
        return session, [{**about, "error": describe(error)}]


def apply_mutations(services: Services, mutations: Mutations, *, besides: str | None = None) -> None:
    """Carry out what an application action asked for.

    Args:
        besides: The session of a lifecycle, whose changes are stored by the operation under way.
    """
    for session in mutations.created:
        services.recent.keep(services.store.create(session, agent_id=services.agent_of(session)))
    for session in mutations.updated:
        if session.session_id != besides:
            stored = services.read(session.session_id)
            services.recent.keep(services.store.save(session, stored))
    for session_id in mutations.deleted:
        services.store.delete(session_id)
        services.forget(session_id)
