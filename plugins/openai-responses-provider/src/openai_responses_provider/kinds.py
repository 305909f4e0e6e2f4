"""What kind of item something is, and which items are of one turn.

An answer of the Responses API is a list of items: thoughts, messages, calls, what built-in tools did.
All items of one answer are one readable message. Each item says in its `_metadata` where in its answer
it stands, so that two answers in a row stay two.
"""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]
Items = list[dict[str, Any]]

METADATA = "_metadata"
PLACE = "turn_item"
"""The key of `_metadata` that holds the item's number in its turn, from 0."""
REFUSED_BY = "refused_by"
"""The key of `_metadata` that holds the models to which this reasoning means nothing."""
NOT_SENT = "not_sent"
"""The key of `_metadata` that tells why an item is not sent, once that was reported."""

FUNCTION_CALL = "function_call"
CUSTOM_CALL = "custom_tool_call"
FUNCTION_OUTPUT = "function_call_output"
CUSTOM_OUTPUT = "custom_tool_call_output"
TOOL_OUTPUTS = {FUNCTION_CALL: FUNCTION_OUTPUT, CUSTOM_CALL: CUSTOM_OUTPUT}
OUTPUT_OF = {
    **TOOL_OUTPUTS,
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
}
"""Calls that wait for an output from our side, each with the type of its output."""
_OUTPUTS = frozenset(OUTPUT_OF.values())
_ROLES = {"user": "user", "system": "system", "developer": "system", "tool": "tool"}


def about(item: Item) -> dict[str, Any]:
    """Return an item's `_metadata`, which is never sent."""
    found = item.get(METADATA)
    return found if isinstance(found, dict) else {}


def kind_of(item: Item) -> str:
    """Return an item's type; what has only a role is a message."""
    return str(item.get("type") or ("message" if "role" in item else ""))


def is_message(item: Item) -> bool:
    """Whether it is what somebody said."""
    return kind_of(item) == "message"


def is_reasoning(item: Item) -> bool:
    """Whether it is what the model thought."""
    return kind_of(item) == "reasoning"


def is_tool_call(item: Item) -> bool:
    """Whether it is a call of one of our tools."""
    return kind_of(item) in TOOL_OUTPUTS


def is_client_call(item: Item) -> bool:
    """Whether it is any call that waits for an output from our side."""
    return kind_of(item) in OUTPUT_OF and bool(item.get("call_id"))


def is_output(item: Item) -> bool:
    """Whether it answers such a call."""
    return kind_of(item) in _OUTPUTS and bool(item.get("call_id"))


def is_empty(item: Item) -> bool:
    """Whether it is a message of the model that says nothing; a person may, and the API takes it."""
    return is_message(item) and item.get("role") == "assistant" and not item.get("content")


def role_of(item: Item) -> str:
    """Return the role of the readable message to which an item belongs."""
    if PLACE in about(item):
        return "assistant"
    if "role" in item:
        return _ROLES.get(item["role"], "assistant")
    return "tool" if is_output(item) or kind_of(item) == "mcp_approval_response" else "assistant"


def turns(items: Items) -> list[list[int]]:
    """Return the places of the items, those of one readable message together."""
    groups: list[list[int]] = []
    speaking = False  # whether the item before was the model's
    for place, item in enumerate(items):
        speaks = role_of(item) == "assistant"
        if speaks and speaking and _continues(items[groups[-1][0]], items[place - 1], item):
            groups[-1].append(place)
        else:
            groups.append([place])
        speaking = speaks
    return groups


def numbered(items: Items) -> Items:
    """Return the items of one turn, each knowing its place in it."""
    return [{**item, METADATA: {**about(item), PLACE: place}} for place, item in enumerate(items)]


def _continues(first: Item, before: Item, item: Item) -> bool:
    own = about(item)
    if PLACE in own:
        return own[PLACE] > 0 and own.get("response_id") in (None, about(first).get("response_id"))
    # Somebody else's items: a thought or a message after what was said or called is another turn.
    says = is_message(before) or is_client_call(before)
    return PLACE not in about(before) and not (says and (is_message(item) or is_reasoning(item)))
