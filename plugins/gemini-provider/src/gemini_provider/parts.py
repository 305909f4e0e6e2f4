"""Parts of a message as the API takes them, and back: images and files in any dialect.

A part in the API's own form passes unchanged, with every field. What the API cannot read becomes a
note in its place, so that one attachment never spoils the whole conversation.
"""

from __future__ import annotations

from mimetypes import guess_type
from typing import Any

from agent_core.interop.parts import read_part
from gemini_provider.kinds import SIGNATURE, Part, is_text

_TEXTS = ("text", "input_text", "output_text")
_IMAGES = ("image", "image_url", "input_image")
_SENT_AS_TEXT = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
)
_BESIDE_DATA = frozenset({SIGNATURE, "thought"})


def to_part(part: Part) -> Part:
    """Return a part as the API takes it; a note, if the API cannot take it."""
    return read_foreign(part) or _left_out(part)


def read_foreign(part: Part) -> Part | None:
    """Return a part as the API takes it, or None if there is no way to."""
    kind = part.get("type")
    if kind is None or "inlineData" in part or "fileData" in part:
        return part
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return {"text": part["text"]}
    if kind in _IMAGES:
        part = read_part({"mime_type": "image/png", **part})
    return _media(part)


def from_part(part: Part) -> Part:
    """Return a part in the platform's form where it has one; others stay in the API's."""
    if is_text(part) and part.keys() <= {"text", SIGNATURE}:
        return {"type": "text", "text": part["text"]}
    inline, file = part.get("inlineData"), part.get("fileData")
    if not part.keys() <= {"inlineData", "fileData"} | _BESIDE_DATA:
        return part
    if isinstance(inline, dict) and inline.keys() == {"mimeType", "data"}:
        return _known(inline["mimeType"], {"data": inline["data"]})
    if isinstance(file, dict) and file.keys() == {"mimeType", "fileUri"}:
        return _known(file["mimeType"], {"url": file["fileUri"]})
    return part


def _known(mime_type: Any, content: Part) -> Part:
    kind = "image" if str(mime_type).startswith("image/") else "file"
    return {"type": kind, "mime_type": mime_type, **content}


def _media(part: Part) -> Part | None:
    inner = next((part[name] for name in ("file", "input_audio") if isinstance(part.get(name), dict)), part)
    mime_type, data = _data_in(inner)
    if data is not None:
        sent = "text/plain" if mime_type in _SENT_AS_TEXT else mime_type
        return {"inlineData": {"mimeType": sent, "data": data}}
    url = inner.get("url") or inner.get("file_url")
    if not isinstance(url, str):
        return None
    guessed = part.get("mime_type") or guess_type(url.partition("?")[0])[0]
    return {"fileData": {**({"mimeType": guessed} if guessed else {}), "fileUri": url}}


def _data_in(part: Part) -> tuple[str, str | None]:
    """Return the type and the data as base64, wherever they are."""
    data = part.get("data", part.get("file_data"))
    if not isinstance(data, str):
        return "", None
    head, comma, body = data.partition(";base64,")
    if comma and head.startswith("data:"):
        return head.removeprefix("data:"), body
    audio = f"audio/{part['format']}" if isinstance(part.get("format"), str) else None
    named = guess_type(str(part.get("name") or part.get("filename") or ""))[0]
    return str(part.get("mime_type") or audio or named or "application/octet-stream"), data


def _left_out(part: Part) -> Part:
    what = part.get("name") or part.get("type")
    return {"text": f"[{what} left out: it cannot be read here]"}
