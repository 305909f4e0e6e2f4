"""Which native items belong to which message, kept true while messages come, go and change.

A message's `native_indices` say where its native form stands. Any edit is described by what stays
and what is new; `compose` puts the two together and gives every message its new indices. Items that
no message owns (a system prompt that a feature added, say) stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.frozen import Dicts, FrozenDict, JsonObject
from agent_core.history import History

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
        messages: The messages of the new session; those without an entry in *new* still carry
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
        for index in message.native_indices or ():
            if index >= count:
                return None
            owned.setdefault(index, []).append(position)
    return owned


def carry_internal_metadata(
    old: Sequence[Mapping[str, object]], new: Sequence[FrozenDict]
) -> list[FrozenDict]:
    """Return the new items with the `_metadata` of those they replace.

    Item by item where there are as many; otherwise the first new item inherits it all.
    """
    if len(old) == len(new):
        return [_with_internal(made, _internal(was)) for was, made in zip(old, new, strict=True)]
    merged: JsonObject = {}
    for was in old:
        merged.update(_internal(was))
    return [_with_internal(made, merged if place == 0 else None) for place, made in enumerate(new)]


def _with_internal(item: FrozenDict, inherited: Mapping[str, object] | None) -> FrozenDict:
    if not inherited:
        return item
    return FrozenDict({**item, INTERNAL_METADATA: FrozenDict({**inherited, **_internal(item)})})


def _internal(item: Mapping[str, object]) -> JsonObject:
    found = item.get(INTERNAL_METADATA)
    return found if isinstance(found, dict) else {}


def inherit_internal_metadata(
    old: object,
    before: Iterable[Message],
    items: Sequence[FrozenDict],
    groups: Iterable[Sequence[int] | None],
) -> list[FrozenDict]:
    """Return rebuilt items with the `_metadata` of the old items of the same messages.

    Args:
        old: The native history that is replaced; it need not be trusted, or even be a list.
        before: The messages as they pointed into it.
        groups: For each of them, the indices of its new items.
    """
    known = old if isinstance(old, History) else History[Any]()
    made = list(items)
    for message, group in zip(before, groups, strict=True):
        replaced = [known[i] for i in message.native_indices or () if i < len(known)]
        places = group or ()
        kept = carry_internal_metadata(
            [item for item in replaced if isinstance(item, dict)], [made[place] for place in places]
        )
        for place, item in zip(places, kept, strict=True):
            made[place] = item
    return made


def patch_internal_metadata(items: Dicts, indices: Collection[int], patch: Mapping[str, object]) -> Dicts:
    """Return the items with *patch* merged into the `_metadata` of those selected.

    Indices that are out of range are skipped; the same list comes back when nothing changes.
    """
    patched = list(items)
    changed = False
    selected = {i for i in indices if isinstance(i, int) and 0 <= i < len(items)}
    for index in [i for i in selected if isinstance(items[i], dict)]:
        before = _internal(patched[index])
        after = {**before, **patch}
        if after != before:
            patched[index] = {**patched[index], INTERNAL_METADATA: after}
            changed = True
    return patched if changed else items
