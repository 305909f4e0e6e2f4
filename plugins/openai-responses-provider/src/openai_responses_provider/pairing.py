"""Which items of a history the API would refuse where they stand, decided from the items alone."""

from __future__ import annotations

from typing import NamedTuple

from openai_responses_provider.kinds import (
    OUTPUT_OF,
    TOOL_OUTPUTS,
    Items,
    is_client_call,
    is_empty,
    is_output,
    is_reasoning,
    kind_of,
    turns,
)
from openai_responses_provider.outputs import can_be_answered


class Pairs(NamedTuple):
    """How calls, outputs and thoughts stand to each other, all by their places.

    Attributes:
        unanswered: Calls for which there is no output, but one can be made up.
        hopeless: Calls for which there is none and cannot be.
        orphans: Outputs for which there is no call.
        misnamed: Outputs of another type than their call's, with the right type.
        lone: Reasoning without the item that it led to, which the API refuses.
    """

    unanswered: set[int]
    hopeless: set[int]
    orphans: set[int]
    misnamed: dict[int, str]
    lone: set[int]

    @property
    def all_well(self) -> bool:
        """Whether the API would take every item where it stands."""
        return not any(self)

    @property
    def left_out(self) -> set[int]:
        """All items that cannot be sent."""
        return self.orphans | self.lone | self.hopeless


def pair(items: Items) -> Pairs:
    """Look at all items once, and find out."""
    waiting: dict[str, list[int]] = {}
    orphans: set[int] = set()
    misnamed: dict[int, str] = {}
    for place, item in enumerate(items):
        if is_client_call(item):
            waiting.setdefault(item["call_id"], []).append(place)
        elif is_output(item):
            call = _take_call(items, waiting.get(item["call_id"]) or [], kind_of(item))
            if call is None:
                orphans.add(place)
            elif OUTPUT_OF[kind_of(items[call])] != kind_of(item):
                misnamed[place] = OUTPUT_OF[kind_of(items[call])]
    open_calls = {place for calls in waiting.values() for place in calls}
    unanswered = {place for place in open_calls if can_be_answered(items[place])}
    hopeless = open_calls - unanswered
    return Pairs(unanswered, hopeless, orphans, misnamed, _lone_reasoning(items, hopeless))


def _take_call(items: Items, waiting: list[int], output: str) -> int | None:
    """Take the call that an output answers from those of its id.

    The latest one, since servers that count calls in each answer anew use ids again; one of its own
    kind, or else, between functions and custom tools, of the other.
    """
    own = [call for call in waiting if OUTPUT_OF[kind_of(items[call])] == output]
    if not own and output in TOOL_OUTPUTS.values():
        own = [call for call in waiting if kind_of(items[call]) in TOOL_OUTPUTS]
    if not own:
        return None
    waiting.remove(own[-1])
    return own[-1]


def _lone_reasoning(items: Items, hopeless: set[int]) -> set[int]:
    """Return the places of reasoning that no other item of its turn follows."""
    lone: set[int] = set()
    for turn in turns(items):
        for place in reversed(turn):
            if is_reasoning(items[place]):
                lone.add(place)
            elif place not in hopeless and not is_empty(items[place]):
                break
    return lone
