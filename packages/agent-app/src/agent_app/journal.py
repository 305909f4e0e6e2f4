"""Every change of a session is written together with the event that tells of it.

So whoever follows the session, or all of them, learns of it: a second window, another process. A run tells of
itself; its events come through the `SessionWriter`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from agent_app.store.base import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_app.services import Services
    from agent_app.store.base import Approval, Grant, Stored, Waiting
    from agent_core import Session
    from agent_core.events import ActionExecuted, ChangeEvent

R = TypeVar("R")


def record(
    services: Services, session_id: str, change: Callable[[], R], tell: Callable[[R], ChangeEvent | None]
) -> R:
    """Make a change of a session and log it, both or neither.

    Args:
        tell: Says what happened, from what the change returned; None if nothing did.
    """
    with services.store.transaction(session_id):
        result = change()
        event = tell(result)
        if event is not None:
            services.store.append_events(session_id, [event])
    services.hub.wake(session_id)
    return result


def record_for_all(services: Services, events: Sequence[ChangeEvent]) -> None:
    """Log what is about no session in particular."""
    services.store.append_own_events(events)
    services.hub.wake("")


def create(services: Services, session: Session) -> Stored:
    """Store a new session."""
    agent_id = services.agent_of(session)
    return record(
        services,
        session.session_id,
        lambda: services.store.create(session, agent_id=agent_id),
        lambda _stored: {"type": "session_created", "agent_id": agent_id},
    )


def fork(services: Services, source_id: str, branch: Session, upto: int, base: Stored | None) -> Stored:
    """Store a branch that shares the first messages of its source; both logs have it."""
    agent_id, store = services.agent_of(branch), services.store

    def write() -> Stored:
        stored = store.fork(source_id, branch, upto, agent_id=agent_id, base=base)
        last = len(branch.messages) - 1
        forked: ChangeEvent = {"type": "session_forked", "branch_id": branch.session_id, "upto_index": last}
        store.append_events(source_id, [forked])
        return stored

    # The source is locked first, as every writer of it does; nobody else knows the branch yet.
    with store.transaction(source_id):
        stored = record(
            services,
            branch.session_id,
            write,
            lambda _stored: {"type": "session_created", "agent_id": agent_id, "parent_id": source_id},
        )
    services.hub.wake(source_id)
    return stored


def save(services: Services, session: Session, base: Stored, changes: Changes | None) -> Stored:
    """Store what is new in a session outside a run."""
    if session is base.session and (changes is None or not changes.of_session):
        return base
    event = changed(session)
    together = Changes(events=[event]) if changes is None else replace(changes, events=[event])
    stored = services.store.save(session, base, changes=together)
    services.hub.wake(session.session_id)
    return replace(stored, events=())


def changed(session: Session) -> ChangeEvent:
    """Return the event of a session that was stored anew."""
    return {"type": "session_changed", "messages": len(session.history)}


def executed(plugin: str, action_id: str, error: Any = None) -> ChangeEvent:
    """Return the event of an action that was run; its error may be anything that a plugin returns."""
    event: ActionExecuted = {"type": "action_executed", "plugin": plugin, "action_id": action_id}
    if error:
        event["error"] = error if isinstance(error, dict) else {"message": str(error)}
    return event


def decide(
    services: Services, approval: Approval, decision: dict[str, Any], grant: Grant | None = None
) -> Approval:
    """Keep a decision, and what is granted with it.

    Raises:
        DecisionNotAccepted: If it was decided already.
    """
    kept = record(
        services,
        approval.session_id,
        lambda: services.store.decide(approval.id, decision, grant=grant),
        lambda _kept: {"type": "decision_made", "approval_id": approval.id, "decision": decision},
    )
    if grant is not None:
        tell_of_grant(services, {"type": "grant_given", "grant": grant.to_dict()}, grant)
    return kept


def tell_of_grant(services: Services, event: ChangeEvent, grant: Grant) -> None:
    """Log that a grant was given or taken back: where it counts."""
    if grant.scope == "session":
        services.store.append_events(grant.key, [event])
        services.hub.wake(grant.key)
    else:
        record_for_all(services, [event])


def queued(waiting: Waiting) -> ChangeEvent:
    """Return the event of a message that waits from now on."""
    message = waiting.to_dict()["message"]
    return {"type": "input_queued", "input": waiting.seq, "mode": waiting.mode, "message": message}


def edited(waiting: Waiting | None) -> ChangeEvent | None:
    """Return the event of a message that waits and was changed, if it was."""
    if waiting is None:
        return None
    message = waiting.to_dict()["message"]
    return {"type": "input_edited", "input": waiting.seq, "mode": waiting.mode, "message": message}
