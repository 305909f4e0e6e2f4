"""Content that is more than text.

Inside, a part is one of these; each wire format has its own way of writing the two::

    {"type": "text", "text": "…"}
    {"type": "image", "mime_type": "image/png", "data": "<base64>"}   or   {"type": "image", "url": "…"}

A part of any other kind is kept exactly as it came: it returns to the format it is from, and other
formats refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from agent_core.encoding import canonical, readable
from agent_core.errors import ToolError
from agent_core.frozen import JsonObject, thaw

Part = JsonObject
WritePart = Callable[[Part], Part | None]
_TEXT_TYPES = ("text", "input_text", "output_text")


def text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def read_content(content: object) -> tuple[str, tuple[Part, ...]]:
    """Read a content field: its text, and its parts when there is more than text."""
    if not isinstance(content, (list, tuple)):
        return ("" if content is None else as_text(content)), ()
    return summary([read_part(item) for item in content])


def summary(parts: Iterable[Part]) -> tuple[str, tuple[Part, ...]]:
    """Return the text of *parts*, and the parts themselves when there is more than text."""
    kept = tuple(parts)
    texts = [part["text"] for part in kept if is_text(part)]
    return "\n".join(texts), (() if len(texts) == len(kept) else kept)


def beside_text(text: str, items: object) -> tuple[Part, ...]:
    """Return the whole content where a format keeps its text apart from the other parts."""
    items = items if isinstance(items, (list, tuple)) else ()
    own_text, parts = summary([read_part(item) for item in items])
    return (text_part(text), *parts) if parts and text and text != own_text else parts


def read_part(item: object) -> Part:
    """Read one part in any dialect; anything that is not a part becomes text."""
    if not isinstance(item, Mapping):
        return text_part(as_text(item))
    if item.get("type") in _TEXT_TYPES and isinstance(item.get("text"), str):
        return text_part(item["text"])
    part: Part = _read_image(item) or thaw(dict(item))
    return part


def is_text(part: Part) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def is_known(item: object) -> bool:
    """Whether *item* is clearly a part of content and not some other object."""
    return isinstance(item, Mapping) and (is_text(part := read_part(item)) or _is_image(part))


def write_parts(parts: Iterable[Part], write: WritePart, *, keep_unknown: bool) -> list[Part]:
    """Write *parts* in a format's own way.

    Args:
        parts: What is written.
        write: Writes a text or an image, or returns None where the format has no way to.
        keep_unknown: Whether parts of other kinds are in the format already.

    Raises:
        ToolError: If one cannot be written.
    """
    written = []
    for part in parts:
        known = is_text(part) or _is_image(part)
        item = write(part) if known else (part if keep_unknown else None)
        if item is None:
            raise ToolError(None, f"this format cannot carry a part of type {_label(part)!r}")
        written.append(item)
    return written


def text_only(parts: Iterable[Part]) -> str:
    """Return *parts* as text, with a note instead of each part that is not text."""
    return "\n".join(part["text"] if is_text(part) else f"[{_label(part)} left out]" for part in parts)


def data_url(part: Part) -> str:
    """Return an image's address: its own, or its data as an address."""
    return part["url"] if "url" in part else f"data:{part['mime_type']};base64,{part['data']}"


def as_text(value: object) -> str:
    """Return text as it is and any other value as JSON that reads the same for equal values."""
    if isinstance(value, str):
        return value
    try:
        return readable(_ordered(thaw(value)))
    except (TypeError, ValueError, RecursionError):
        return canonical(value).decode()


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _read_image(item: Mapping[str, object]) -> Part | None:
    source = item.get("source")
    if isinstance(source, Mapping) and item.get("type") == "image":  # Anthropic
        return _image(source.get("media_type"), source.get("data"), source.get("url"))
    if isinstance(blob := item.get("inlineData"), Mapping):  # Gemini
        return _image(blob.get("mimeType"), blob.get("data"), None)
    if item.get("type") in ("image_url", "input_image"):  # OpenAI
        address = item.get("image_url")
        return _image(None, None, address.get("url") if isinstance(address, Mapping) else address)
    if item.get("type") == "image":  # our own, and MCP's
        return _image(item.get("mime_type") or item.get("mimeType"), item.get("data"), item.get("url"))
    return None


def _image(mime_type: object, data: object, url: object) -> Part | None:
    if isinstance(url, str):
        head, comma, body = url.partition(";base64,")
        if not (comma and head.startswith("data:image/")):
            return {"type": "image", "url": url}
        mime_type, data = head.removeprefix("data:"), body
    if isinstance(data, str) and isinstance(mime_type, str) and mime_type.startswith("image/"):
        return {"type": "image", "mime_type": mime_type, "data": data}
    return None


def _is_image(part: Part) -> bool:
    return part.get("type") == "image" and ("url" in part or {"mime_type", "data"} <= part.keys())


def _label(part: Part) -> str:
    kind = part.get("type")
    return kind if isinstance(kind, str) else next(iter(part), "part")
