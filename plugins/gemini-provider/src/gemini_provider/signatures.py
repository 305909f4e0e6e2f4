"""Thought signatures: the model's own state, which the API wants back exactly as it came.

Of the current turn, which is everything since a person spoke, the API also demands them: the first call
of each step must have one. A call that another provider's model made, or that nobody but us knows of,
has none; for these the API documents one word that stands in for a signature, and only that is sent.
See https://ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

import re
from typing import Any

from gemini_provider.kinds import METADATA, SIGNATURE, Part, Parts, about, is_call, is_response, parts_of

Dicts = list[dict[str, Any]]

SENTINEL = "skip_thought_signature_validator"
REFUSED = "signatures_refused"
"""Where `_metadata` says that the API did not take an item's signatures back; the item keeps them."""

_UNSIGNED_MODELS = re.compile(r"gemini-[12]([.-]|$)|gemini-pro$|gemma|learnlm")
_SPELLINGS = (SIGNATURE, "thought_signature")


def demands_signatures(model: Any) -> bool:
    """Whether a model refuses calls without signatures: those before Gemini 3 never did."""
    return _UNSIGNED_MODELS.match(str(model or "").rpartition("/")[2]) is None


def is_about_signatures(complaint: str) -> bool:
    """Whether the API complains about a signature."""
    return bool(re.search(r"thought[ _]?signature", complaint, re.IGNORECASE))


def is_signed(part: Part) -> bool:
    """Whether a part carries a signature."""
    return any(part.get(name) for name in _SPELLINGS)


def sendable_parts(item: dict[str, Any]) -> Parts:
    """Return an item's parts, without signatures that the API refused once."""
    parts = parts_of(item)
    if not about(item).get(REFUSED):
        return parts
    return [{key: value for key, value in part.items() if key not in _SPELLINGS} for part in parts]


def refusing(items: Dicts) -> tuple[Dicts, list[int]]:
    """Return the items with all signatures marked as refused, and the numbers of those that have any."""
    places = [
        index
        for index, item in enumerate(items)
        if not about(item).get(REFUSED) and any(map(is_signed, parts_of(item)))
    ]
    marked = [
        {**item, METADATA: {**about(item), REFUSED: True}} if index in places else item
        for index, item in enumerate(items)
    ]
    return marked, places


def with_sentinels(contents: Dicts) -> Dicts:
    """Return contents in which the first call of every step of the current turn is signed."""
    start = _current_turn(contents)
    return [*contents[:start], *map(_signed, contents[start:])]


def _current_turn(contents: Dicts) -> int:
    spoken = (
        index
        for index, content in enumerate(contents)
        if content["role"] == "user" and any(not is_response(part) for part in content["parts"])
    )
    return max(spoken, default=-1) + 1


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    parts = content["parts"]
    place = next((place for place, part in enumerate(parts) if is_call(part)), None)
    if place is None or content["role"] != "model" or is_signed(parts[place]):
        return content
    signed = {**parts[place], SIGNATURE: SENTINEL}
    return {**content, "parts": [*parts[:place], signed, *parts[place + 1 :]]}
