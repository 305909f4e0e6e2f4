"""How texts are cut into the pieces of a stream."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.testing import ToolCall

_WORD = re.compile(r"\S+\s*|\s+")


def words(text: str, chunks: Sequence[str] | None = None) -> list[str]:
    """Return the given pieces, or the text word by word."""
    if chunks is not None:
        if text and "".join(chunks) != text:
            raise ValueError("the chunks must add up to the text: give one of the two")
        return list(chunks)
    return _WORD.findall(text)


def halves(text: str) -> list[str]:
    """Return a text in two pieces, or in none if it is empty."""
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON text; a text stays as it is, valid or not."""
    if isinstance(call.arguments, str):
        return call.arguments
    return orjson.dumps(call.arguments).decode()


def arguments_object(call: ToolCall) -> Any:
    """Return a call's arguments as an object; an empty one if they are a text that is no JSON."""
    try:
        return orjson.loads(arguments_text(call))
    except orjson.JSONDecodeError:
        return {}


def call_id(call: ToolCall, number: int, prefix: str) -> str:
    """Return the call's id, or one that is made of its number; an empty id stays empty."""
    return f"{prefix}{number}" if call.id is None else call.id
