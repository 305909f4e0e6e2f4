"""From the model's answer to the new session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.encoding import plain
from agent_core.errors import AgentError, PluginError, RequestCancelled
from agent_core.events import FinalEvent
from agent_core.frozen import (
    Dicts,
    FrozenDict,
    FrozenList,
    JsonObject,
    NotData,
    freeze_data,
    thaw,
)
from agent_core.log import get_logger
from agent_core.messages import NATIVE_INDICES, Message
from agent_core.native import write_native
from agent_core.pipeline import chain
from agent_core.pipeline.actions import (
    ResponseOutcome,
    merge_metadata,
    run_response_actions,
)
from agent_core.pipeline.native_view import read_message, readable_messages, rebuilt, write_items

if TYPE_CHECKING:
    from agent_core.pipeline.prepare import Draft
    from agent_core.pipeline.request import Request
    from agent_core.session import Session
    from agent_core.steps import Flow

_log = get_logger("pipeline")
_core_log = get_logger("core")


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn came to.

    Attributes:
        added: The readable messages that it added, in their frozen dict form.
        interrupted: True if it ended before the model was done.
        problems: The actions of `response_finalize` that failed: plugin, action and error of each.
        left: True if the caller left after the model was done; another turn must not follow.
    """

    session: Session
    added: Sequence[FrozenDict]
    interrupted: bool = False
    left: bool = False
    problems: tuple[JsonObject, ...] = ()

    @property
    def messages(self) -> Dicts:
        """The readable messages as plain dicts, which the caller may change."""
        return [thaw(message) for message in self.added]

    def event(self) -> FinalEvent:
        """Return the last event of the request."""
        final = FinalEvent(type="final", session=self.session, messages=self.messages)
        if self.interrupted:
            final["interrupted"] = True
        if self.problems:
            final["problems"] = list(self.problems)
        return final


def finish(request: Request, draft: Draft) -> Flow[TurnResult]:
    """Finalize the turn, let actions adjust it, and return the new session."""
    draft = _behind_what_is_kept(_finalize(request, draft))
    if request.stream and _core_log.is_enabled("debug"):
        _core_log.debug("streaming complete", combined_native_finals=draft.finals)
    finals = _readable_finals(request, draft)
    for problem in draft.ledger.problems:
        _log.warning("hook_not_followed", **problem)
    commit = partial(_new_session, request, draft)
    try:
        outcome = yield from run_response_actions(request, draft, finals, commit)
    except RequestCancelled:
        unadjusted = ResponseOutcome(finals, draft.native, {}, [])
        return replace(commit(unadjusted), left=draft.interrupted is None)
    return commit(outcome)


def _finalize(request: Request, draft: Draft) -> Draft:
    provider, ledger = request.resolution.provider.name, draft.ledger
    try:
        finals, native, state = chain.finalize(
            request.resolution, draft.finals, draft.native, draft.state, draft.context, ledger
        )
    except AgentError as error:
        if draft.interrupted is None:
            raise
        # A plugin may have nothing to finalize yet when the turn is stopped early.
        _log.warning("interrupted_turn_not_finalized", error=str(error))
        finals, native = ledger.settle(provider, "finalize", draft.finals, (), draft.native)
        native, state = ledger.cover(finals, native), draft.state
    return draft.after(finals, native, state, draft.interrupted)


def _behind_what_is_kept(draft: Draft) -> Draft:
    """Return the draft with what the turn added behind the whole history, if only a part was sent."""
    if not draft.chosen:
        return draft
    kept = draft.before.items.to_list()
    native = FrozenList(kept + draft.native[draft.baseline :])
    return draft.after(draft.finals, native, draft.state, draft.interrupted, len(kept))


def _readable_finals(request: Request, draft: Draft) -> list[FrozenDict]:
    """Return the turn's messages in readable form, each knowing its native items."""
    keep = partial(_keep_readable, draft)
    try:
        converted = chain.from_native(request.resolution, draft.finals, draft.state, draft.context, keep)
    except PluginError as error:
        if (blamed := draft.ledger.blame(draft.finals)) is None:
            raise
        raise blamed from error
    located: list[list[int] | None]
    if (
        len(draft.finals) == 1
        and draft.native[draft.baseline :] == draft.finals
        and converted.groups == [(0,)]
    ):
        located = [[draft.baseline]]  # one message of one item, as most answers are
    else:
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


def _keep_readable(draft: Draft, plugin: str, before: FrozenList, made: FrozenList) -> FrozenList:
    return draft.ledger.take_readable(plugin, "from_native_messages", before, made, draft.session.history)


def _places(draft: Draft) -> dict[int, int]:
    """Return where each of the finals stands in native history."""
    found = _match(draft.finals, draft.native[draft.baseline :])
    return {index: draft.baseline + place for index, place in found.items()}


def _match(items: Sequence[object], among: list[Any]) -> dict[int, int]:
    """Return for each of *items* its place *among* others, in order; some may have none."""
    found: dict[int, int] = {}
    at = 0
    for index, item in enumerate(items):
        if item in among[at:]:
            found[index] = among.index(item, at)
            at = found[index] + 1
    return found


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


def _annotate(message: FrozenDict, indices: list[int] | None, interrupted: str | None = None) -> FrozenDict:
    metadata = {k: v for k, v in (message.get("metadata") or {}).items() if k != NATIVE_INDICES}
    if indices is not None:
        metadata[NATIVE_INDICES] = FrozenList(indices)
    if interrupted is not None:
        metadata["interrupted"] = interrupted
    return FrozenDict({**message, "metadata": FrozenDict(metadata)})


