"""Which native items belong to which message, kept true while messages come, go and change.

A message's `native_indices` say where its native form stands. Any edit is described by what stays
and what is new; `compose` puts the two together and gives every message its new indices. Items that
no message owns (a system prompt that a feature added, say) stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from agent_core.messages import Message

INTERNAL_METADATA = "_metadata"


@dataclass(frozen=True, slots=True)
class NewItems:
    """Native items made for one message, to stand right behind native item *after* (-1: first)."""

    after: int
    items: Sequence[FrozenDict]


@dataclass(frozen=True, slots=True)
class Composed:
    """Messages with their indices, the items that they point to, and where those came from."""

    messages: list[Message]
    items: list[FrozenDict]
    origins: list[int | None]


def compose(
    messages: Sequence[Message],
    items: Sequence[FrozenDict],
    keep: Collection[int],
    new: Mapping[int, NewItems],
) -> Composed:
    """Put kept and new items in order and point each message at its own.

    Args:
        messages: The messages as they shall be; those without an entry in *new* still carry
            their old indices.
        items: The old items.
        keep: Which old items stay.
        new: For the position of a message: the items that replace its old ones.
    """
    entries = [((index, 0, 0), items[index], index) for index in keep]
    for position, made in new.items():
        entries += [
            ((made.after, 1 + position, place), item, -1 - position) for place, item in enumerate(made.items)
        ]
    entries.sort(key=lambda entry: entry[0])
    return _point(messages, entries, new)


def _point(messages: Sequence[Message], entries: list[Any], new: Mapping[int, NewItems]) -> Composed:
    moved: dict[int, int] = {}
    made: dict[int, list[int]] = {position: [] for position in new}
    for place, (_, _, source) in enumerate(entries):
        if source >= 0:
            moved[source] = place
        else:
            made[-1 - source].append(place)
    pointed = [
        message.with_native_indices(tuple(made[position]))
        if position in made
        else message.with_native_indices(_move(message.native_indices, moved))
        for position, message in enumerate(messages)
    ]
    origins = [source if source >= 0 else None for _, _, source in entries]
    return Composed(pointed, [item for _, item, _ in entries], origins)


def _move(indices: tuple[int, ...] | None, moved: Mapping[int, int]) -> tuple[int, ...] | None:
    return None if indices is None else tuple(moved[index] for index in indices)


def owners(messages: Iterable[Message], count: int) -> dict[int, list[int]] | None:
    """Return which message positions own each native item, or None if some indices make no sense."""
    owned: dict[int, list[int]] = {}
    for position, message in enumerate(messages):
        for index in message.metadata.get("native_indices") or ():
            if not isinstance(index, int) or not 0 <= index < count:
                return None
            owned.setdefault(index, []).append(position)
    return owned


def sequential(messages: Iterable[Message], groups: Iterable[int], start: int) -> list[Message]:
    """Return the messages standing one after the other, each on as many items as its group says."""
    placed = []
    for message, size in zip(messages, groups, strict=True):
        placed.append(message.with_native_indices(tuple(range(start, start + size))))
        start += size
    return placed


def carry_internal_metadata(old: Sequence[Mapping[str, Any]], new: Sequence[FrozenDict]) -> list[FrozenDict]:
    """Return the new items with the `_metadata` of those they replace.

    Item by item where there are as many; otherwise the first new item inherits it all.
    """
    if len(old) == len(new):
        return [_with_internal(made, was.get(INTERNAL_METADATA)) for was, made in zip(old, new, strict=True)]
    merged: dict[str, Any] = {}
    for was in old:
        merged.update(was.get(INTERNAL_METADATA) or {})
    return [_with_internal(made, merged if place == 0 else None) for place, made in enumerate(new)]


def _with_internal(item: FrozenDict, inherited: Mapping[str, Any] | None) -> FrozenDict:
    if not inherited:
        return item
    own = item.get(INTERNAL_METADATA) or {}
    return FrozenDict({**item, INTERNAL_METADATA: FrozenDict({**inherited, **own})})


def patch_internal_metadata(
    items: list[dict[str, Any]], indices: Collection[int], patch: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the items with *patch* merged into the `_metadata` of those selected.

    Indices that are out of range are skipped; the same list comes back when nothing changes.
    """
    patched = list(items)
    changed = False
    for index in {i for i in indices if 0 <= i < len(items)}:
        internal = patched[index].get(INTERNAL_METADATA)
        before = dict(internal) if isinstance(internal, dict) else {}
        after = {**before, **patch}
        if after != before:
            patched[index] = {**patched[index], INTERNAL_METADATA: after}
            changed = True
    return patched if changed else items
