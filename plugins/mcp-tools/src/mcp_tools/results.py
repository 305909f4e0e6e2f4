"""What a model reads of a server's answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agent_core.encoding import parse, readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


Part = dict[str, Any]
_IMAGES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)


def tool_result(answer: Any) -> dict[str, Any]:
    """Return the answer to a tool call as a tool's result."""
    parts = _parts(answer.content)
    structured = answer.structured_content
    if structured is not None and not _says_already(parts, structured):
        parts.append(_text(readable(structured)))
    return as_result(parts, failed=answer.is_error)


def resource_result(answer: Any) -> dict[str, Any]:
    """Return a resource that was read as a tool's result."""
    return as_result([_resource(one) for one in answer.contents])


def prompt_result(answer: Any) -> dict[str, Any]:
    """Return a prompt as a tool's result: its messages, each with who says it."""
    parts = []
    for message in answer.messages:
        parts += [_text(f"[{message.role}]"), *_parts([message.content])]
    return as_result(parts)


def as_result(parts: Sequence[Part], *, failed: bool = False) -> dict[str, Any]:
    """Return parts as a result; images go beside the text."""
    texts = [part["text"] for part in parts if part["type"] == "text"]
    text = "\n".join(texts)
    if failed:
        result = {"success": False, "error": text or "the tool failed and does not say why"}
    else:
        result = {"success": True, "result": text or ("" if parts else "(no content)")}
    return result if len(texts) == len(parts) else {**result, "parts": list(parts)}


def _says_already(parts: Sequence[Part], structured: Any) -> bool:
    """Say whether the text is the structured content once more, as servers are told to send it.

    A value that is no object is wrapped by many as `result`, and a list is often sent as one text per item.
    """
    texts = [_read(part["text"]) for part in parts if part["type"] == "text"]
    wrapped = structured.get("result") if isinstance(structured, dict) and len(structured) == 1 else None
    said: list[Any] = [*texts, texts, [part["text"] for part in parts if part["type"] == "text"]]
    said += said[-1]
    return any(one in (structured, wrapped) for one in said if one is not None)


def _read(text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return text


def _parts(content: Sequence[Any]) -> list[Part]:
    return [_part(block) for block in content]


def _part(block: Any) -> Part:
    if block.type == "text":
        return _text(block.text)
    if block.type in ("image", "audio"):
        return _media(block.mime_type, block.data, f"{block.type} of type {block.mime_type}")
    if block.type == "resource":
        return _resource(block.resource)
    if block.type == "resource_link":
        about = f": {block.description}" if block.description else ""
        return _text(f"[resource {block.uri} ({block.name}){about}]")
    return _text(f"[{block.type} left out]")


def _resource(resource: Any) -> Part:
    text = getattr(resource, "text", None)
    if text is not None:
        return _text(f"[resource {resource.uri}]\n{text}")
    return _media(resource.mime_type or "", resource.blob, f"resource {resource.uri}, binary")


def _media(mime_type: str, data: str, name: str) -> Part:
    """Return an image that providers take, or a note in the place of anything else."""
    if mime_type.lower() in _IMAGES and _BASE64.fullmatch(data) and len(data) % 4 == 0:
        return {"type": "image", "mime_type": mime_type.lower(), "data": data}
    return _text(f"[{name}, {len(data) * 3 // 4} bytes, left out]")


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def listed(entries: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return lists of what servers have, by server, as a result."""
    return {
        "success": True,
        "result": readable({name: [dict(one) for one in all_] for name, all_ in entries.items()}),
    }
