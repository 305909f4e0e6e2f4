"""Checks of the actions that extensions and features offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.actions import RESPONSE_FINALIZE, Action
from agent_core.display import validate_display
from agent_core.errors import AgentError
from agent_testing.conformance.case import Fault, Faults, NotApplicable, conversation, session_of
from agent_testing.conformance.hooks import IN_REQUESTS, find_flaws, runnable_params, trust
from agent_testing.conformance.stage import difference, shown, staged

if TYPE_CHECKING:
    from agent_core.session import Session
    from agent_provider_kit import JsonObject
    from agent_testing.conformance.case import Case
    from agent_testing.conformance.stage import Stage

_UNKNOWN = "conformance-no-such-action"


def actions_are_well_defined(case: Case) -> Faults:
    """Every definition can be read, has an id of its own and can be executed."""
    case.require("get_actions")
    broken = [flaw for flaw in find_flaws(case) if flaw.aspect == "actions"]
    yield from (Fault(flaw.hook, flaw.problem) for flaw in broken)
    if broken:
        return
    trust(case, *IN_REQUESTS)
    with staged(case) as stage:
        ids = [action.id for action in stage.actions()]
    for twice in sorted({action_id for action_id in ids if ids.count(action_id) > 1}):
        yield Fault("get_actions", f"offers the action {twice!r} twice")


def unknown_actions_are_refused(case: Case) -> Faults:
    """An action that is not there is answered with an error, or raises one that names it."""
    case.require("execute_action")
    trust(case, *IN_REQUESTS)
    with staged(case) as stage:
        lent = stage.lend_action(Action(id=_UNKNOWN, plugin=case.name, owner=stage.wrapper.owner), {})
        result, error = tried = case.try_hook("execute_action", *lent.values())
    if error is not None:
        if _UNKNOWN not in str(error):
            yield Fault("execute_action", f"does not name the action that is unknown: it {tried}")
        return
    if not isinstance(result, dict) or not result.get("error"):
        yield Fault("execute_action", f"must answer an unknown action with an error, answers {shown(result)}")


def actions_run(case: Case) -> Faults:
    """Every action runs on a session, and a display that it returns can be shown as it is."""
    case.require("execute_action")
    trust(case, *IN_REQUESTS)
    missing = []
    with staged(case) as stage:
        for action in stage.actions():
            params = runnable_params(case, action)
            if params is not None and not action.matches(RESPONSE_FINALIZE):  # requests run those
                yield from _run(stage, action, params)
            elif params is None and case.action_params.get(action.id, {}) is not None:
                missing.append(action.id)
    if missing:
        raise NotApplicable(f"there are no inputs that fit {missing}: give them in action_params, or None")


def idempotent_actions_change_nothing_twice(case: Case) -> Faults:
    """An action that says "idempotent" leaves the session as its first run left it."""
    case.require("execute_action")
    trust(case, *IN_REQUESTS)
    with staged(case) as stage:
        said = [a for a in stage.actions() if a.idempotent and not a.matches(RESPONSE_FINALIZE)]
        params_of = {action.id: runnable_params(case, action) for action in said}
        runnable = {action_id: params for action_id, params in params_of.items() if params is not None}
        if not runnable:
            raise NotApplicable("no action that can be run says that it is idempotent")
        for action_id, params in runnable.items():
            changed = _change_by_second_run(stage, action_id, params)
            if changed is not None:
                problem = f"{action_id!r} says that it is idempotent, but is not: {changed}"
                yield Fault("execute_action", problem)


def _run(stage: Stage, action: Action, params: JsonObject) -> Faults:
    session, name = session_of(stage.core, conversation()), stage.case.name
    try:
        stage.core.execute_session_action(session, stage.request_config, name, action.id, params)
    except AgentError as error:
        hook, problem = getattr(error, "hook", "execute_action"), getattr(error, "problem", str(error))
        yield Fault(hook, f"{action.id!r} does not run: {problem}")
        return
    result = stage.wrapper.hook("execute_action")(*stage.lend_action(action, params).values())
    if "display" in result:
        for warning in validate_display(result["display"]).warnings:
            yield Fault(
                "execute_action", f"{action.id!r} returns a display that has to be changed: {warning}"
            )


def _change_by_second_run(stage: Stage, action_id: str, params: JsonObject) -> str | None:
    def run(session: Session) -> Session:
        arguments = (session, stage.request_config, stage.case.name, action_id, params)
        return stage.core.execute_session_action(*arguments)[0]

    try:
        once = run(session_of(stage.core, conversation()))
        twice = run(once)
    except AgentError as error:
        raise NotApplicable(f"{action_id!r} does not run: {error}") from error
    return difference(once.to_dict(), twice.to_dict(), "session")
