"""The plugins of a request, one after the other: provider, then extensions, then features.

A chain is a loop in which each plugin receives what the one before it returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.frozen import FrozenDict, FrozenList
from agent_core.messages import NATIVE_INDICES, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.resolve import Resolution

Groups = list[tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class Converted:
    """Messages in another form, and which items of the one belong to which of the other.

    Attributes:
        items: The result of the whole chain.
        groups: For each message, the indices of its items; None where that cannot be told.
    """

    items: FrozenList
    groups: Groups


def init_state(resolution: Resolution, config: FrozenDict, context: Any) -> dict[str, Any]:
    """Return the state that all plugins of a request share."""
    state = resolution.provider.init(config, context)
    for feature in resolution.features:
        state = feature.init(config, state, context)
    return state


def to_native(
    resolution: Resolution, messages: Sequence[Message], state: dict[str, Any], context: Any
) -> Converted:
    """Return the native form of *messages*."""
    dicts = FrozenList([message.frozen_dict() for message in messages])
    made = resolution.provider.provider.to_native(dicts, state, context)
    items = made
    for plugin in (*resolution.provider.extensions, *resolution.features):
        items = plugin.to_native(dicts, items, state, context)
    if len(messages) == 1:
        return Converted(items, [tuple(range(len(items)))])
    groups = _groups_of_provider(resolution, dicts, made, state, context)
    return Converted(items, _follow(groups, made, items))


def from_native(resolution: Resolution, native: FrozenList, state: dict[str, Any], context: Any) -> Converted:
    """Return the readable form of *native*; the groups say which native items each message is of."""
    messages = resolution.provider.from_native(native, state, context)
    for feature in resolution.features:
        messages = feature.from_native(native, messages, state, context)
    return Converted(messages, _groups_of_messages(resolution, native, messages, state, context))


def initialize(
    resolution: Resolution, native: FrozenList, state: dict[str, Any], context: Any
) -> tuple[FrozenList, dict[str, Any]]:
    """Let every plugin prepare the request."""
    native, state = resolution.provider.initialize_request(native, state, context)
    for feature in resolution.features:
        native, state = feature.initialize_request(native, state, context)
    return native, state


def finalize(
    resolution: Resolution, finals: FrozenList, native: FrozenList, state: dict[str, Any], context: Any
) -> tuple[FrozenList, FrozenList, dict[str, Any]]:
    """Let every plugin have its last word on the turn's native messages."""
    finals, native, state = resolution.provider.finalize(finals, native, state, context)
    for feature in resolution.features:
        finals, native, state = feature.finalize(finals, native, state, context)
    return finals, native, state


def _groups_of_provider(
    resolution: Resolution, dicts: FrozenList, made: FrozenList, state: dict[str, Any], context: Any
) -> Groups:
    if len(made) == len(dicts):
        return [(index,) for index in range(len(made))]
    provider = resolution.provider.provider
    # It merged or split some: ask again message by message, and believe it if the sum is the same.
    alone = [provider.to_native(FrozenList([message]), state, context) for message in dicts]
    if [item for items in alone for item in items] != made:
        return [None] * len(dicts)
    return _consecutive([len(items) for items in alone])


def _groups_of_messages(
    resolution: Resolution, native: FrozenList, messages: FrozenList, state: dict[str, Any], context: Any
) -> Groups:
    declared = [_declared(message, len(native)) for message in messages]
    if messages and all(indices is not None for indices in declared):
        return declared
    if len(messages) == len(native):
        return [(index,) for index in range(len(native))]
    if len(messages) == 1:
        return [tuple(range(len(native)))]
    provider = resolution.provider.provider
    sizes = [len(provider.from_native(FrozenList([item]), state, context)) for item in native]
    if sum(sizes) != len(messages):
        return [None] * len(messages)
    return [(index,) for index, size in enumerate(sizes) for _ in range(size)]


def _declared(message: FrozenDict, count: int) -> tuple[int, ...] | None:
    """Return the indices that the provider itself gave a message, if they make sense."""
    indices = (message.get("metadata") or {}).get(NATIVE_INDICES)
    if not isinstance(indices, list) or not indices:
        return None
    return tuple(indices) if all(isinstance(i, int) and 0 <= i < count for i in indices) else None


def _follow(groups: Groups, made: FrozenList, items: FrozenList) -> Groups:
    """Return the groups after extensions and features turned *made* into *items*."""
    if len(made) == len(items):
        return groups
    places = {id(item): index for index, item in enumerate(items)}
    moved = {index: places[id(item)] for index, item in enumerate(made) if id(item) in places}
    return [None if g is None else tuple(moved[i] for i in g if i in moved) for g in groups]


def _consecutive(sizes: list[int]) -> Groups:
    groups: Groups = []
    start = 0
    for size in sizes:
        groups.append(tuple(range(start, start + size)))
        start += size
    return groups
