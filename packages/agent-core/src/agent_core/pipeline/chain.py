"""The plugins of a request, one after the other: provider, then extensions, then features.

A chain is a loop in which each plugin receives what the one before it returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_core.errors import PluginError, SessionFormatError
from agent_core.frozen import FrozenDict, FrozenList, JsonObject, State
from agent_core.messages import NATIVE_INDICES, Message, check_message_dict, fold_foreign_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_core.pipeline.ledger import Ledger
    from agent_core.plugin.base import PluginWrapper
    from agent_core.resolve import Resolution

Groups = list[tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class Converted:
    """Messages in another form, and which items of the one belong to which of the other.

    Attributes:
        items: The result of the whole chain.
        groups: For each message, the indices of its items; None where that is unknown.
    """

    items: FrozenList
    groups: Groups


def init_state(resolution: Resolution, config: FrozenDict, context: object) -> JsonObject:
    """Return the state that all plugins of a request share."""
    state = resolution.provider.provider.init(config, context)
    for plugin in resolution.followers("init"):
        state = plugin.init(config, state, context)
    return state


def to_native(
    resolution: Resolution, messages: Sequence[Message], state: State, context: object
) -> Converted:
    # Not kept: a converted message is soon replaced by one that points at its items.
    dicts = FrozenList([message.frozen_dict(keep=False) for message in messages])
    made = resolution.provider.provider.to_native_messages(dicts, state, context)
    items = made
    for plugin in resolution.followers("to_native_messages"):
        items = plugin.to_native_messages(dicts, items, state, context)
    if len(messages) == 1:
        return Converted(items, [tuple(range(len(items)))])
    groups = _groups_of_provider(resolution, dicts, made, state, context)
    return Converted(items, _follow(groups, made, items))


def from_native(
    resolution: Resolution,
    native: FrozenList,
    state: State,
    context: object,
    keep: Callable[[str, FrozenList, FrozenList], FrozenList] | None = None,
) -> Converted:
    """Return the readable form of *native*; the groups say which native items each message is of.

    Args:
        keep: Returns what to take over of a plugin's messages, by its name and what it was given.
    """
    provider = resolution.provider.provider
    messages = _checked(provider, provider.from_native_messages(native, state, context))
    for plugin in resolution.followers("from_native_messages"):
        made = plugin.from_native_messages(native, messages, state, context)
        if made is not messages:
            made = _checked(plugin, made)
            messages = made if keep is None else keep(plugin.name, messages, made)
    return Converted(messages, _groups_of_messages(resolution, native, messages, state, context))


def initialize(
    resolution: Resolution, native: FrozenList, state: State, context: object
) -> tuple[FrozenList, State]:
    """Let every plugin prepare the request."""
    native, state = resolution.provider.provider.initialize_request(native, state, context)
    for plugin in resolution.followers("initialize_request"):
        native, state = plugin.initialize_request(native, state, context)
    return native, state


def finalize(
    resolution: Resolution,
    finals: FrozenList,
    native: FrozenList,
    state: State,
    context: object,
    ledger: Ledger,
) -> tuple[FrozenList, FrozenList, State]:
    """Let every plugin have its last word on the turn's native messages."""
    provider = resolution.provider.provider
    last, items, state = provider.finalize(native, state, context)
    native = ledger.take_native(provider.name, "finalize", native, items, finals)
    finals, native = ledger.settle(provider.name, "finalize", finals, last, native)
    for plugin in resolution.followers("finalize"):
        changed, items, state = plugin.finalize(finals, native, state, context)
        native = ledger.take_adjusted(plugin.name, "finalize", native, items, finals)
        finals = ledger.take_finals(plugin.name, "finalize", finals, changed)
    return finals, ledger.cover(finals, native), state


def _checked(plugin: PluginWrapper, messages: FrozenList) -> FrozenList:
    """Return what a plugin made readable, if it is."""
    for message in messages:
        try:
            check_message_dict(fold_foreign_fields(message))
        except SessionFormatError as error:
            raise PluginError(plugin.name, "from_native_messages", str(error)) from error
    return messages


def _groups_of_provider(
    resolution: Resolution, dicts: FrozenList, made: FrozenList, state: State, context: object
) -> Groups:
    """Ask again message by message, and believe it if the sum is the same.

    As many items as messages prove nothing, unless the provider declares that each message makes one: one
    message may have made two of them, another none.
    """
    provider = resolution.provider.provider
    one_each = [1] * len(dicts)
    if provider.one_item_per_message and len(made) == len(dicts):
        return _consecutive(one_each)
    alone: list[Sequence[object]] | None
    try:
        alone = provider.to_native_one_by_one(dicts, state, context)
    except PluginError:
        alone = None  # some cannot be understood alone
    if alone is None:
        return _consecutive(one_each) if len(made) == len(dicts) else [None] * len(dicts)
    sizes = [len(items) for items in alone]
    if sizes == one_each == [1] * len(made) or [item for items in alone for item in items] == made:
        return _consecutive(sizes)
    return [None] * len(dicts)


def _groups_of_messages(
    resolution: Resolution, native: FrozenList, messages: FrozenList, state: State, context: object
) -> Groups:
    declared = [_declared(message, len(native)) for message in messages]
    if messages and None not in declared:
        return declared
    if len(messages) == 1:
        return [tuple(range(len(native)))]
    provider = resolution.provider.provider
    alone: list[FrozenList] | None
    try:
        alone = [provider.from_native_messages(FrozenList([item]), state, context) for item in native]
    except PluginError:
        alone = None
    sizes = [1] * len(native) if alone is None else [len(made) for made in alone]
    if sum(sizes) != len(messages):
        return [None] * len(messages)
    return _with_unread(sizes)


def _with_unread(sizes: list[int]) -> Groups:
    """Return the item of each message, with those before it that read as nothing, such as reasoning."""
    groups: Groups = []
    unread: tuple[int, ...] = ()
    for index, size in enumerate(sizes):
        if size == 0:
            unread = (*unread, index)
            continue
        groups += [(*unread, index), *[(index,)] * (size - 1)]
        unread = ()
    if unread and groups:
        groups[-1] = (*(groups[-1] or ()), *unread)
    return groups


def _declared(message: FrozenDict, count: int) -> tuple[int, ...] | None:
    """Return the indices that the provider itself gave a message, if they make sense."""
    indices = (message.get("metadata") or {}).get(NATIVE_INDICES)
    if not isinstance(indices, list) or not indices:
        return None
    return tuple(indices) if all(isinstance(i, int) and 0 <= i < count for i in indices) else None


def _follow(groups: Groups, made: FrozenList, items: FrozenList) -> Groups:
    """Return the groups after extensions and features turned *made* into *items*.

    A message whose items are not all found again is one whose items nobody can tell.
    """
    if len(made) == len(items):
        return groups
    places = {id(item): index for index, item in enumerate(items)}
    moved = {index: places[id(item)] for index, item in enumerate(made) if id(item) in places}
    return [
        None if group is None or not moved.keys() >= set(group) else tuple(moved[index] for index in group)
        for group in groups
    ]


def _consecutive(sizes: list[int]) -> Groups:
    groups: Groups = []
    start = 0
    for size in sizes:
        groups.append(tuple(range(start, start + size)))
        start += size
    return groups
