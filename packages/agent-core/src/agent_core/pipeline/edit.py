"""Edits of a session that keep native history in step where that is safe.

Each edit says which messages result, which native items stay and which messages need new
ones; `indices.compose` does the arithmetic. Where it is not safe (nobody knows which items belong to
a message, or no provider can make new ones), native history is dropped, the result's metadata says
so, and the next request rebuilds it from the messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.dict_form import replace
from agent_core.errors import ArgumentError, NativeHistoryError
from agent_core.frozen import FrozenDict, FrozenList, State
from agent_core.history import History
from agent_core.native import (
    NATIVE_MESSAGES,
    REBUILT,
    NativeHistory,
    NewItems,
    carry_internal_metadata,
    compose,
    cut_native,
    inherit_internal_metadata,
    item_models,
    model_runs,
    new_native,
    owners,
    read_native,
    renew_native,
    set_aside,
    share_beginning,
    write_native,
)
from agent_core.pipeline import chain
from agent_core.pipeline.native_view import native_view, read_message, rebuilt
from agent_core.pipeline.prepare import begin

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_core.messages import Message
    from agent_core.pipeline.request import Request
    from agent_core.session import Session


_NOBODY = -1  # an owner that stays in no selection
_NO_PLACE = "nobody knows between which native items the message belongs"


@dataclass(frozen=True, slots=True)
class Editor:
    """A session to edit, with a provider that can make native items if there is one.

    Attributes:
        request: Who converts messages; None if the configuration names nobody who could.
    """

    session: Session
    operation: str
    request: Request | None = None

    def append(self, message: Message) -> Session:
        """Return the session with one more message at its end; costs the same at any length."""
        session = self.session
        native, _problem = read_native(session)
        longer = _with_messages(session, session.history.append(message), native)
        if self.request is None or native is None or not self.speaks(native):
            return longer
        request = replace(self.request, session=longer)
        state, context = begin(request)
        return native_view(request, state, context).written()

    def insert(self, message: Message, at: int) -> Session:
        """Return the session with a message before the one that stands at *at*."""
        messages = [*self.session.messages]
        messages.insert(at, message)
        native, problem = self._usable()
        if native is None:
            return self.drop(messages, problem)
        if at >= native.covered:
            return _with_messages(self.session, messages, native)
        gap = self._gap(native, at, at)
        if gap is None:
            return self.drop(messages, _NO_PLACE)
        return self._compose(native, messages, native.covered + 1, range(len(native.items)), {at: gap})

    def modify(self, index: int, message: Message) -> Session:
        """Return the session with one message replaced; for the last one, little of a long one is read."""
        session = self.session
        messages = session.history.prefix(index).append(message).extend(session.history[index + 1 :])
        native, problem = self._usable()
        if native is None:
            return self.drop(messages, problem)
        if index >= native.covered:
            return _with_messages(session, messages, native)
        own = session.messages[index].native_indices
        if native.seal.in_order and index + 1 == native.covered == len(messages):
            return self._replace_last(native, message, own[0] if own else len(native.items))
        if own is None or self._shared(native, own):
            return self.drop(messages, "the message has no native items of its own")
        place = min(own) - 1 if own else self._gap(native, index, index + 1)
        if place is None:
            return self.drop(messages, _NO_PLACE)
        keep = [item for item in range(len(native.items)) if item not in own]
        return self._compose(native, list(messages), native.covered, keep, {index: place})

    def _replace_last(self, native: NativeHistory, message: Message, start: int) -> Session:
        """Return the session with another last message, whose native items begin at *start*."""
        assert self.request is not None
        index, items = native.covered - 1, self._make(native, message)
        pointed = message.with_native_indices(tuple(range(start, start + len(items))))
        kept = cut_native(native, index, start)
        made_by = self.request.resolution.model
        messages = self.session.history.prefix(index).append(pointed)
        return write_native(self.session, messages, kept.extend([pointed], items, made_by))

    def prefix(self, count: int) -> Session:
        """Return the session with its first messages; of a long one, only what is around the cut is read."""
        session = self.session
        native, _problem = self._usable()
        if native is None or not native.seal.in_order:
            return self.select(range(count))
        if count < native.covered:
            native = cut_native(native, count, self._end_of_items(native, count))
        return write_native(session, session.history.prefix(count), native)

    def _end_of_items(self, native: NativeHistory, count: int) -> int:
        """Return where the items of the first messages end; all items are in order."""
        for place in range(count, native.covered):
            if own := self.session.messages[place].native_indices:
                return own[0]
        return len(native.items)

    def select(self, keep: Sequence[int], *, unowned: bool = True) -> Session:
        """Return the session with only the messages at those positions, which are in order.

        Args:
            unowned: Whether native items that belong to no message stay.
        """
        messages = [self.session.messages[position] for position in keep]
        native, problem = self._usable()
        if native is None:
            return self.drop(messages, problem)
        kept = [position for position in keep if position < native.covered]
        owned = self._owners(native)
        if owned is None:
            return self.drop(messages, "some messages are not mapped to native items")
        if not unowned:
            owned = {item: owned.get(item, [_NOBODY]) for item in range(len(native.items))}
        return self._cut(native, messages, kept, owned)

    def _cut(
        self, native: NativeHistory, messages: list[Message], kept: list[int], owned: dict[int, list[int]]
    ) -> Session:
        """Keep the items of kept messages; a message that shared some with a removed one gets new ones."""
        staying = set(kept)
        gone = {item for item, who in owned.items() if not staying.issuperset(who)}
        renewed: dict[int, int] = {}
        while torn := [
            (place, indices)
            for place in range(len(kept))
            if place not in renewed
            and (indices := messages[place].native_indices)
            and not gone.isdisjoint(indices)
        ]:
            for place, indices in torn:
                renewed[place] = min(indices) - 1
                gone.update(indices)
        keep = [item for item in range(len(native.items)) if item not in gone]
        return self._compose(native, messages, len(kept), keep, renewed)

    def _compose(
        self,
        native: NativeHistory,
        messages: list[Message],
        covered: int,
        keep: Collection[int],
        renewed: Mapping[int, int],
    ) -> Session:
        new = {
            position: NewItems(after, self._make(native, messages[position]))
            for position, after in renewed.items()
        }
        composed = compose(messages[:covered], native.items.to_list(), keep, new)
        models = item_models(native.models)
        made_by = None if self.request is None else self.request.resolution.model
        runs = model_runs(made_by if origin is None else models[origin] for origin in composed.origins)
        history, renewed_native = renew_native(
            native, self.session.history, composed.messages, composed.items, runs
        )
        pending = [message.with_native_indices(None) for message in messages[covered:]]
        return write_native(self.session, history.extend(pending), renewed_native)

    def _make(self, native: NativeHistory, message: Message) -> list[FrozenDict]:
        assert self.request is not None
        state, context = begin(self.request)
        items = chain.to_native(self.request.resolution, [message], state, context).items
        replaced = [native.items[index] for index in message.native_indices or ()]
        return carry_internal_metadata(replaced, list(items))

    def _usable(self) -> tuple[NativeHistory | None, str | None]:
        """Return the native history if this edit can keep it, or why it cannot."""
        native, problem = read_native(self.session)
        if native is None:
            return None, problem
        if self.request is None:
            return None, "no configuration was given"
        if not self.speaks(native):
            return None, f"it was set aside: provider {native.provider!r} made it, another was asked"
        return native, None

    def speaks(self, native: NativeHistory) -> bool:
        """Say whether native history is in the language of the request's provider."""
        assert self.request is not None
        return native.provider in (None, self.request.resolution.provider.name)

    def _gap(self, native: NativeHistory, start: int, end: int) -> int | None:
        """Return behind which native item one in the place of ``messages[start:end]`` belongs, if known."""
        if self._owners(native) is None:
            return None
        covered = self.session.history.prefix(native.covered)
        before = max(_indices(covered[:start]), default=-1)
        after = min(_indices(covered[end:]), default=len(native.items))
        if before < 0:
            return after - 1  # items that belong to nobody, a system prompt say, stay in front
        return before if before < after else None

    def _owners(self, native: NativeHistory) -> dict[int, list[int]] | None:
        """Return who owns each native item, or None if the items of some message are not known."""
        covered = self.session.history.prefix(native.covered)
        if any(message.native_indices is None for message in covered):
            return None
        return owners(covered, len(native.items))

    def _shared(self, native: NativeHistory, indices: Collection[int]) -> bool:
        owned = owners(self.session.history.prefix(native.covered), len(native.items))
        return owned is None or any(len(owned[index]) > 1 for index in indices)

    def drop(self, messages: Sequence[Message], problem: str | None) -> Session:
        """Return the messages without native history; without a problem there was none to drop."""
        report = None
        if problem is not None:
            report = FrozenDict(
                operation=self.operation, reason="dropped", detail=problem, messages=len(messages)
            )
        plain = [message.with_native_indices(None) for message in messages]
        history, _shared = share_beginning(self.session.history, plain)
        return write_native(self._set_aside(), history, None, report=report)

    def _set_aside(self) -> Session:
        """Return the session with another provider's native history kept for when it is asked again."""
        native, _problem = read_native(self.session)
        if native is None or self.request is None or self.speaks(native):
            return self.session
        return set_aside(self.session, native)


