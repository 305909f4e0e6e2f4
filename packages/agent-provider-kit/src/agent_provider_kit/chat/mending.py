"""Mending one item: what servers refuse about it, whatever stands before and after."""

from __future__ import annotations

from typing import Any

import orjson

_IN_PLACE_OF_CONTENT = ("function_call", "audio", "refusal")
Mended = tuple[dict[str, Any], list[str]]


def mend_content(item: dict[str, Any]) -> Mended:
    """Return the item with content that servers take: no empty parts, null only beside something else."""
    content = item.get("content")
    if isinstance(content, list):
        kept = [part for part in content if not _is_empty_text(part)]
        if len(kept) != len(content) or not kept:
            return {**item, "content": kept or ""}, ["left out empty parts"]
    elif content is None and not item.get("tool_calls") and not any(map(item.get, _IN_PLACE_OF_CONTENT)):
        return {**item, "content": ""}, ["wrote an empty text in place of null"]
    return item, []


def mend_calls(item: dict[str, Any], place: int) -> Mended:
    """Return an assistant's item whose calls have ids of their own, and arguments that can be read."""
    changes: list[str] = []
    seen: set[str] = set()
    mended = [
        _with_arguments(_with_id(call, (place, number), seen, changes), changes)
        for number, call in enumerate(item["tool_calls"])
    ]
    return ({**item, "tool_calls": mended}, changes) if changes else (item, changes)


def _is_empty_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and not part.get("text")


def _with_id(
    call: dict[str, Any], place: tuple[int, int], seen: set[str], changes: list[str]
) -> dict[str, Any]:
    own = call.get("id")
    if isinstance(own, str) and own and own not in seen:
        seen.add(own)
        return call
    spare = f"call_{place[0]}_{place[1]}"
    while spare in seen:
        spare += "_"
    seen.add(spare)
    changes.append(f"gave a call an id of its own, {spare!r}")
    return {**call, "id": spare}


def _with_arguments(call: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    readable = _readable(arguments)
    if readable is arguments:
        return call
    changes.append(f"made the arguments of call {call['id']!r} readable, which were no JSON object")
    return {**call, "function": {**function, "arguments": readable}}


def _readable(arguments: Any) -> Any:
    """Return arguments as the text of a JSON object; several servers break on anything else."""
    parsed = arguments
    if arguments and isinstance(arguments, str):
        try:
            parsed = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            parsed = {"unreadable": arguments}
        else:
            if isinstance(parsed, dict):
                return arguments
    if not isinstance(parsed, dict):
        parsed = {"unreadable": parsed} if parsed else {}
    return orjson.dumps(parsed).decode()
