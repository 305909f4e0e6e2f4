"""The native history with which a request starts, whatever state the session is in.

Usually that is what the session carries, plus the native form of messages that were added since. If
the session cannot be trusted, or speaks another provider's language, it is made from the messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.dict_form import replace
from agent_core.errors import PluginError, SessionFormatError
from agent_core.frozen import FrozenDict, State
from agent_core.history import History
from agent_core.messages import NATIVE_INDICES, Message, fold_foreign_fields
from agent_core.native import (
    NATIVE_MESSAGES,
    NativeHistory,
    Seal,
    inherit_internal_metadata,
    item_models,
    model_runs,
    new_native,
    read_native,
    renew_native,
    restore,
    set_aside,
    without,
    write_native,
)
from agent_core.pipeline import chain
from agent_core.pipeline.chain import Groups, to_native

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.frozen import FrozenList
    from agent_core.pipeline.request import Request
    from agent_core.resolve import Resolution
    from agent_core.session import Session


# The transcript, read again from native history.


def readable_messages(
    request: Request,
    native: FrozenList,
    known: Sequence[Message],
    known_items: Sequence[FrozenDict],
    state: State,
    context: object,
) -> list[Message]:
    """Return the messages that *native* stands for.

    A message of *known* whose native items are all still there is kept as it is, with its metadata;
    the others are made by the provider, extensions and features. One that never had an item, such as a
    system message which the provider sends elsewhere, stays behind the message before it.
    """
    converted = chain.from_native(request.resolution, native, state, context)
    familiar = _by_items(known, known_items)
    followers = _itemless(known)
    messages = list(followers.pop(None, ()))
    for message, group in zip(converted.items, converted.groups, strict=True):
        found = None if group is None else familiar.get(tuple(id(native[index]) for index in group))
        made = read_message(request, message) if found is None else found
        messages.append(made.with_native_indices(group))
        if found is not None:
            messages += followers.pop(id(found), ())
    return messages


def write_items(
    request: Request,
    session: Session,
    before: NativeHistory,
    messages: Sequence[Message],
    items: FrozenList,
    **written: Any,
) -> Session:
    """Return the session with changed native history; items that were there keep their model."""
    origin = {id(item): name for item, name in zip(before.items, item_models(before.models), strict=True)}
    models = model_runs(origin.get(id(item), request.resolution.model) for item in items)
    history, native = renew_native(before, session.history, messages, items, models)
    return write_native(session, history, native, **written)


def _by_items(messages: Sequence[Message], items: Sequence[FrozenDict]) -> dict[tuple[int, ...], Message]:
    listed = list(items)
    return {
        tuple(id(listed[index]) for index in message.native_indices): message
        for message in messages
        if message.native_indices and max(message.native_indices) < len(listed)
    }


def _itemless(messages: Sequence[Message]) -> dict[int | None, list[Message]]:
    """Return the messages without native items, by the identity of the one before them, or None."""
    found: dict[int | None, list[Message]] = {}
    before = None
    for message in messages:
        if message.native_indices == ():
            found.setdefault(before, []).append(message)
        else:
            before = id(message)
    return found


def read_message(request: Request, message: Mapping[str, object]) -> Message:
    """Return a plugin's readable message as a `Message`; fields that it lacks go into its metadata."""
    try:
        return Message.from_dict(fold_foreign_fields(message))
    except SessionFormatError as error:
        raise PluginError(request.resolution.provider.name, "from_native_messages", str(error)) from error


@dataclass(frozen=True, slots=True)
class NativeView:
    """A session whose native history covers all of its messages.

    Attributes:
        session: Its messages point at their items. Its metadata may still be that of before: a request
            writes it once, with the answer.
        report: What had to be rebuilt, and why; None if nothing had to.
    """

    session: Session
    native: NativeHistory
    report: FrozenDict | None = None

    def written(self) -> Session:
        """Return the session with this native history in its metadata."""
        return write_native(self.session, self.session.history, self.native, report=self.report)


