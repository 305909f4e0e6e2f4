"""One content block of an answer, put together from its pieces."""

from __future__ import annotations

from typing import Any

from agent_core.interop.arguments import decode, encode, encode_object

ARGUMENTS = "partial_json"
_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": ARGUMENTS,
    "signature_delta": "signature",
    "citations_delta": "citation",
}


class GrowingBlock:
    """A block that has begun and may not be complete.

    Attributes:
        start: The block as it began, every field kept.
        number: Which of the answer's calls it is, if it is a call of one of our tools.
        closed: Whether the server said that the block is complete.
    """

    __slots__ = ("_fields", "_pieces", "closed", "number", "start")

    def __init__(self, start: dict[str, Any], *, number: int | None = None, closed: bool = False) -> None:
        self.start = start
        self.number = number
        self.closed = closed
        self._pieces: dict[str, list[str]] = {}
        self._fields: dict[str, Any] = {}

    @property
    def kind(self) -> str:
        """The block's type."""
        return str(self.start.get("type"))

    def grow(self, field: str, piece: str) -> None:
        """Add text to one of the fields."""
        self._pieces.setdefault(field, []).append(piece)

    def merge(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Add any delta and return those of its fields that are no part of the block.

        A delta of unknown type is taken to be more of the fields that it names.
        """
        field = _FIELDS.get(str(delta.get("type")))
        if field is None:
            for key in delta.keys() - {"type"}:
                self._add(key, delta[key])
            return {}
        self._add_known(field, delta[field])
        return {key: value for key, value in delta.items() if key not in ("type", field)}

    def arguments(self) -> str:
        """Return a call's arguments as JSON text, as far as they have come."""
        return "".join(self._pieces.get(ARGUMENTS, ())) or encode(self.start.get("input") or {})

    def value(self) -> dict[str, Any]:
        """Return the block as far as it has come."""
        block = {**self.start, **self._fields}
        for field, pieces in self._pieces.items():
            if field != ARGUMENTS:
                before = block.get(field)
                block[field] = (before if isinstance(before, str) else "") + "".join(pieces)
            elif text := "".join(pieces).strip():
                # Arguments that are no JSON travel in an envelope, which the model is told about.
                block["input"] = encode_object(decode(text)[0])
        return block

    def _add_known(self, field: str, value: Any) -> None:
        if field == "citation":
            before = self._fields.get("citations", self.start.get("citations"))
            self._fields["citations"] = [*(before or ()), value]
        elif field == "signature":
            self._fields[field] = value  # it comes whole
        else:
            self._add(field, value)

    def _add(self, field: str, value: Any) -> None:
        if isinstance(value, str):
            self.grow(field, value)
        elif isinstance(value, list):
            self._fields[field] = [*(self._fields.get(field, self.start.get(field)) or ()), *value]
        else:
            self._fields[field] = value
