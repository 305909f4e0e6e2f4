"""Parts of a message as content blocks: images and files in any dialect, and the API's own blocks.

A part in the API's own form passes unchanged, with every field. What the API cannot read becomes a
note in its place, so that one attachment never spoils the whole conversation.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from agent_core.interop.parts import read_part

Part = dict[str, Any]

_TEXTS = ("input_text", "output_text")
_IMAGES = ("image", "image_url", "input_image")
_FILES = ("file", "input_file")
_FOREIGN = ("input_audio", "audio", "video", "refusal", None)
_PLAIN_TEXT = ("application/json", "application/xml", "application/yaml", "application/toml")


def to_block(part: Part) -> Part:
    """Return a part as the API takes it."""
    kind = part.get("type")
    if "source" in part:
        return part
    if kind in _TEXTS or (kind is None and isinstance(part.get("text"), str)):
        return _marked(part, {"type": "text", "text": part["text"]})
    if kind in _IMAGES or "inlineData" in part:
        return _marked(part, _image(part))
    if kind in _FILES:
        return _marked(part, _file(part))
    return _left_out(str(kind or "part")) if kind in _FOREIGN else part


def _marked(part: Part, block: Part) -> Part:
    return {**block, "cache_control": part["cache_control"]} if "cache_control" in part else block


def _image(part: Part) -> Part:
    read = read_part({"mime_type": "image/png", **part})
    if isinstance(read.get("url"), str):
        return {"type": "image", "source": {"type": "url", "url": read["url"]}}
    readable = isinstance(read.get("data"), str) and str(read.get("mime_type")).startswith("image/")
    return _base64("image", read["mime_type"], read["data"]) if readable else _left_out("image")


def _base64(kind: str, mime_type: str, data: str) -> Part:
    return {"type": kind, "source": {"type": "base64", "media_type": mime_type, "data": data}}


def _file(part: Part) -> Part:
    inner: Part = part["file"] if isinstance(part.get("file"), dict) else part
    name = inner.get("name") or inner.get("filename") or "file"
    mime_type, data = _data_in(inner)
    if data is None:
        url = inner.get("url") or inner.get("file_url")
        return _document({"type": "url", "url": url}, name) if url else _left_out(name)
    if mime_type.startswith("image/"):
        return _base64("image", mime_type, data)
    if mime_type == "application/pdf":
        return _document({"type": "base64", "media_type": mime_type, "data": data}, name)
    if mime_type.startswith("text/") or mime_type in _PLAIN_TEXT:
        return _text_document(data, name)
    return _left_out(f"{name} ({mime_type})")


def _data_in(part: Part) -> tuple[str, str | None]:
    """Return a file's type and its data as base64, wherever they are."""
    data = part.get("data", part.get("file_data"))
    if not isinstance(data, str):
        return "", None
    head, comma, body = data.partition(";base64,")
    if comma and head.startswith("data:"):
        return head.removeprefix("data:"), body
    return str(part.get("mime_type") or "application/octet-stream"), data


def _text_document(data: str, name: str) -> Part:
    try:
        text = b64decode(data, validate=True).decode()
    except ValueError:  # of base64 and of UTF-8
        return _left_out(name)
    if not text.strip():
        return {"type": "text", "text": f"[{name} is empty]"}
    return _document({"type": "text", "media_type": "text/plain", "data": text}, name)


def _document(source: Part, name: str) -> Part:
    return {"type": "document", "source": source, "title": name}


def _left_out(what: str) -> Part:
    return {"type": "text", "text": f"[{what} left out: it cannot be read here]"}
