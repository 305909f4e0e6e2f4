"""A repair that turns any history into one that the API accepts.

One bad item (a call without its output, an output without its call, a thought that leads to nothing)
makes the API refuse the whole conversation from then on. The pass is deterministic and idempotent, and takes
nothing away: an item that cannot be sent stays where it is and says so in its `_metadata`, a call that
never got an output gets one that says so, an output of the wrong type gets the right one.

Empty messages need no repair, they are just not sent: see `openai_responses_provider.request`. Nor does
reasoning of another model, which only the API can judge: see `openai_responses_provider.refusals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from openai_responses_provider.items import (
    METADATA,
    NOT_SENT,
    OUTPUT_OF,
    TOOL_OUTPUTS,
    Item,
    Items,
    about,
    answered_id,
    call_id_of,
    can_be_answered,
    is_client_call,
    is_empty,
    is_output,
    is_reasoning,
    kind_of,
    made_up_output,
    turns,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_ORPHAN = "it answers no call"
_LONE = "the reasoning leads to nothing"
_HOPELESS = "nobody answered it"


def validate_items(items: Items) -> list[str]:
    """Return what the API would not accept; nothing for a good history."""
    return repair_items(items)[1]


def repair_items(items: Items) -> tuple[Items, list[str]]:
    """Return the items that the API accepts, and a line for each change."""
    pairs = pair(items)
    if pairs.all_well:
        return items, []
    report: list[str] = []
    repaired = [_mended(place, item, pairs, report) for place, item in enumerate(items)]
    repaired = _answered(repaired, pairs.unanswered, report)
    return (repaired, report) if report else (items, [])


def _mended(place: int, item: Item, pairs: Pairs, report: list[str]) -> Item:
    if place in pairs.orphans:
        return _set_aside(place, item, f"{_ORPHAN} ({answered_id(item)!r})", report)
    if place in pairs.lone:
        return _set_aside(place, item, _LONE, report)
    if place in pairs.hopeless:
        return _set_aside(place, item, _HOPELESS, report)
    if place in pairs.misnamed:
        report.append(f"item {place}: is now a {pairs.misnamed[place]}, as its call wants")
        return {**item, "type": pairs.misnamed[place]}
    return item


def _set_aside(place: int, item: Item, reason: str, report: list[str]) -> Item:
    if about(item).get(NOT_SENT) == reason:
        return item
    report.append(f"item {place}: is not sent, since {reason}")
    return {**item, METADATA: {**about(item), NOT_SENT: reason}}


def _answered(items: Items, unanswered: set[int], report: list[str]) -> Items:
    """Put the missing outputs behind the turn that called."""
    if not unanswered:
        return items
    repaired: Items = []
    for turn in turns(items):
        repaired += [items[place] for place in turn]
        for place in turn:
            if place in unanswered:
                report.append(f"call {call_id_of(items[place])!r}: added an output, since there was none")
                repaired.append(made_up_output(items[place]))
    return repaired


class Pairs(NamedTuple):
    """How calls, outputs and thoughts stand to each other, all by their places.

    Attributes:
        unanswered: Calls for which there is no output, but one can be made up.
        hopeless: Calls for which there is none and cannot be.
        orphans: Outputs for which there is no call.
        misnamed: Outputs of another type than their call's, with the right type.
        lone: Reasoning without the item that it led to, which the API refuses.
        answers: Outputs, each with the call that it answers.
    """

    unanswered: set[int]
    hopeless: set[int]
    orphans: set[int]
    misnamed: dict[int, str]
    lone: set[int]
    answers: Mapping[int, int]

    @property
    def all_well(self) -> bool:
        """Whether the API would take every item where it stands."""
        return not any(self[:-1])

    @property
    def left_out(self) -> set[int]:
        """All items that cannot be sent."""
        return self.orphans | self.lone | self.hopeless


def pair(items: Items) -> Pairs:
    """Look at all items once, and find out."""
    waiting: dict[str, list[int]] = {}
    orphans: set[int] = set()
    misnamed: dict[int, str] = {}
    answers: dict[int, int] = {}
    for place, item in enumerate(items):
        if is_client_call(item):
            waiting.setdefault(call_id_of(item), []).append(place)
        elif is_output(item):
            call = _take_call(items, waiting.get(answered_id(item)) or [], kind_of(item))
            if call is not None:
                answers[place] = call
            if call is None:
                orphans.add(place)
            elif kind_of(items[call]) in TOOL_OUTPUTS and TOOL_OUTPUTS[kind_of(items[call])] != kind_of(item):
                misnamed[place] = OUTPUT_OF[kind_of(items[call])]
    open_calls = {place for calls in waiting.values() for place in calls}
    unanswered = {place for place in open_calls if can_be_answered(items[place])}
    hopeless = open_calls - unanswered
    return Pairs(unanswered, hopeless, orphans, misnamed, _lone_reasoning(items, hopeless), answers)


def _take_call(items: Items, waiting: list[int], output: str) -> int | None:
    """Take the call that an output answers from those of its id.

    The latest one, since servers that count calls in each answer anew use ids again; one of its own
    kind or, for what one of our tools answers, of any other.
    """
    own = [call for call in waiting if OUTPUT_OF[kind_of(items[call])] == output]
    if not own and output in TOOL_OUTPUTS.values():
        own = list(waiting)
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