def extend(session: Session, messages: Sequence[Message]) -> Session:
    """Return the session with messages at its end that have no native form yet."""
    native, _problem = read_native(session)
    return _with_messages(session, session.history.extend(messages), native)


def join(prefix: Session, suffix: Session, request: Request | None) -> Session:
    """Return both conversations one after the other, under the first one's id and metadata."""
    editor = Editor(prefix, "join_sessions", request)
    messages = [*prefix.messages, *suffix.messages]
    first, first_problem = read_native(prefix)
    second, second_problem = read_native(suffix)
    problem = first_problem or second_problem
    if first is None and second is None and problem is None:
        return editor.drop(messages, None)
    if request is None:
        return editor.drop(messages, problem or "no configuration was given")
    if problem is not None or not all(editor.speaks(native) for native in (first, second) if native):
        return editor.drop(messages, problem or "the sessions were made by different providers")
    if second is None:
        plain = [message.with_native_indices(None) for message in suffix.messages]
        return _with_messages(prefix, prefix.history.extend(plain), first)
    return _concatenate(replace(request, session=prefix), suffix, second)


def _concatenate(request: Request, suffix: Session, second: NativeHistory) -> Session:
    state, context = begin(request)
    view = native_view(request, state, context)
    start = len(view.native.items)
    moved = [
        message.with_native_indices(
            None if message.native_indices is None else tuple(start + i for i in message.native_indices)
        )
        for message in suffix.history.prefix(second.covered)
    ]
    models = model_runs([*item_models(view.native.models), *item_models(second.models)])
    native = replace(view.native.extend(moved, second.items, None), models=models)
    pending = [message.with_native_indices(None) for message in suffix.history[second.covered :]]
    messages = view.session.history.extend([*moved, *pending])
    return write_native(view.session, messages, native, report=view.report)