def _new_session(request: Request, draft: Draft, outcome: ResponseOutcome) -> TurnResult:
    """Put the turn's messages and native history into a new session."""
    pointed = _point(draft, outcome) if outcome.results else outcome.finals
    finals = [read_message(request, message) for message in pointed]
    metadata = _merged(draft.session.metadata, _state_patch(draft), outcome.metadata)
    same = outcome.native is draft.native
    if not same and outcome.native[: draft.baseline] != draft.native[: draft.baseline]:
        session = _restructure(request, draft, outcome.native, finals, metadata)
    elif draft.restructured or (draft.ledger.revisions and not draft.chosen):
        session = _revise(request, draft, outcome.native, finals, metadata)
    else:
        session = _append(request, draft, outcome.native, finals, metadata)
    return TurnResult(session, pointed, interrupted=draft.interrupted is not None, problems=outcome.problems)


def _point(draft: Draft, outcome: ResponseOutcome) -> list[FrozenDict]:
    """Return the messages as actions left them, each pointing at its items as actions left those."""
    turn, changed = draft.native[draft.baseline :], outcome.native[draft.baseline :]
    same = len(turn) == len(changed)
    moved = {index: index for index in range(len(turn))} if same else _match(turn, changed)
    places = {draft.baseline + was: draft.baseline + now for was, now in moved.items()}
    located = [
        _relocate((message.get("metadata") or {}).get(NATIVE_INDICES), places) for message in outcome.finals
    ]
    if len(located) == 1 and located[0] is None:
        located = [[]]  # a message that an action made of the turn has all of its items
    _adopt_orphans(located, range(draft.baseline, len(outcome.native)))
    return [_annotate(message, indices) for message, indices in zip(outcome.finals, located, strict=True)]


def _relocate(indices: object, places: Mapping[int, int]) -> list[int] | None:
    if not isinstance(indices, list):
        return None
    return [places[index] for index in indices if isinstance(index, int) and index in places]


def _append(
    request: Request, draft: Draft, native: FrozenList, finals: list[Message], metadata: Mapping[str, object]
) -> Session:
    added = native[draft.baseline :]
    extended = draft.before.extend(finals, added, request.resolution.model)
    messages = draft.session.history.extend(finals)
    report = _report(request, draft, draft.report, len(messages))
    return write_native(draft.session, messages, extended, report=report, metadata=metadata)


def _revise(
    request: Request, draft: Draft, native: FrozenList, finals: list[Message], metadata: Mapping[str, object]
) -> Session:
    """Earlier history was changed before the model was asked, or its items after: add the turn to that."""
    messages = list(draft.session.messages)
    detail = "; ".join(map(_describe_revision, draft.ledger.revisions))
    if draft.restructured:
        detail = "a plugin changed earlier history"
        messages = readable_messages(
            request, draft.ledger.asked, messages, draft.before.items, draft.state, draft.context
        )
    messages += finals
    changed = draft.report or rebuilt(request, "plugin", detail, len(messages))
    report = _report(request, draft, changed, len(messages))
    return write_items(
        request, draft.session, draft.before, messages, native, report=report, metadata=metadata
    )


def _restructure(
    request: Request, draft: Draft, native: FrozenList, finals: list[Message], metadata: Mapping[str, object]
) -> Session:
    """An action changed what came before: read the transcript again from native history."""
    known, items = draft.session.messages, draft.before.items
    messages = readable_messages(request, native, known, items, draft.state, draft.context)
    if finals and len(finals) <= len(messages):
        messages[-len(finals) :] = _with_turn(messages[-len(finals) :], finals)
    changed = draft.report or rebuilt(request, "plugin", "a plugin changed earlier history", len(messages))
    report = _report(request, draft, changed, len(messages))
    return write_items(
        request, draft.session, draft.before, messages, native, report=report, metadata=metadata
    )


def _report(request: Request, draft: Draft, report: FrozenDict | None, count: int) -> FrozenDict | None:
    """Return the report with what hooks returned that was not taken over."""
    problems = draft.ledger.problems
    if not problems:
        return report
    detail = "; ".join(map(_describe_revision, problems))
    if report is None:
        report = rebuilt(request, "mended", detail, count)
    else:
        report = FrozenDict({**report, "detail": f"{report['detail']}; {detail}"})
    return FrozenDict({**report, "problems": FrozenList(problems)})


def _describe_revision(entry: FrozenDict) -> str:
    return f"plugin {entry['plugin']!r}, hook {entry['hook']!r}, {entry['problem']}"


def _with_turn(read: Sequence[Message], finals: Sequence[Message]) -> list[Message]:
    """Prefer the turn's own messages, which actions may have adjusted, at the places just read."""
    return [
        final.with_native_indices(message.native_indices) for message, final in zip(read, finals, strict=True)
    ]


def _merged(metadata: Mapping[str, object], *patches: Mapping[str, object]) -> Mapping[str, object]:
    for patch in filter(None, patches):
        metadata = {**metadata, **merge_metadata(metadata, patch)}
    return metadata


def _state_patch(draft: Draft) -> JsonObject:
    """Return what hooks want in the session's metadata; what is not data in it must not cost the answer."""
    patch = draft.state.get("session_metadata_patch")
    if not patch or not isinstance(patch, Mapping):
        return {}
    try:
        return dict(freeze_data(dict(patch), "session_metadata_patch"))
    except NotData as error:
        _log.warning("metadata_patch_changed", field=error.path, problem=str(error))
        readable: JsonObject = plain(dict(patch))
        return readable
