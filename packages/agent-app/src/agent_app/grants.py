"""Grants: permission rules that people give for longer than one call.

A person gives a grant at a prompt or by a command, for a session, for a project, or always. A session's
project is the first of its `workspace_roots`. Grants are rows of the store, so every process applies them
from the next call on, and again after a restart; a new grant also answers approvals that wait for it. No
model, tool or message can reach them; they come only through `AgentApplication.grant` and `decide`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from uuid import uuid4

from agent_app import journal
from agent_app.errors import DecisionNotAccepted, SessionNotFound
from agent_app.store.base import Grant, GrantEffect, GrantScope
from agent_core import AgentError, ArgumentError
from agent_core.log import get_logger
from agent_core.steps import Flow, run_blocking
from agent_runtime.errors import SpecError
from agent_runtime.permissions import CallPattern, Rule, asked_call, permissions_of

if TYPE_CHECKING:
    from agent_app.services import Services
    from agent_app.store.base import Approval, SessionStore
    from agent_core import Session
    from agent_runtime.permissions import AskedCall, Ruling
    from agent_runtime.suspension import Decision

ROOTS = "workspace_roots"
"""The metadata key of a session's folders; the first is its project."""

_log = get_logger("app")


def project_of(session: Session) -> str | None:
    """Return the project of a session, as grants name it, or None."""
    roots = session.metadata.get(ROOTS)
    first = roots[0] if isinstance(roots, Sequence) and not isinstance(roots, str) and roots else None
    return os.path.realpath(first) if isinstance(first, str) and Path(first).is_absolute() else None


def granted_rules(services: Services, session: Session) -> list[Rule]:
    """Return the grants of a session as rules; called before every tool call.

    Raises:
        SpecError: If a grant cannot be read. The call does not run then, since that grant may forbid it.
    """
    found = _in_effect(services.store, session.session_id, project_of(session))
    return [_rule(grant.effect, grant.pattern, f"grant {grant.id}") for grant in found]


def _in_effect(store: SessionStore, session_id: str, project: str | None) -> list[Grant]:
    """Return the grants that apply to a session; a session that is not stored has those of its project."""
    try:
        found = store.grants(session_id=session_id, project=project)
    except SessionNotFound:
        found = store.grants(project=project)
    counts = {("always", ""), ("session", session_id), ("project", project)}
    return [grant for grant in found if (grant.scope, grant.key) in counts]


def _rule(effect: GrantEffect, pattern: str, where: str) -> Rule:
    return Rule(effect, CallPattern.parse(pattern, where=where), granted=True)


# Give, find, take back


def give(
    services: Services,
    pattern: str,
    scope: GrantScope,
    session_id: str | None,
    project: str | os.PathLike[str] | None,
    effect: GrantEffect,
) -> Flow[Grant]:
    """Store a grant, and answer the approvals that it decides."""
    return (yield from run_blocking(partial(_give, services, pattern, scope, session_id, project, effect)))


def _give(
    services: Services,
    pattern: str,
    scope: GrantScope,
    session_id: str | None,
    project: str | os.PathLike[str] | None,
    effect: GrantEffect,
) -> Grant:
    _check_choice("effect", effect, get_args(GrantEffect))
    _rule(effect, pattern, "pattern")
    key = _key(services, scope, session_id, project)
    kept = services.store.add_grant(_new(services, pattern, effect, scope, key))
    _forget_opposite(services.store, kept)
    _log.info("permission_granted", effect=effect, pattern=pattern, scope=scope, key=key)
    journal.tell_of_grant(services, {"type": "grant_given", "grant": kept.to_dict()}, kept)
    answer_waiting(services, kept)
    return kept


def _key(
    services: Services, scope: GrantScope, session_id: str | None, project: str | os.PathLike[str] | None
) -> str:
    """Return the key by which a grant of that scope is found."""
    _check_choice("scope", scope, get_args(GrantScope))
    if scope == "always":
        return ""
    if scope == "session":
        if session_id is None:
            raise ArgumentError("a grant for a session needs session_id")
        return session_id
    if project is not None:
        return _folder(project)
    own = None if session_id is None else project_of(services.read(session_id).session)
    if own is None:
        raise ArgumentError(f"a grant for a project needs project, or a session with {ROOTS}")
    return own


def _folder(project: str | os.PathLike[str]) -> str:
    """Return the folder of a project as grants name it.

    Raises:
        ArgumentError: If it cannot be a folder.
    """
    try:
        return os.path.realpath(project)
    except ValueError as error:  # it has a NUL character
        raise ArgumentError(f"project {project!r} is not a folder: {error}") from error


def _check_choice(name: str, given: object, known: Sequence[str]) -> None:
    if given not in known:
        raise ArgumentError(f"{name} must be one of {', '.join(known)}, not {given!r}")


def _new(services: Services, pattern: str, effect: GrantEffect, scope: GrantScope, key: str) -> Grant:
    return Grant(
        id=uuid4().hex, pattern=pattern, effect=effect, scope=scope, key=key, created=services.clock()
    )


