"""What a part is: the questions that several modules ask about one."""

from __future__ import annotations

from typing import Any

Part = dict[str, Any]
Parts = list[Part]

METADATA = "_metadata"
"""Where an item keeps what is only ours; it is never sent."""

DROPPED = "dropped_parts"
"""Where `_metadata` keeps parts that are not sent any more, each with the reason."""

SIGNATURE = "thoughtSignature"


def is_text(part: Part) -> bool:
    """Whether it is text, of a person or of the model, and no thought."""
    return isinstance(part.get("text"), str) and not is_thought(part)


def is_thought(part: Part) -> bool:
    """Whether it is what the model thought, and not what it says."""
    return part.get("thought") is True


def is_plain(part: Part) -> bool:
    """Whether it is text and nothing else, so that more text of its kind may join it."""
    if not isinstance(part.get("text"), str):
        return False
    return len(part) == 1 or (len(part) == 2 and is_thought(part))  # noqa: PLR2004 - text and thought


def is_call(part: Part) -> bool:
    """Whether it is a call of one of our tools."""
    return isinstance(part.get("functionCall"), dict)


def is_response(part: Part) -> bool:
    """Whether it is the result of one of our tools."""
    return isinstance(part.get("functionResponse"), dict)


def says_something(part: Part) -> bool:
    """Whether there is anything to send: empty text counts only with a signature or the like beside it."""
    return bool(part) and not (is_plain(part) and not part["text"])


def parts_of(item: dict[str, Any]) -> Parts:
    """Return an item's parts, as far as they are any."""
    parts = item.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def about(item: dict[str, Any]) -> dict[str, Any]:
    """Return what only we know of an item."""
    found = item.get(METADATA)
    return found if isinstance(found, dict) else {}


def dropped_parts(item: dict[str, Any]) -> Parts:
    """Return the parts that an item once had and that are not sent any more."""
    return [entry["part"] for entry in about(item).get(DROPPED) or []]


def put_aside(item: dict[str, Any], places: set[int], reason: str) -> dict[str, Any]:
    """Return the item without the parts at *places*, which its `_metadata` keeps."""
    parts = parts_of(item)
    gone = [{"part": parts[place], "reason": reason} for place in sorted(places)]
    return {
        **item,
        "parts": [part for place, part in enumerate(parts) if place not in places],
        METADATA: {**about(item), DROPPED: [*(about(item).get(DROPPED) or []), *gone]},
    }
