"""What kind of item something is, which items are of one turn, and how an item grows from its pieces.

An answer of the Responses API is a list of items: thoughts, messages, calls, what built-in tools did. All
items of one answer are one readable message. Each item says in its `_metadata` where in its answer it
stands, so that two answers in a row stay two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from agent_provider_kit import Dicts, JsonObject

Item = JsonObject
Items = Dicts

METADATA = "_metadata"
PLACE = "turn_item"
"""The key of `_metadata` that holds the item's number in its turn, from 0."""
REFUSED_BY = "refused_by"
"""The key of `_metadata` that holds the models to which this reasoning means nothing."""
NOT_SENT = "not_sent"
"""The key of `_metadata` that says why an item is not sent, once that was reported."""

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
    "mcp_approval_request": "mcp_approval_response",
}
"""Calls that wait for an output from our side, each with the type of its output."""
_OUTPUTS = frozenset(OUTPUT_OF.values())
_ROLES = {"user": "user", "system": "system", "developer": "system", "tool": "tool"}
INTERRUPTED = "The call was interrupted before it gave a result; it may have run."
_NO_OUTPUT = {"stdout": "", "stderr": INTERRUPTED, "outcome": {"type": "exit", "exit_code": 1}}
_MADE_UP: dict[str, JsonObject] = {
    "shell_call": {"type": "shell_call_output", "output": [_NO_OUTPUT]},
    "mcp_approval_request": {"type": "mcp_approval_response", "approve": False, "reason": INTERRUPTED},
    "local_shell_call": {"type": "local_shell_call_output", "output": INTERRUPTED},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "failed", "output": INTERRUPTED},
    "tool_search_call": {"type": "tool_search_output", "execution": "client", "tools": []},
    **{call: {"type": output, "output": INTERRUPTED} for call, output in TOOL_OUTPUTS.items()},
}


def about(item: Item) -> JsonObject:
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
    return kind_of(item) in OUTPUT_OF and bool(call_id_of(item))


def is_output(item: Item) -> bool:
    """Whether it answers such a call."""
    return kind_of(item) in _OUTPUTS and bool(answered_id(item))


def call_id_of(item: Item) -> Any:
    """Return the id by which a call is answered."""
    return item.get("id" if kind_of(item) == "mcp_approval_request" else "call_id")


def answered_id(item: Item) -> Any:
    """Return the id of the call that an output answers."""
    if kind_of(item) not in _OUTPUTS:
        return None
    return item.get("approval_request_id" if kind_of(item) == "mcp_approval_response" else "call_id")


def is_empty(item: Item) -> bool:
    """Whether it is a message of the model that says nothing; a person may, and the API takes it."""
    return is_message(item) and item.get("role") == "assistant" and not item.get("content")


def role_of(item: Item) -> str:
    """Return the role of the readable message to which an item belongs."""
    if PLACE in about(item):
        return "assistant"
    if "role" in item:
        return _ROLES.get(item["role"], "assistant")
    return "tool" if is_output(item) else "assistant"


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


# Outputs for calls that never got one: they say that there is none, in the form that each kind of call wants.


def can_be_answered(call: Item) -> bool:
    """Whether an output can be made up for a call; nobody can make up a screenshot."""
    return kind_of(call) in _MADE_UP


def made_up_output(call: Item) -> Item:
    """Return an output which says that there is none."""
    about_it = {"synthesized": True, "interrupted": True}
    field = "approval_request_id" if kind_of(call) == "mcp_approval_request" else "call_id"
    return {field: call_id_of(call), **_MADE_UP[kind_of(call)], METADATA: about_it}


class Field(NamedTuple):
    """Where a piece of text belongs.

    Attributes:
        name: The field that grows.
        parts: The list in which the part with that field stands; empty for a field of the item itself.
        part_type: The type of such a part.
        item_type: The type of the item, for servers that never announce it.
    """

    name: str
    parts: str
    part_type: str
    item_type: str


FIELDS: dict[str, Field] = {
    "response.output_text": Field("text", "content", "output_text", "message"),
    "response.refusal": Field("refusal", "content", "refusal", "message"),
    "response.reasoning_text": Field("text", "content", "reasoning_text", "reasoning"),
    "response.reasoning_summary_text": Field("text", "summary", "summary_text", "reasoning"),
    "response.function_call_arguments": Field("arguments", "", "", "function_call"),
    "response.custom_tool_call_input": Field("input", "", "", "custom_tool_call"),
    "response.mcp_call_arguments": Field("arguments", "", "", "mcp_call"),
    "response.code_interpreter_call_code": Field("code", "", "", "code_interpreter_call"),
}
BY_DELTA = {f"{name}.delta": field for name, field in FIELDS.items()}
BY_DONE = {f"{name}.done": field for name, field in FIELDS.items()}


class GrowingItem:
    """An item that has begun and may not be complete.

    Attributes:
        start: The item as it last came as a whole, every field kept.
        number: Which of the answer's calls it is, if it is a call of one of our tools.
        done: Whether the server said that the item is complete.
        shown: Whether anything of it was shown already.
    """

    __slots__ = ("_parts", "_pieces", "done", "number", "shown", "start")

    def __init__(self, start: JsonObject, number: int | None = None) -> None:
        self.start = start
        self.number = number
        self.done = False
        self.shown = False
        self._parts: dict[tuple[str, int], JsonObject] = {}
        self._pieces: dict[tuple[str, int, str], list[str]] = {}

    def grow(self, field: Field, index: int, piece: str) -> None:
        """Add text to a field of a part, or of the item."""
        key = (field.parts, index, field.name)
        pieces = self._pieces.get(key)
        if pieces is None:
            pieces = self._pieces[key] = []
            if field.parts:
                self._parts.setdefault((field.parts, index), {"type": field.part_type})
        pieces.append(piece)

    def fix(self, field: Field, index: int, text: str) -> None:
        """Take the whole text of a field in place of its pieces."""
        self.grow(field, index, "")
        self._pieces[(field.parts, index, field.name)] = [text]

    def put_part(self, parts: str, index: int, part: JsonObject) -> None:
        """Take a part as the server sends it; text that had come in pieces is in it, or still to come."""
        self._parts[(parts, index)] = dict(part)
        for field in FIELDS.values():
            if part.get(field.name):
                self._pieces.pop((parts, index, field.name), None)

    def annotate(self, index: int, annotation: Any) -> None:
        """Add an annotation to a part of the content."""
        part = self._parts.setdefault(("content", index), {"type": "output_text"})
        part["annotations"] = [*(part.get("annotations") or ()), annotation]

    def complete(self, item: JsonObject) -> None:
        """Take the whole item in place of everything that had come before."""
        self.start = item
        self.done = True
        self._parts.clear()
        self._pieces.clear()

    def value(self) -> JsonObject:
        """Return the item as far as it has come."""
        item = dict(self.start)
        parts = {key: dict(part) for key, part in self._parts.items()}
        for (name, index, field), pieces in self._pieces.items():
            into = parts[(name, index)] if name else item
            into[field] = "".join(pieces)
        for name in {name for name, _index in parts}:
            item[name] = [parts[key] for key in sorted(parts) if key[0] == name]
        return item