def _forget_opposite(store: SessionStore, kept: Grant) -> None:
    """Remove the grant that says the opposite of this one: the person has changed their mind."""
    for other in store.grants():
        same = (other.pattern, other.scope, other.key) == (kept.pattern, kept.scope, kept.key)
        if same and other.effect != kept.effect:
            store.remove_grant(other.id)


def find(
    services: Services, session_id: str | None, project: str | os.PathLike[str] | None
) -> Flow[Sequence[Grant]]:
    """Return the grants that apply to a session or a project; without either, all of them."""
    return (yield from run_blocking(partial(_find, services, session_id, project)))


def _find(
    services: Services, session_id: str | None, project: str | os.PathLike[str] | None
) -> Sequence[Grant]:
    folder = None if project is None else _folder(project)
    if session_id is not None and folder is None:
        folder = project_of(services.read(session_id).session)
    return services.store.grants(session_id=session_id, project=folder)


def take_back(services: Services, grant_id: str) -> Flow[bool]:
    """Remove a grant; False if there is none with that id."""
    return (yield from run_blocking(partial(_take_back, services, grant_id)))


def _take_back(services: Services, grant_id: str) -> bool:
    known = [grant for grant in services.store.grants() if grant.id == grant_id]
    removed = services.store.remove_grant(grant_id)
    if removed:
        _log.info("permission_revoked", grant=grant_id)
        for grant in known:
            journal.tell_of_grant(services, {"type": "grant_revoked", "grant": grant.to_dict()}, grant)
    return removed


def inherit(services: Services, source_id: str, branch_id: str) -> None:
    """Copy the grants of a session to its branch: to the person it is the same conversation."""
    for grant in services.store.grants(session_id=source_id):
        if grant.scope == "session":
            services.store.add_grant(replace(grant, id=uuid4().hex, key=branch_id))


# A grant with a decision


def grant_with(services: Services, approval: Approval, decision: Decision, given: object) -> Grant:
    """Return the grant that comes with a decision, after checking that it is about the same call.

    Raises:
        DecisionNotAccepted: If it is not a grant, or is about other calls.
    """
    scope, pattern = _read_grant(given)
    session = services.read(approval.session_id).session
    asked = asked_call(session, approval.id)
    if asked is None:
        raise DecisionNotAccepted(
            f"approval {approval.id!r} does not ask for a permission: decide about it without a grant"
        )
    effect: GrantEffect = "allow" if decision.approved else "deny"
    try:
        _check_is_about(services, session, asked, _rule(effect, pattern, "grant.pattern"))
        key = _key(services, scope, session.session_id, None)
    except (ArgumentError, SpecError) as error:
        raise DecisionNotAccepted(str(error)) from error
    return replace(_new(services, pattern, effect, scope, key), note=f"with approval {approval.id}")


def _read_grant(given: object) -> tuple[GrantScope, str]:
    if not isinstance(given, Mapping) or set(given) != {"scope", "pattern"}:
        raise DecisionNotAccepted("a grant has scope and pattern, and nothing else")
    if given["scope"] not in get_args(GrantScope):
        raise DecisionNotAccepted(
            f"grant.scope must be one of {', '.join(get_args(GrantScope))}, not {given['scope']!r}; "
            "leave the grant out to decide once"
        )
    return given["scope"], given["pattern"]


def _check_is_about(services: Services, session: Session, asked: AskedCall, rule: Rule) -> None:
    """Refuse a grant that would make no difference to the call that it is given with."""
    if rule.pattern.text in asked.suggestions:
        return
    ruling = _rule_on(services, asked, [*granted_rules(services, session), rule])
    if ruling.effect != rule.effect:
        verb = "let this call run" if rule.effect == "allow" else "forbid this call"
        offered = f"; suggested are {list(asked.suggestions)}" if asked.suggestions else ""
        raise ArgumentError(f"{rule.pattern.text!r} would not {verb}: {ruling.reason}{offered}")


def _rule_on(services: Services, asked: AskedCall, granted: Sequence[Rule]) -> Ruling:
    agent = services.runtime.resolve(asked.agent_id)
    call = asked.view(agent.tools.get(asked.tool))
    return permissions_of(agent.spec).with_granted(granted).decide(call)


def answer_waiting(services: Services, grant: Grant) -> None:
    """Decide the waiting approvals that a grant has made unnecessary."""
    inside = grant.key if grant.scope == "session" else None
    for approval in services.store.approvals(inside, undecided=True):
        try:
            ruling = _rule_on_waiting(services, approval, grant)
        except AgentError as error:  # a process that can run its agent will ask about it
            _log.warning("approval_not_checked", approval=approval.id, error=str(error))
            continue
        if ruling is not None and ruling.effect != "ask":
            decision = {"approved": ruling.effect == "allow", "reason": ruling.reason}
            with suppress(DecisionNotAccepted):  # another process was faster
                journal.decide(services, approval, decision)


def _rule_on_waiting(services: Services, approval: Approval, grant: Grant) -> Ruling | None:
    """Return what the rules now say about a waiting call; None if the grant does not apply to it."""
    session = services.read(approval.session_id).session
    if grant.scope == "project" and project_of(session) != grant.key:
        return None
    asked = asked_call(session, approval.id)
    return None if asked is None else _rule_on(services, asked, granted_rules(services, session))
