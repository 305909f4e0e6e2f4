"""From the model's answer to the new session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_core.errors import AgentError
from agent_core.events import FinalEvent
from agent_core.frozen import FrozenDict, FrozenList, freeze, thaw
from agent_core.log import get_logger
from agent_core.messages import NATIVE_INDICES, Message
from agent_core.native import write_native
from agent_core.pipeline import chain
from agent_core.pipeline.actions import ResponseOutcome, run_response_actions
from agent_core.pipeline.native_view import rebuilt
from agent_core.pipeline.rebuild import read_message, readable_messages, write_items

if TYPE_CHECKING:
    from agent_core.pipeline.prepare import Draft
    from agent_core.pipeline.request import Request
    from agent_core.session import Session
    from agent_core.steps import Flow

_log = get_logger("pipeline")


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn came to.

    Attributes:
        messages: The readable messages that it added, as dicts.
        interrupted: True if it ended before the model was done.
    """

    session: Session
    messages: list[dict[str, Any]]
    interrupted: bool = False

    def event(self) -> FinalEvent:
        """Return the last event of the request."""
        final = FinalEvent(type="final", session=self.session, messages=self.messages)
        if self.interrupted:
            final["interrupted"] = True
        return final


def finish(request: Request, draft: Draft) -> Flow[TurnResult]:
    """Finalize the turn, let actions adjust it, and return the new session."""
    try:
        draft = _finalize(request, draft)
    except AgentError as error:
        if draft.interrupted != "cancelled":
            raise
        # A provider may have nothing to finalize yet when it is stopped early.
        _log.warning("interrupted_turn_not_finalized", error=str(error))
        return TurnResult(draft.session, [], interrupted=True)
    finals = _readable_finals(request, draft)
    outcome = yield from run_response_actions(request, draft, finals)
    return _commit(request, draft, outcome)


def _finalize(request: Request, draft: Draft) -> Draft:
    finals, native, state = chain.finalize(
        request.resolution, draft.finals, draft.native, draft.state, draft.context
    )
    if finals and len(native) == draft.baseline:
        # A provider that leaves its finals out of the history still wants them back next time.
        native = FrozenList([*native, *finals])
    return replace(draft, finals=finals, native=native, state=state)


def _readable_finals(request: Request, draft: Draft) -> list[FrozenDict]:
    """Return the turn's messages in readable form, each knowing its native items."""
    converted = chain.from_native(request.resolution, draft.finals, draft.state, draft.context)
    places = _places(draft)
    located = [
        None if group is None else [places[index] for index in group if index in places]
        for group in converted.groups
    ]
    _adopt_orphans(located, range(draft.baseline, len(draft.native)))
    return [
        _annotate(message, indices, draft.interrupted)
        for message, indices in zip(converted.items, located, strict=True)
    ]


def _places(draft: Draft) -> dict[int, int]:
    """Return where each of the finals stands in native history."""
    turn = draft.native[draft.baseline :]
    if turn == draft.finals:
        return {index: draft.baseline + index for index in range(len(turn))}
    places: dict[int, int] = {}
    at = 0
    for index, final in enumerate(draft.finals):
        if final in turn[at:]:
            at = turn.index(final, at) + 1
            places[index] = draft.baseline + at - 1
    return places


def _adopt_orphans(located: list[list[int] | None], turn: range) -> None:
    """Give every native item of the turn to a message, so that edits keep the two together."""
    owned = {index for indices in located for index in indices or ()}
    for orphan in turn:
        if orphan in owned:
            continue
        later = [indices for indices in located if indices and max(indices) > orphan]
        home = (
            later[0]
            if later
            else next((indices for indices in reversed(located) if indices is not None), None)
        )
        if home is not None:
            home.append(orphan)
            home.sort()


def _annotate(message: FrozenDict, indices: list[int] | None, interrupted: str | None) -> FrozenDict:
    metadata = {k: v for k, v in (message.get("metadata") or {}).items() if k != NATIVE_INDICES}
    if indices is not None:
        metadata[NATIVE_INDICES] = indices
    if interrupted is not None:
        metadata["interrupted"] = interrupted
    annotated: FrozenDict = freeze({**message, "metadata": metadata})
    return annotated


def _commit(request: Request, draft: Draft, outcome: ResponseOutcome) -> TurnResult:
    """Put the turn's messages and native history into a new session."""
    finals = [read_message(request, message) for message in outcome.finals]
    draft = replace(draft, native=outcome.native)
    metadata = {**draft.session.metadata, **_state_patch(draft), **outcome.metadata}
    if draft.restructured:
        session = _restructure(request, draft, finals, metadata)
    else:
        session = _append(request, draft, finals, metadata)
    messages = [thaw(message) for message in outcome.finals]
    return TurnResult(session, messages, interrupted=draft.interrupted is not None)


def _append(request: Request, draft: Draft, finals: list[Message], metadata: Mapping[str, Any]) -> Session:
    added = draft.native[draft.baseline :]
    native = draft.before.extend(finals, added, request.resolution.model)
    messages = draft.session.history.extend(finals)
    return write_native(draft.session, messages, native, report=draft.report, metadata=metadata)


def _restructure(
    request: Request, draft: Draft, finals: list[Message], metadata: Mapping[str, Any]
) -> Session:
    """A plugin changed what came before: read the transcript anew from native history."""
    known, items = draft.session.messages, draft.before.items
    messages = readable_messages(request, draft.native, known, items, draft.state, draft.context)
    if finals and len(finals) <= len(messages):
        messages[-len(finals) :] = _with_turn(messages[-len(finals) :], finals)
    report = draft.report or rebuilt(request, "plugin", "a plugin changed earlier history", len(messages))
    return write_items(
        request, draft.session, draft.before, messages, draft.native, report=report, metadata=metadata
    )


def _with_turn(read: Sequence[Message], finals: Sequence[Message]) -> list[Message]:
    """Prefer the turn's own messages, which actions may have adjusted, at the places just read."""
    return [
        final.with_native_indices(message.native_indices) for message, final in zip(read, finals, strict=True)
    ]


def _state_patch(draft: Draft) -> dict[str, Any]:
    patch = draft.state.get("session_metadata_patch")
    return dict(patch) if isinstance(patch, Mapping) else {}
