"""A tool message with something left out, and the words that say how to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_runtime.large_results.keeping import READ_RESULT, Kept, keep, media_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_runtime.large_results.cutting import Content, Cut
    from agent_runtime.phases import CallView

LEFT_OUT = "left_out"
"""The key of a message's metadata under which front ends find what was kept: `asset`, `name`, `size`."""


def told(
    message: dict[str, Any], call: CallView, content: Content, made: Cut, context: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the message with what fits, a note where something is missing, and where that went."""
    kept: list[dict[str, Any]] = []
    text = _text(call, content, made, context, kept)
    notes = [
        _image_note(number, part, call, context, kept) for number, part in enumerate(made.media_left_out)
    ]
    text = "\n".join([text, *notes])
    result: dict[str, Any] = {"type": "tool_result", "text": text}
    if made.media:
        result["parts"] = [dict(part) for part in made.media]
    if message["tool_result"].get("is_error"):
        result["is_error"] = True
    metadata = {**message["metadata"], LEFT_OUT: kept}
    return {**message, "content": text, "metadata": metadata, "tool_result": result}


def _text(
    call: CallView, content: Content, made: Cut, context: Mapping[str, Any], kept: list[dict[str, Any]]
) -> str:
    if not made.left_out:
        return content.text
    data = content.text.encode("utf-8", "replace")
    where = _kept(context, data, f"{call.name}.txt", "text/plain", kept)
    start = len(made.head.encode("utf-8", "replace"))
    note = f"{made.left_out} of {len(content.text)} characters are left out here"
    return f"{made.head}\n[{note}. {_how(where, f', start={start}')}]\n{made.tail}"


def _image_note(
    number: int,
    part: Mapping[str, Any],
    call: CallView,
    context: Mapping[str, Any],
    kept: list[dict[str, Any]],
) -> str:
    data = media_data(part)
    if data is None:
        return f"[A part of type {part.get('type')!r} is left out: there was no room for it.]"
    kind = str(part.get("mime_type") or "application/octet-stream")
    where = _kept(context, data, f"{call.name}-{number + 1}", kind, kept)
    return f"[An image ({kind}, {len(data)} bytes) is left out: there was no room for it. {_how(where, '')}]"


def _kept(
    context: Mapping[str, Any], data: bytes, name: str, media_type: str, kept: list[dict[str, Any]]
) -> Kept:
    where = keep(context, data, name, media_type)
    if where.id is not None:
        kept.append({"asset": where.id, "name": name, "size": len(data), "media_type": media_type})
    return where


def _how(where: Kept, start: str) -> str:
    if where.id is None:
        return f"They cannot be read again, since {where.problem}: ask for less."
    return f'Read on with {READ_RESULT}(id="{where.id}"{start}).'
