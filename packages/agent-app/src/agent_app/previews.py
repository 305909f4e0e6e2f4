"""What a request sends: one that was sent, and what another would keep if a message were edited.

No request is kept whole: it would store every message once for each answer. One that was sent is rebuilt from
the messages before its answer, as the agent would send them now, and the log says by which model it was
answered, when, and what that used. So instructions or tools that were changed since show as they are now.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agent_app.overview import describe_prompt, next_prompt
from agent_app.redaction import Redactor
from agent_app.services import core_of
from agent_core import ArgumentError, MessageIndexError
from agent_core.frozen import thaw
from agent_core.steps import Flow, run_blocking
from agent_runtime.tokens import TokenCounter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app.services import Services
    from agent_core import Session

_LOOKED_THROUGH = 5000


def sent_request(services: Services, session_id: str, index: int) -> Flow[dict[str, Any]]:
    """Return the request that an answer of the model was the answer to, rebuilt."""
    return (yield from run_blocking(partial(_sent_request, services, session_id, index)))


def _sent_request(services: Services, session_id: str, index: int) -> dict[str, Any]:
    session = services.read(session_id).session
    message = session.messages[_place(session, index)]
    if message.role != "assistant":
        raise ArgumentError(f"message {index} of session {session_id!r} is not an answer of the model")
    step = _step_of(services, session_id, message.metadata)
    known = step.get("agent_id") if step.get("agent_id") in services.config.get("agents", {}) else None
    agent = services.resolve(session, known)
    model = agent.models.get(step.get("model", ""))
    if model is not None:
        agent = replace(agent, model=model.model, config=model.config)
    before = _begin(services, session, _place(session, index))
    described = describe_prompt(agent, next_prompt(agent, before))
    hidden: dict[str, Any] = Redactor.from_environment().data(described)
    return {**hidden, "rebuilt": True, "at": step.get("at"), "usage": step.get("usage")}


def _step_of(services: Services, session_id: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the log says of the step that brought a message: agent, model, time and usage."""
    own = thaw(metadata.get("native_indices"))
    after = max(0, services.last_event(session_id) - _LOOKED_THROUGH)
    agent_id: Any = None
    step: dict[str, Any] = {}
    for event in services.store.events(session_id, after=after, limit=_LOOKED_THROUGH):
        kind = event["type"]
        if kind == "run_start":
            agent_id = event.get("agent_id")
        elif kind == "step_start":
            step = {"agent_id": agent_id, "at": event.get("at")}
        elif kind == "usage":
            step = {**step, "model": event.get("model"), "usage": event.get("usage")}
        elif kind == "step_end" and own and any(_is_of(one, own) for one in event.get("messages", ())):
            return step
    return {}


def _is_of(message: Mapping[str, Any], indices: Sequence[int]) -> bool:
    found = message.get("metadata", {}).get("native_indices")
    return message.get("role") == "assistant" and thaw(found) == indices


def edit_plan(services: Services, session_id: str, index: int) -> Flow[dict[str, Any]]:
    """Return what a branch would keep that begins with another version of a message."""
    return (yield from run_blocking(partial(_edit_plan, services, session_id, index)))


def _edit_plan(services: Services, session_id: str, index: int) -> dict[str, Any]:
    session = services.read(session_id).session
    place = _place(session, index)
    before = _begin(services, session, place)
    agent = services.resolve(session)
    prompt = next_prompt(agent, before)
    own = _native(session)[: len(_native(before))]
    return {
        "kept_messages": place,
        "kept_tokens": TokenCounter().messages(prompt.messages),
        "other_messages": len(session.messages) - place - 1,
        "rebuilt_items": sum(kept != now for kept, now in zip(own, _native(before), strict=True)),
    }


def _native(session: Session) -> Sequence[Any]:
    return list(session.metadata.get("native_messages") or ())


def _begin(services: Services, session: Session, place: int) -> Session:
    """Return a session as it was before one of its messages; nothing is stored."""
    core, config = core_of(services, session)
    if place == 0:
        return core.create_session(session.session_id)
    return core.fork_session(session, config, upto_index=place - 1, new_session_id=str(uuid4()))


def _place(session: Session, index: int) -> int:
    count = len(session.messages)
    if not 0 <= index < count:
        raise MessageIndexError("index", index, count)
    return index
