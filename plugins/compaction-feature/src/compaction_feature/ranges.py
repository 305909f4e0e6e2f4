"""Where a conversation may be cut, and which range is meant.

A provider refuses a call without its result and a result without its call. So a message that calls tools
and everything up to the last of the results stays together, and so do messages that share a native item.
A call whose result is still to come stays with all that follows it, unless the model has gone on without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from compaction_feature.errors import RangeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_core import Message
    from compaction_feature.places import Place


@dataclass(frozen=True, slots=True)
class Range:
    """The messages from *start* up to and without *end*.

    Attributes:
        wanted: What was asked for, if cuts had to be moved.
    """

    start: int
    end: int
    wanted: tuple[int, int] | None = None


def find_cuts(messages: Sequence[Message], places: Sequence[Place]) -> list[bool]:
    """Return for each position, the end included, whether the conversation may be cut in front of it."""
    cuts = [True] * (len(messages) + 1)
    for first, last in (*_exchanges(messages), *_shared(places)):
        cuts[first + 1 : last + 1] = [False] * (last - first)
    for position, message in enumerate(messages):
        if message.role == "tool" and position:
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
    first = count_leading_system(messages) if start is None else _position("start", start, count)
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


def count_leading_system(messages: Sequence[Message]) -> int:
    """Return how many system messages the conversation begins with."""
    others = (place for place, message in enumerate(messages) if message.role != "system")
    return next(others, len(messages))


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


def _exchanges(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield where each tool call stands, and the last of its results."""
    answers: dict[str, int] = {}
    model_goes_on = len(messages)
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        for call_id in _call_ids(message):
            # The end of the conversation is no cut either while a result is to come.
            is_open = model_goes_on == len(messages)
            # An id may be used again in a later turn, so its answer is taken only once.
            yield position, answers.pop(call_id, len(messages) if is_open else position)
        if message.role == "tool":
            answers.setdefault(str(message.metadata.get("tool_call_id")), position)
        elif message.role == "assistant":
            model_goes_on = position


def _call_ids(message: Message) -> Iterator[str]:
    calls: Any = message.metadata.get("tool_calls") if message.role == "assistant" else None
    for call in calls or ():
        if isinstance(call, Mapping):
            yield str(call.get("id"))


def _shared(places: Sequence[Place]) -> Iterator[tuple[int, int]]:
    """Yield pairs of neighbours between which native history cannot be cut."""
    highest = list(accumulate((max(place, default=-1) for place in places), max))
    top = 1 + max(highest, default=0)
    lowest = list(accumulate((min(place, default=top) for place in reversed(places)), min))[::-1]
    for position in range(1, len(places)):
        if highest[position - 1] >= lowest[position]:
            yield position - 1, position
