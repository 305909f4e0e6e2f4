"""What the provider's own tools did, told in short; the items themselves keep everything."""

from __future__ import annotations

from typing import Any

from openai_responses_provider.kinds import is_message, is_reasoning, is_tool_call, kind_of

Item = dict[str, Any]

# Files, pictures and lists of tools would fill every message; they stay in the item.
_LONG = frozenset(
    {"type", "_metadata", "result", "results", "tools", "output", "outputs", "encrypted_content"}
)


def is_builtin(item: Item) -> bool:
    """Whether an item of an answer is neither said, nor thought, nor a call of our tools."""
    return not (is_message(item) or is_reasoning(item) or is_tool_call(item))


def told_in_short(item: Item) -> dict[str, Any]:
    """Return what a built-in tool did, without what it brought."""
    short = {key: value for key, value in item.items() if key not in _LONG and value is not None}
    return {"type": kind_of(item), **short}


def picture_in(item: Item) -> dict[str, Any] | None:
    """Return the picture that an item brings."""
    if kind_of(item) != "image_generation_call" or not isinstance(item.get("result"), str):
        return None
    mime_type = f"image/{item.get('output_format') or 'png'}"
    return {"type": "image", "mime_type": mime_type, "data": item["result"]}


def progress_in(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return how far a built-in tool is, if an event tells: ``response.web_search_call.searching``."""
    words = str(event.get("type")).split(".")
    if len(words) != 3 or "item_id" not in event or words[2] in ("delta", "done"):  # noqa: PLR2004
        return None
    progress = {"id": event["item_id"], "type": words[1], "status": words[2]}
    if isinstance(event.get("partial_image_b64"), str):
        progress["image"] = event["partial_image_b64"]
    return progress
