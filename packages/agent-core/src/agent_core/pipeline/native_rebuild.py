"""`rebuild_native_history`: making native history anew, all of it or that of some messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core.errors import ArgumentError, NativeHistoryError
from agent_core.frozen import FrozenDict, FrozenList
from agent_core.history import History
from agent_core.native import (
    NATIVE_MESSAGES,
    NativeHistory,
    carry_internal_metadata,
    inherit_internal_metadata,
    item_models,
    model_runs,
    new_native,
    owners,
    read_native,
    write_native,
)
from agent_core.pipeline import chain
from agent_core.pipeline.edit import begin
from agent_core.pipeline.native_view import native_view, rebuilt
from agent_core.pipeline.rebuild import read_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.messages import Message
    from agent_core.pipeline.request import Request
    from agent_core.session import Session


def rebuild_all(request: Request) -> Session:
    """Return the session with native history made anew from all of its messages."""
    state, context = begin(request)
    messages = list(request.session.messages)
    converted = chain.to_native(request.resolution, messages, state, context)
    old = request.session.metadata.get(NATIVE_MESSAGES)
    items = FrozenList(inherit_internal_metadata(old, messages, converted.items, converted.groups))
    detail = "rebuild_native_history was called"
    report = rebuilt(request, "requested", detail, len(messages))
    return _read_back(request, items, {}, state, context, report)


def rebuild_range(request: Request, start: int | None, end: int | None) -> Session:
    """Return the session with native history made anew for ``messages[start:end]``."""
    first, last = _range(len(request.session.messages), start, end)
    _check_retained(request)
    state, context = begin(request)
    view = native_view(request, state, context)  # with the native form of messages that had none yet
    request, native = replace(request, session=view.session), view.native
    selected = list(view.session.history[first:last])
    cut = _contiguous(selected)
    _check_owners(view.session.messages, native, cut, range(first, last))
    made = chain.to_native(request.resolution, selected, state, context).items
    replaced = [native.items[index] for index in cut]
    made_items = carry_internal_metadata(replaced, list(made))
    items = native.items.to_list()
    items[cut.start : cut.stop] = made_items
    detail = f"rebuild_native_history was called for messages {first} to {last - 1}"
    report = rebuilt(request, "requested", detail, len(selected))
    models = {id(item): model for item, model in zip(native.items, item_models(native.models), strict=True)}
    return _read_back(request, FrozenList(items), models, state, context, report)


def _read_back(
    request: Request,
    items: FrozenList,
    models: dict[int, str | None],
    state: dict[str, Any],
    context: Any,
    report: FrozenDict,
) -> Session:
    """Let plugins prepare the new history as for a request, and read the transcript from it."""
    items, state = chain.initialize(request.resolution, items, state, context)
    converted = chain.from_native(request.resolution, items, state, context)
    known = request.session.messages
    messages = [
        _keep_metadata(
            known, place, len(converted.items), read_message(request, message)
        ).with_native_indices(group)
        for place, (message, group) in enumerate(zip(converted.items, converted.groups, strict=True))
    ]
    runs = model_runs(models.get(id(item), request.resolution.model) for item in items)
    native = new_native(messages, History(items), request.resolution.provider.name, runs)
    return write_native(request.session, messages, native, report=report)


def _keep_metadata(known: Any, place: int, count: int, made: Message) -> Message:
    """Return the message that was read back, with what was known about the one in its place."""
    if count != len(known) or known[place].role != made.role:
        return made
    was: Message = known[place]
    return replace(
        made,
        metadata={**was.metadata, **made.metadata},
        multipart_content=made.multipart_content or was.multipart_content,
        tool_result=made.tool_result or was.tool_result,
    )


def _range(count: int, start: int | None, end: int | None) -> tuple[int, int]:
    first, last = 0 if start is None else start, count if end is None else end
    if not 0 <= first < last <= count:
        raise ArgumentError(
            f"start/end must select at least one of the session's {count} messages, not {first}:{last}"
        )
    return first, last


def _check_retained(request: Request) -> None:
    native, problem = read_native(request.session)
    if native is None:
        why = problem or "the session has none"
        raise NativeHistoryError(f"a selective rebuild needs native history to keep: {why}")
    if native.provider not in (None, request.resolution.provider.name):
        raise NativeHistoryError(
            f"a selective rebuild needs native history to keep: the session's is provider "
            f"{native.provider!r}'s, and the configuration names another"
        )


def _check_owners(messages: Sequence[Message], native: NativeHistory, cut: range, selected: range) -> None:
    owned = owners(messages, len(native.items))
    if owned is None or any(position not in selected for item in cut for position in owned.get(item, ())):
        raise NativeHistoryError("the selected messages share native items with others")


def _contiguous(messages: list[Message]) -> range:
    """Return the native items of the messages, which must stand side by side."""
    for message in messages:
        if not message.native_indices:
            raise NativeHistoryError("a selective rebuild needs native_indices on every selected message")
    indices = sorted({index for message in messages for index in message.native_indices or ()})
    if indices[-1] - indices[0] + 1 != len(indices):
        raise NativeHistoryError("the selected messages do not map to a contiguous part of native history")
    return range(indices[0], indices[-1] + 1)
