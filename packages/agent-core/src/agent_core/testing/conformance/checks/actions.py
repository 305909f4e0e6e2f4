"""Checks of the actions that extensions and features offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.actions import RESPONSE_FINALIZE, Action
from agent_core.display import validate_display
from agent_core.errors import AgentError
from agent_core.testing.conformance.case import session_of
from agent_core.testing.conformance.difference import difference, shown
from agent_core.testing.conformance.examine import IN_REQUESTS, runnable_params
from agent_core.testing.conformance.report import Fault, Faults, NotApplicable
from agent_core.testing.conformance.samples import conversation
from agent_core.testing.conformance.stage import staged

if TYPE_CHECKING:
    from agent_core.session import Session
    from agent_core.testing.conformance.case import Case
    from agent_core.testing.conformance.stage import Stage

_UNKNOWN = "conformance-no-such-action"


def actions_are_well_defined(case: Case) -> Faults:
    """Every definition can be read, has an id of its own and can be executed."""
    case.require("get_actions")
    broken = [flaw for flaw in case.flaws if flaw.aspect == "actions"]
    yield from (Fault(flaw.hook, flaw.problem) for flaw in broken)
    if broken:
        return
    case.trust(*IN_REQUESTS)
    with staged(case) as stage:
        ids = [action.id for action in stage.actions()]
    for twice in sorted({action_id for action_id in ids if ids.count(action_id) > 1}):
        yield Fault("get_actions", f"offers the action {twice!r} twice")


def unknown_actions_are_refused(case: Case) -> Faults:
    """An action that is not there is answered with an error, or raises one that names it."""
    case.require("execute_action")
    case.trust(*IN_REQUESTS)
    with staged(case) as stage:
        lent = stage.lend_action(Action(id=_UNKNOWN, plugin=case.name, owner=stage.wrapper.owner), {})
        try:
            result = stage.wrapper.hook("execute_action")(*lent.values())
        except Exception as error:  # noqa: BLE001  # a stranger's hook may raise anything
            if _UNKNOWN not in str(error):
                problem = f"raises {type(error).__name__} ({error}) for an unknown action, without naming it"
                yield Fault("execute_action", problem)
            return
    if not isinstance(result, dict) or not result.get("error"):
        yield Fault("execute_action", f"must answer an unknown action with an error, answers {shown(result)}")


def actions_run(case: Case) -> Faults:
    """Every action runs on a session, and a display that it returns can be shown as it is."""
    case.require("execute_action")
    case.trust(*IN_REQUESTS)
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
    case.trust(*IN_REQUESTS)
    with staged(case) as stage:
        said = [a for a in stage.actions() if a.idempotent and not a.matches(RESPONSE_FINALIZE)]
        params_of = {action.id: runnable_params(case, action) for action in said}
        runnable = {action_id: params for action_id, params in params_of.items() if params is not None}
        if not runnable:
            raise NotApplicable("no action that can be run says that it is idempotent")
        for action_id, params in runnable.items():
            told = _told_of_two_runs(stage, action_id, params)
            if told is not None:
                problem = f"{action_id!r} says that it is idempotent, but is not: {told}"
                yield Fault("execute_action", problem)


def _run(stage: Stage, action: Action, params: dict[str, Any]) -> Faults:
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


def _told_of_two_runs(stage: Stage, action_id: str, params: dict[str, Any]) -> str | None:
    def run(session: Session) -> Session:
        arguments = (session, stage.request_config, stage.case.name, action_id, params)
        return stage.core.execute_session_action(*arguments)[0]

    try:
        once = run(session_of(stage.core, conversation()))
        twice = run(once)
    except AgentError as error:
        raise NotApplicable(f"{action_id!r} does not run: {error}") from error
    return difference(once.to_dict(), twice.to_dict(), "session")
