"""Making any history one that the API accepts.

One bad item (a call without its output, an output without its call, a thought that leads to nothing)
makes the API refuse the whole conversation for ever. The pass is deterministic and idempotent, and
takes nothing away: an item that cannot be sent stays where it is and says so in its `_metadata`, a call
that never got an output gets one that tells the truth, an output of the wrong type gets the right one.

Empty messages need no repair, they are just not sent: see `openai_responses_provider.sending`. Nor does
reasoning of another model, which only the API can judge: see `openai_responses_provider.refusals`.
"""

from __future__ import annotations

from openai_responses_provider.kinds import METADATA, NOT_SENT, Item, Items, about, turns
from openai_responses_provider.outputs import made_up_output
from openai_responses_provider.pairing import Pairs, pair

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
        return _set_aside(place, item, f"{_ORPHAN} ({item['call_id']!r})", report)
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
                report.append(f"call {items[place]['call_id']!r}: added an output, since there was none")
                repaired.append(made_up_output(items[place]))
    return repaired
