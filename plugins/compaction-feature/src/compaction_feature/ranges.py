"""Which range of a conversation is meant, and which native items it covers.

A conversation is cut between groups of messages (`agent_runtime.summary`), and never between messages that
share a native item.

An action gets a session and the native history that covers all of it. Messages that a provider has seen
know their items already; those that were added since are converted once more, one by one, and if that
gives what stands at the end of the history, their places are known as well. Where it does not, the
messages in question count as one block: all of them own all of the items there, so that nobody cuts
between them.

What cannot be done is `Refused`, and the session stays as it is::

    Refused
    ├── RangeError       there is no such range, or it cannot be cut out
    ├── NotFound         there is nothing to undo
    └── SummaryFailed    no usable summary could be had
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from agent_core.frozen import thaw
from agent_runtime.summary import groups, open_call, prefix_length

if TYPE_CHECKING:
    from agent_core import Message, Session

Item = dict[str, Any]
"""A message as a dict, or an item of native history."""
Dicts = list[Item]
Place = tuple[int, ...]
Convert = Callable[[Dicts], Dicts]


class Refused(Exception):
    """An action changes nothing; `kind` is the type of the error in its answer."""

    kind = "refused"


class RangeError(Refused):
    """There is no such range, or it cannot be cut out."""

    kind = "range"


class NotFound(Refused):
    """There is no such compaction, or its summary is gone."""

    kind = "not_found"


class SummaryFailed(Refused):
    """No attempt gave a summary that can be used."""

    kind = "summary"


@dataclass(frozen=True, slots=True)
class Range:
    """The messages from *start* up to and without *end*.

    Attributes:
        wanted: What was asked for, if the ends had to be moved.
    """

    start: int
    end: int
    wanted: tuple[int, int] | None = None


def find_cuts(messages: Sequence[Message], places: Sequence[Place]) -> list[bool]:
    """Return for each position, the end included, whether the conversation may be cut in front of it."""
    starts = {group.start for group in groups(messages, 0)}
    cuts = [position in starts for position in range(len(messages))]
    cuts.append(open_call(messages) is None)  # while a result is to come, the end is not a cut either
    for position in _shared(places):
        cuts[position] = False
    return cuts


def choose_range(
    messages: Sequence[Message], cuts: Sequence[bool], start: int | None, end: int | None, keep: int
) -> Range:
    """Return the range that is meant, with both ends moved inwards to the next cut.

    Args:
        start: The first message; by default the first behind the system messages at the front.
        end: The first message not to take; by default the last *keep* stay.

    Raises:
        RangeError: If nothing is left.
    """
    count = len(messages)
    first = prefix_length(messages) if start is None else _position("start", start, count)
    last = max(first, count - keep) if end is None else _position("end", end, count)
    if first >= last:
        raise RangeError(_nothing(first, last, count, chosen=start is not None or end is not None))
    low, high = first, last
    while low < high and not cuts[low]:
        low += 1
    while high > low and not cuts[high]:
        high -= 1
    if low == high:
        raise RangeError(_inside_a_group(cuts, first, last))
    return Range(low, high, None if (low, high) == (first, last) else (first, last))


def count_groups(cuts: Sequence[bool], chosen: Range) -> int:
    """Return how many groups of messages a range has."""
    return sum(cuts[chosen.start : chosen.end])


def _position(name: str, value: int, count: int) -> int:
    position = value + count if value < 0 else value
    if not 0 <= position <= count:
        raise RangeError(f"{name} is {value}, but the session has {count} messages")
    return position


def _nothing(first: int, last: int, count: int, *, chosen: bool) -> str:
    if chosen:
        return (
            f"there is no message from {first} up to and without {last}: give a start that is before the end"
        )
    return f"all of the {count} messages are among those that stay: nothing is old enough to be compacted"


def _inside_a_group(cuts: Sequence[bool], first: int, last: int) -> str:
    low, high = first, last
    while not cuts[low]:
        low -= 1
    while high < len(cuts) and not cuts[high]:
        high += 1
    if high == len(cuts):
        return f"the messages from {low} on wait for the result of a tool call: compact them when it is there"
    return (
        f"the messages from {first} up to and without {last} cannot be cut from those around them, since a"
        f" tool call and its results stay together: take start {low} and end {high}"
    )


def _shared(places: Sequence[Place]) -> Iterator[int]:
    """Yield the positions in front of which native history cannot be cut, since an item spans them."""
    highest = list(accumulate((max(place, default=-1) for place in places), max))
    top = 1 + max(highest, default=0)
    lowest = list(accumulate((min(place, default=top) for place in reversed(places)), min))[::-1]
    for position in range(1, len(places)):
        if highest[position - 1] >= lowest[position]:
            yield position


def native_places(session: Session, native: Sequence[Item], convert: Convert) -> list[Place]:
    """Return for each message of the session the indices of its items in *native*.

    Args:
        session: As the action got it.
        native: As the action got it.
        convert: Returns the native form of message dicts.
    """
    known = list(session.metadata.get("native_messages") or ())
    trusted = len(known) if list(native[: len(known)]) == known else 0
    places = [_known_place(message, trusted) for message in session.messages]
    pending = _count_pending(places)
    first = len(places) - pending
    places[first:] = _convert_again(session.messages[first:], list(native), trusted, convert)
    return _fill(places, len(native))


def _known_place(message: Message, trusted: int) -> Place | None:
    indices = message.native_indices
    return indices if indices is not None and all(index < trusted for index in indices) else None


def _count_pending(places: Sequence[Place | None]) -> int:
    """Return how many messages at the end have no place."""
    known = [position for position, place in enumerate(places) if place is not None]
    return len(places) - (known[-1] + 1 if known else 0)


def _convert_again(
    messages: Sequence[Message],
    native: Dicts,
    start: int,
    convert: Convert,
) -> list[Place | None]:
    made = [list(convert([message.to_dict()])) for message in messages]
    if [item for items in made for item in items] != thaw(native[start:]):
        return [None] * len(messages)
    places: list[Place | None] = []
    for items in made:
        places.append(tuple(range(start, start + len(items))))
        start += len(items)
    return places


def _fill(places: Sequence[Place | None], count: int) -> list[Place]:
    """Give messages without a place all the items between their neighbours."""
    filled: list[Place] = []
    before = -1
    for position, place in enumerate(places):
        if place is None:
            later = [index for known in places[position:] if known for index in known]
            filled.append(tuple(range(before + 1, min(later, default=count))))
        else:
            filled.append(place)
            before = max(before, *place, -1)
    return filled


def items_of(places: Sequence[Place], start: int, end: int) -> range:
    """Return the native items of ``messages[start:end]``, which begins and ends at cuts.

    What belongs to nobody goes with the message behind it, as reasoning does; only in front of the first
    message it stays, since that is where instructions stand.
    """
    inside = [index for place in places[start:end] for index in place]
    before = [index for place in places[:start] for index in place]
    after = [index for place in places[end:] for index in place]
    if not inside:
        gap = max(before) + 1 if before else min(after, default=0)
        return range(gap, gap)
    return range(max(before) + 1 if before else min(inside), max(inside) + 1)
