"""What a provider remembers of a conversation, so that a long history costs no more than a short one.

The core hands a provider the same dict at every request of a conversation (`memory` of `repair_native` and of
the hooks that ask the model). Histories grow at their end: what was found out about the items at the
beginning is still true, as long as they are the same ones. Forks of a conversation share the dict, and a
request may come with an older version, so nothing is believed before the items were compared. That takes
a few nanoseconds an item, since most of them are the very same object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import orjson

from agent_core.history import same_beginning
from agent_provider_kit.wire import EncodedJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_provider_kit.wire import Dicts, JsonObject, State

_GOOD, _SENT = "good", "sent"
_AT_ONCE = 100
"""So many items are encoded, then joined: what orjson returns keeps some kilobytes, however short it is."""
T = TypeVar("T")
Begins = Callable[["Dicts", int], bool]
"""Says whether a turn begins at a place: a person speaks, and the model has answered all that was before."""


class _Sent(NamedTuple):
    """What was sent last: its items, all of them encoded as one list, and where each of them ends in that."""

    form: str
    items: Sequence[JsonObject]
    whole: bytes
    ends: list[int]


def known_good(items: Dicts, memory: State | None) -> int:
    """Return how many of the first items need no repair, because an earlier request found out.

    They were good as a whole: a call among them has its result among them too.
    """
    good = memory.get(_GOOD) if memory else None
    return len(good) if good is not None and items[: len(good)] == good else 0


def remember_good(items: Dicts, memory: State | None) -> None:
    """Note that all of the items can be sent as they are."""
    if memory is not None:
        memory[_GOOD] = items


def encoded(
    items: Dicts, memory: State | None, form: str, as_sent: Callable[[JsonObject], JsonObject]
) -> EncodedJson:
    """Return the items as a JSON list for a request's body; what was sent before is not encoded again.

    Args:
        form: A name for what *as_sent* does, which may depend on settings.
        as_sent: Returns an item as the server should get it.
    """
    known: _Sent | None = memory.get(_SENT) if memory else None
    same = 0 if known is None or known.form != form else same_beginning(known.items, items)
    if known is None or not same:
        ends, beginning = list[int](), memoryview(b"[")
    else:
        ends = known.ends[:same]
        beginning = memoryview(known.whole)[: ends[-1]]
    place = len(beginning) - (not ends)  # the first item has no comma before it
    added: list[bytes] = []
    for start in range(same, len(items), _AT_ONCE):
        piece = [orjson.dumps(as_sent(item)) for item in items[start : start + _AT_ONCE]]
        added += (b"," if ends else b"", b",".join(piece))
        for item in piece:
            place += len(item) + 1
            ends.append(place)
    whole = b"".join((beginning, *added, b"]"))
    if memory is not None:
        memory[_SENT] = _Sent(form, items, whole, ends)  # at once: a fork must not see half of it
    return EncodedJson(whole)


def grown(
    items: Dicts,
    memory: State | None,
    what: str,
    make: Callable[[Dicts], T],
    join: Callable[[T, T], T],
    form: str = "",
    may_cut: Callable[[int], bool] = lambda _place: True,
) -> T:
    """Return what *make* makes of the items; of a beginning that was made before, what was made then.

    Args:
        items: The beginning of a history, or all of it.
        memory: Of the conversation.
        what: A name for what is made.
        make: Makes something of items that follow each other.
        join: Puts two such things together.
        form: What else *make* depends on: settings, for example.
        may_cut: Says whether the items before a place and those behind it can be made apart.
    """
    known: tuple[str, Dicts, T] | None = memory.get(f"made.{what}") if memory else None
    if known is not None and known[0] == form and items[: len(known[1])] == known[1]:
        start = len(known[1])
        if start == len(items):
            return known[2]
        made = join(known[2], make(items[start:])) if may_cut(start) else make(items)
    else:
        made = make(items)
    if memory is not None:
        memory[f"made.{what}"] = form, items, made
    return made


# Where several items are sent as one, no item can be encoded alone. But a turn can: nothing that comes after
# a person has spoken changes how the turns before are sent.


def last_turn(items: Dicts, begins: Begins, end: int | None = None) -> int:
    """Return where the last turn before *end* begins; 0 if there is only one."""
    places = range((len(items) if end is None else end) - 1, 0, -1)
    return next((place for place in places if begins(items, place)), 0)


def repaired_by_turns(
    items: Dicts,
    memory: State | None,
    begins: Begins,
    repair: Callable[[Dicts], tuple[Dicts, list[str]]],
) -> tuple[Dicts, list[str]]:
    """Repair a history; of one that was good before, only the turns that are new are looked at."""
    good = known_good(items, memory)
    start = last_turn(items, begins, good)
    _same, report = repair(items[start:])
    if report:
        return repair(items)  # once more, for the places in its report, and for what it may need to look at
    remember_good(items, memory)
    return items, []
