"""One output item, put together from its pieces."""

from __future__ import annotations

from typing import Any, NamedTuple


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
        start: The item as it was last told as a whole, every field kept.
        number: Which of the answer's calls it is, if it is a call of one of our tools.
        done: Whether the server said that the item is complete.
        shown: Whether anything of it was shown already.
    """

    __slots__ = ("_parts", "_pieces", "done", "number", "shown", "start")

    def __init__(self, start: dict[str, Any], number: int | None = None) -> None:
        self.start = start
        self.number = number
        self.done = False
        self.shown = False
        self._parts: dict[tuple[str, int], dict[str, Any]] = {}
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

    def put_part(self, parts: str, index: int, part: dict[str, Any]) -> None:
        """Take a part as the server tells it; text that had come in pieces is in it, or still to come."""
        self._parts[(parts, index)] = dict(part)
        for field in FIELDS.values():
            if part.get(field.name):
                self._pieces.pop((parts, index, field.name), None)

    def annotate(self, index: int, annotation: Any) -> None:
        """Add an annotation to a part of the content."""
        part = self._parts.setdefault(("content", index), {"type": "output_text"})
        part["annotations"] = [*(part.get("annotations") or ()), annotation]

    def complete(self, item: dict[str, Any]) -> None:
        """Take the whole item in place of everything that had come before."""
        self.start = item
        self.done = True
        self._parts.clear()
        self._pieces.clear()

    def value(self) -> dict[str, Any]:
        """Return the item as far as it has come."""
        item = dict(self.start)
        parts = {key: dict(part) for key, part in self._parts.items()}
        for (name, index, field), pieces in self._pieces.items():
            into = parts[(name, index)] if name else item
            into[field] = "".join(pieces)
        for name in {name for name, _index in parts}:
            item[name] = [parts[key] for key in sorted(parts) if key[0] == name]
        return item
