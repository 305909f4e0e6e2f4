"""Parts of a message that are more than text, as the Responses API takes them."""

from __future__ import annotations

from typing import Any

from agent_core.interop.parts import read_part

Part = dict[str, Any]


def to_part(part: Part) -> Part:
    """Return a part as the API takes it; parts in its own form pass unchanged."""
    kind = str(part.get("type"))
    if kind.startswith("input_"):
        return part
    if kind == "file":
        return {"type": "input_file", **_file(part)}
    known = read_part(part)
    if known.get("type") == "text":
        return {"type": "input_text", "text": known["text"]}
    if known.get("type") == "image":
        return {"type": "input_image", **_image(known)}
    return part


def _image(part: Part) -> Part:
    if part.get("file_id"):
        return {"file_id": part["file_id"]}
    url = part.get("url") or f"data:{part.get('mime_type') or 'image/png'};base64,{part.get('data') or ''}"
    return {"image_url": url}


def _file(part: Part) -> Part:
    """Return a file in the platform's form, or as Chat Completions has it."""
    inner = part["file"] if isinstance(part.get("file"), dict) else part
    for ours, theirs in (("file_id", "file_id"), ("url", "file_url"), ("file_data", "file_data")):
        if inner.get(ours):
            named = {"filename": inner["filename"]} if inner.get("filename") else {}
            return {theirs: inner[ours], **named}
    data = f"data:{inner.get('mime_type') or 'application/octet-stream'};base64,{inner.get('data') or ''}"
    return {"filename": inner.get("name") or "file", "file_data": data}
