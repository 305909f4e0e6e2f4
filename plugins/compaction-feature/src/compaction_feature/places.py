"""Where each message stands in native history.

An action gets a session and the native history that covers all of it. Messages that a provider has seen
know their items already; those that were added since are converted once more, one by one, and if that
gives what stands at the end of the history, their places are known as well. Where it does not, the
messages in question count as one block: all of them own all of the items there, so that nobody cuts
between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent_core.frozen import thaw

if TYPE_CHECKING:
    from agent_core import Message, Session

Place = tuple[int, ...]
Convert = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def native_places(session: Session, native: Sequence[dict[str, Any]], convert: Convert) -> list[Place]:
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
    native: list[dict[str, Any]],
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
