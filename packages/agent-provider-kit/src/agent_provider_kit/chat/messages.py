"""Messages in the form of Chat Completions, and back."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_core.errors import ToolError
from agent_core.interop import OPENAI_CHAT_FUNCTION_FORMAT_ID, ToolInteropRegistry, ToolInteropTarget
from agent_core.interop.parts import data_url, read_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_provider_kit.wire import JsonObject

REASONING_FIELDS = ("reasoning_content", "reasoning")
_CALL_FORMATS = (OPENAI_CHAT_FUNCTION_FORMAT_ID, "openai.chat.custom")
_interop = ToolInteropRegistry.default()
_TARGET = ToolInteropTarget("chat completions")
STANDARD_FIELDS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "_metadata"}
)
CALL_FIELDS = frozenset({"id", "type", "function", "custom"})
_OWN_PARTS = frozenset({"text", "image_url", "input_audio", "audio_url", "video_url", "refusal"})
_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-flac": "flac"}
_UNKNOWN_TYPE = "application/octet-stream"


def to_item(message: JsonObject) -> JsonObject:
    """Return one message as Chat Completions takes it."""
    metadata = message.get("metadata") or {}
    item: JsonObject = {"role": message["role"], "content": _content(message)}
    if message["role"] == "tool":
        item["content"] = _result(message)
        item["tool_call_id"] = metadata.get("tool_call_id") or ""
    if message["role"] == "assistant" and metadata.get("tool_calls"):
        item["tool_calls"] = [_call(call) for call in metadata["tool_calls"]]
        item["content"] = item["content"] or None
    return item


def to_message(item: JsonObject) -> JsonObject:
    """Return one item in readable form; what only the provider understands stays in the item."""
    content = item.get("content")
    message: JsonObject = {
        "role": "system" if item["role"] == "developer" else item["role"],
        "content": _text(content),
        "metadata": _metadata(item),
    }
    if isinstance(content, list):
        message["multipartContent"] = content
    return _with_audio(message, item["audio"]) if isinstance(item.get("audio"), dict) else message


def without_internal(item: JsonObject) -> JsonObject:
    """Return an item as it is sent: `_metadata` is ours alone."""
    return item if "_metadata" not in item else {key: item[key] for key in item if key != "_metadata"}


def own_fields(item: JsonObject) -> set[str]:
    """Return the names of fields that only the server knows which wrote an item, or one of its calls."""
    calls = (call for call in item.get("tool_calls") or () if isinstance(call, dict))
    return {
        *(item.keys() - STANDARD_FIELDS),
        *(field for call in calls for field in call.keys() - CALL_FIELDS),
    }


def reasoning_of(item: JsonObject) -> str:
    """Return what the model thought, under whichever name the server sends it."""
    fields = (item[field] for field in REASONING_FIELDS if item.get(field))
    named = next((text for text in fields if isinstance(text, str)), "")
    content = item.get("content")
    if named or not isinstance(content, list):
        return named
    return "".join(map(thinking_of, content))


def text_of(part: Any) -> str:
    """Return the words of a part, or nothing if it has none."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def thinking_of(part: Any) -> str:
    """Return the words of a thinking part, or nothing if it is another."""
    thinking = part.get("thinking") if isinstance(part, dict) and part.get("type") == "thinking" else None
    if isinstance(thinking, list):
        return "".join(map(text_of, thinking))
    return thinking if isinstance(thinking, str) else ""


def _metadata(item: JsonObject) -> JsonObject:
    metadata = {
        key: item[key] for key in ("tool_calls", "tool_call_id", "refusal", "annotations") if item.get(key)
    }
    if reasoning := reasoning_of(item):
        metadata["reasoning"] = reasoning
    return {**metadata, **(item.get("_metadata") or {})}


def _call(call: JsonObject) -> JsonObject:
    return _interop.convert_tool_call(call, target=_TARGET, target_formats=_CALL_FORMATS)


def _content(message: JsonObject) -> Any:
    parts = message.get("multipartContent")
    if parts and message["role"] == "user":
        return [to_part(part) for part in parts]
    return message["content"] if message["content"] is not None else ""