def convert_messages(request: Request, messages: Sequence[Message]) -> FrozenList:
    """Return the native form of messages that belong to no session."""
    state, context = begin(request)
    return chain.to_native(request.resolution, messages, state, context).items


def _with_messages(session: Session, messages: Sequence[Message], native: NativeHistory | None) -> Session:
    """Return the session with messages added behind those that native history covers."""
    metadata = session.metadata
    if REBUILT in metadata:
        metadata = FrozenDict({key: value for key, value in metadata.items() if key != REBUILT})
    return session.with_messages(History.of(messages), metadata, None if native is None else native.seal)


def _indices(messages: Sequence[Message]) -> list[int]:
    return [index for message in messages for index in message.native_indices or ()]


# `rebuild_native_history`: for all messages, or for some.


def rebuild_all(request: Request) -> Session:
    """Return the session with native history rebuilt from all of its messages."""
    state, context = begin(request)
    messages = list(request.session.messages)
    converted = chain.to_native(request.resolution, messages, state, context)
    old = request.session.metadata.get(NATIVE_MESSAGES)
    items = FrozenList(inherit_internal_metadata(old, messages, converted.items, converted.groups))
    detail = "rebuild_native_history was called"
    report = rebuilt(request, "requested", detail, len(messages))
    return _read_back(request, items, {}, state, context, report)


def rebuild_range(request: Request, start: int | None, end: int | None) -> Session:
    """Return the session with native history rebuilt for ``messages[start:end]``."""
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
    state: State,
    context: object,
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
        extra={**was.extra, **made.extra},
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
