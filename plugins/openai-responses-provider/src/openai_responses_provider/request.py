"""What is sent of the items: all of them as they came, without what is only ours.

Left out are items that the API would refuse where they stand, reasoning that the model at hand cannot
read, and messages that say nothing. Everything depends on the items and the settings alone, so the same
history is always sent the same way and the provider's prompt cache holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    from agent_provider_kit import Config, JsonObject

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