def native_view(request: Request, state: State, context: object) -> NativeView:
    """Return the request's session with native history for its provider, covering every message."""
    view = _trusted_part(request)
    pending = view.session.history[view.native.covered :]
    if not pending:
        return view
    messages, items = convert(request.resolution, list(pending), len(view.native.items), state, context)
    items = _inherit(request.session, view, messages, items)
    native = view.native.extend(messages, items, request.resolution.model)
    kept = view.session.history.prefix(view.native.covered)
    return NativeView(view.session.with_messages(kept.extend(messages)), native, view.report)


def _inherit(
    session: Session, view: NativeView, messages: list[Message], items: list[FrozenDict]
) -> list[FrozenDict]:
    """Return newly made items with the `_metadata` of those that they replace, where they do."""
    if view.report is None or view.report["reason"] != "integrity":
        return items
    start = len(view.native.items)
    groups = [[index - start for index in message.native_indices or ()] for message in messages]
    before = session.history[view.native.covered :]
    return inherit_internal_metadata(session.metadata.get(NATIVE_MESSAGES), before, items, groups)


def convert(
    resolution: Resolution, messages: list[Message], start: int, state: State, context: object
) -> tuple[list[Message], list[FrozenDict]]:
    """Return messages pointing at their native items, and the items, which will stand at *start*."""
    converted = to_native(resolution, messages, state, context)
    return point(messages, converted.groups, start), list(converted.items)


def point(messages: list[Message], groups: Groups, start: int) -> list[Message]:
    """Return the messages with the indices of their groups, moved up by *start*."""
    return [
        message.with_native_indices(None if group is None else tuple([start + index for index in group]))
        for message, group in zip(messages, groups, strict=True)
    ]


def rebuilt(request: Request, reason: str, detail: str, count: int) -> FrozenDict:
    """Return the report of a rebuild, as it stands in the session's metadata."""
    return FrozenDict(operation=request.operation, reason=reason, detail=detail, messages=count)


def _trusted_part(request: Request) -> NativeView:
    """Return what native history can be used as it is; the rest of the messages is pending."""
    session, provider = request.session, request.resolution.provider.name
    native, problem = read_native(session)
    if native is not None and native.provider == provider:
        return NativeView(session, native)
    if native is not None and native.provider is None:
        return NativeView(session, replace(native, provider=provider))
    report = None if problem is None else rebuilt(request, "integrity", problem, len(session.messages))
    if native is not None:
        session = set_aside(session, native)
        detail = f"provider {native.provider!r} made it, {provider!r} was asked"
        report = rebuilt(request, "provider_changed", detail, len(session.messages))
    return _from_archive(request, session, report)


def _from_archive(request: Request, session: Session, report: FrozenDict | None) -> NativeView:
    provider = request.resolution.provider.name
    found, problem = restore(session, provider)
    if problem is not None:
        report = _add_problem(request, report, problem)
        session = without(session, provider)
    if found is None:
        empty = NativeHistory(items=History(), provider=provider, models=(), seal=Seal())
        if any(NATIVE_INDICES in message.metadata for message in session.messages):
            unpointed = [message.with_native_indices(None) for message in session.messages]
            session = replace_messages(session, unpointed)
        return NativeView(session, empty, report)
    messages = [*found.messages, *session.history[len(found.messages) :]]
    native = new_native(found.messages, found.items, provider, found.models)
    if report is not None:
        report = FrozenDict({**report, "messages": len(session.messages) - len(found.messages)})
    return NativeView(replace_messages(without(session, provider), messages), native, report)


def _add_problem(request: Request, report: FrozenDict | None, problem: str) -> FrozenDict:
    if report is None:
        return rebuilt(request, "integrity", problem, len(request.session.messages))
    return FrozenDict({**report, "detail": f"{report['detail']}; {problem}"})


def replace_messages(session: Session, messages: list[Message]) -> Session:
    """Return the session with other messages; its seal, if any, is gone."""
    return session.with_messages(History(messages))
