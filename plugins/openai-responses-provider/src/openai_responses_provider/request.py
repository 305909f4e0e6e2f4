"""What is sent of the items: all of them as they came, without what is only ours.

Left out are items that the API would refuse where they stand, reasoning that the model at hand cannot
read, and messages that say nothing. Everything depends on the items and the settings alone, so the same
history is always sent the same way and the provider's prompt cache holds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import orjson

from agent_provider_kit import EncodedJson, grown, last_turn, repaired_by_turns
from openai_responses_provider.client_tools import CLIENT_TOOLS, typed_output
from openai_responses_provider.items import (
    CUSTOM_CALL,
    FUNCTION_CALL,
    METADATA,
    REFUSED_BY,
    TOOL_OUTPUTS,
    Item,
    Items,
    about,
    is_empty,
    is_message,
    is_reasoning,
    kind_of,
    role_of,
    turns,
)
from openai_responses_provider.messages import text_of
from openai_responses_provider.repair import pair, repair_items

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agent_provider_kit import Config, JsonObject, State

_MATTERS = ("model", "item_ids", "system_role", "instructions")
"""The settings on which it depends how items are sent."""
_IDS_OPTIONAL = ("message", "reasoning", FUNCTION_CALL, CUSTOM_CALL)


def compose(
    items: Items, config: Config, refused: Collection[int] = (), *, omit_ids: bool = False
) -> JsonObject:
    """Return the fields `input` and, if system messages go there, `instructions`.

    Args:
        items: The native history.
        config: The settings.
        refused: Places of reasoning that the API has refused just now.
        omit_ids: Whether to leave out the items' ids, whatever the settings say.
    """
    pairs = pair(items)
    if any(kind_of(items[call]) in CLIENT_TOOLS for call in pairs.answers.values()):
        items = _with_typed_outputs(items, pairs.answers)
        pairs = pair(items)
    unreadable = {place for place, item in enumerate(items) if _is_refused(place, item, config, refused)}
    everywhere = omit_ids or config.get("item_ids") == "omit"
    bare = range(len(items)) if everywhere else _beside(items, unreadable | pairs.lone)
    readable = [
        _without_id(item) if place in bare else item
        for place, item in enumerate(items)
        if place not in unreadable
    ]
    sent = readable if pairs.all_well and not unreadable else _sendable(readable)
    sent = [item for item in sent if not is_empty(item)]
    outgoing = [_outgoing(item, config) for item in sent]
    if config.get("system_role") == "instructions":
        return _with_instructions(sent, outgoing, config)
    return {"input": outgoing}


def compose_encoded(
    items: Items,
    config: Config,
    memory: State | None,
    refused: Collection[int] = (),
    *,
    omit_ids: bool = False,
) -> JsonObject:
    """Return the same for a request's body: the input of turns that are over is encoded only once."""
    start, may_cut = last_turn(items, begins_turn), partial(begins_turn, items)
    if memory is None or refused or not start:
        return compose(items, config, refused, omit_ids=omit_ids)

    def encode(turns: Items) -> _Encoded:
        fields = compose(turns, config, omit_ids=omit_ids)
        return _Encoded(fields.get("instructions"), orjson.dumps(fields["input"])[1:-1])

    def encode_ended(turns: Items) -> _Encoded:
        if not pair(turns).all_well:
            raise _NotOverError
        return encode(turns)

    form = repr([omit_ids, *(config.get(name) for name in _MATTERS)])
    try:
        sent = grown(items[:start], memory, "input", encode_ended, _Encoded.joined, form, may_cut)
    except _NotOverError:
        return compose(items, config, omit_ids=omit_ids)
    whole = sent.joined(encode(items[start:]))
    fields = {"input": EncodedJson(b"[" + whole.input + b"]")}
    # System messages become instructions only where a conversation begins.
    first = config.get("system_role") == "instructions"
    return {"instructions": sent.instructions, **fields} if first else fields


class _NotOverError(Exception):
    """A call of an earlier turn may get its output in a later one."""


class _Encoded(NamedTuple):
    """Turns as they are sent, the input as JSON without its brackets."""

    instructions: str | None
    input: bytes

    def joined(self, more: _Encoded) -> _Encoded:
        return _Encoded(self.instructions, b",".join([self.input, more.input]))


def begins_turn(items: Items, place: int) -> bool:
    """Say whether a turn begins here: a person speaks, behind words of the model."""
    if not is_message(items[place]) or role_of(items[place]) != "user" or place < 1:
        return False
    answer = items[place - 1]
    return is_message(answer) and answer.get("role") == "assistant" and not is_empty(answer)


def repair_new_items(items: Items, memory: State | None) -> tuple[Items, list[str]]:
    """Repair a history; of one that was good before, only the turns that are new are looked at."""
    return repaired_by_turns(items, memory, begins_turn, repair_items)


def _with_typed_outputs(items: Items, answers: Mapping[int, int]) -> Items:
    """Return items in which what our tools answered has the type that the call wants; all in their places."""
    made = list(items)
    for place, call in answers.items():
        if kind_of(items[call]) in CLIENT_TOOLS and kind_of(items[place]) in TOOL_OUTPUTS.values():
            made[place] = typed_output(items[call], items[place])
    return made


def _is_refused(place: int, item: Item, config: Config, refused: Collection[int]) -> bool:
    if not is_reasoning(item):
        return False
    return place in refused or config.get("model") in (about(item).get(REFUSED_BY) or ())


def _beside(items: Items, left_out: set[int]) -> set[int]:
    """Return the places of items in turns whose reasoning stays out: by their ids the API would miss it."""
    if not left_out:
        return set()
    return {place for turn in turns(items) if not left_out.isdisjoint(turn) for place in turn}


def _sendable(items: Items) -> Items:
    repaired, _report = repair_items(items)
    left_out = pair(repaired).left_out
    return [item for place, item in enumerate(repaired) if place not in left_out]


def _without_id(item: Item) -> Item:
    if kind_of(item) not in _IDS_OPTIONAL or "id" not in item:
        return item
    return {key: value for key, value in item.items() if key != "id"}


def _outgoing(item: Item, config: Config) -> Item:
    outgoing = {key: value for key, value in item.items() if key != METADATA}
    if item.get("role") == "system" and config.get("system_role") == "developer":
        outgoing["role"] = "developer"
    return outgoing


def _with_instructions(sent: Items, outgoing: Items, config: Config) -> JsonObject:
    """Move the system messages with which a conversation begins to where the API has a field for them."""
    spoken = (place for place, item in enumerate(sent) if role_of(item) != "system" or not is_message(item))
    first = next(spoken, len(sent))
    texts = [config.get("instructions") or "", *map(text_of, sent[:first])]
    return {"instructions": "\n\n".join(filter(None, texts)) or None, "input": outgoing[first:]}