def _result(message: JsonObject) -> Any:
    """Return a tool's result: text, or parts if there is more to it."""
    structured = message.get("tool_result")
    parts: Iterable[JsonObject] = message.get("multipartContent") or ()
    if structured is not None:
        with suppress(ToolError):  # a stranger's structure; its text is there as well
            parts = _interop.inspect_result(structured).parts or parts
    made = [to_part(part) for part in parts]
    return made if any(part.get("type") != "text" for part in made) else message["content"] or ""


def _with_audio(message: JsonObject, audio: JsonObject) -> JsonObject:
    """Show a spoken answer: its words, and the sound as a part."""
    text = message["content"] or str(audio.get("transcript") or "")
    said = [{"type": "text", "text": text}] if text else []
    kept = {key: audio[key] for key in ("data", "format", "id", "expires_at") if audio.get(key)}
    return {**message, "content": text, "multipartContent": [*said, {"type": "audio", **kept}]}


def to_part(part: JsonObject) -> JsonObject:
    """Return a part in any dialect as Chat Completions takes it.

    Its own form passes unchanged, and so does what nobody here knows: the server says what it thinks of it.
    """
    kind = part.get("type")
    if kind in _OWN_PARTS or (kind == "file" and "file" in part):
        return part
    known = read_part({"mime_type": "image/png", **part} if kind == "image" else part)
    if known.get("type") == "text":
        return {"type": "text", "text": known["text"]}
    if known.get("type") == "image" and ("url" in known or "data" in known):
        return {"type": "image_url", "image_url": {"url": data_url(known)}}
    content = _content_of(part)
    if content is None:
        return part
    kind = str(content.get("mime_type") or kind).partition("/")[0]
    return _media(kind, content) if kind in ("audio", "video") else {"type": "file", "file": _file(content)}


def _content_of(part: JsonObject) -> JsonObject | None:
    """Return the sound, the video or the file that a part of any dialect is; None if it is none of them."""
    source, inline = part.get("source"), part.get("inlineData")
    if part.get("type") in ("audio", "video", "file", "input_file"):
        return part
    if isinstance(inline, dict):  # Gemini
        return {"mime_type": inline.get("mimeType") or _UNKNOWN_TYPE, "data": inline.get("data")}
    if part.get("type") == "document" and isinstance(source, dict):  # Anthropic
        return {"name": part.get("title"), **_source(source)}
    return None


def _media(kind: str, part: JsonObject) -> JsonObject:
    """Return sound as the API takes it, and moving pictures and links to either as many servers do."""
    mime_type, data = str(part.get("mime_type") or ""), part.get("data")
    if kind == "audio" and data and not part.get("url"):
        subtype = str(part.get("format") or mime_type.partition("/")[2] or "wav")
        return {
            "type": "input_audio",
            "input_audio": {"data": data, "format": _AUDIO_FORMATS.get(subtype, subtype)},
        }
    url = part.get("url") or f"data:{mime_type or f'{kind}/mp4'};base64,{data or ''}"
    return {"type": f"{kind}_url", f"{kind}_url": {"url": url}}


def _source(source: JsonObject) -> JsonObject:
    if source.get("type") == "text":
        encoded = b64encode(str(source.get("data") or "").encode()).decode()
        return {"mime_type": "text/plain", "data": encoded}
    return {"mime_type": source.get("media_type"), "data": source.get("data"), "url": source.get("url")}


def _file(part: JsonObject) -> JsonObject:
    """Return a file by its id, by its data, or by its address, which servers take in the place of data."""
    if part.get("file_id"):
        return {"file_id": part["file_id"]}
    url = part.get("url") or part.get("file_url")
    name = part.get("name") or part.get("filename") or (url and _last_step(str(url))) or "file"
    data = part.get("file_data") or url
    if not data:
        data = f"data:{part.get('mime_type') or _UNKNOWN_TYPE};base64,{part.get('data') or ''}"
    return {"filename": name, "file_data": data}


def _last_step(url: str) -> str:
    return urlsplit(url).path.rpartition("/")[2]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(map(text_of, content))
    return content if isinstance(content, str) else ""
