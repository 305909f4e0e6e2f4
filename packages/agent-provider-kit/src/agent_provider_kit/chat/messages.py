"""Messages in the form of Chat Completions, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.interop import OPENAI_CHAT_FUNCTION_FORMAT_ID, ToolInteropRegistry, ToolInteropTarget

if TYPE_CHECKING:
    from agent_provider_kit.wire import JsonObject

REASONING_FIELDS = ("reasoning_content", "reasoning")
_CALL_FORMATS = (OPENAI_CHAT_FUNCTION_FORMAT_ID, "openai.chat.custom")
_interop = ToolInteropRegistry.default()
_TARGET = ToolInteropTarget("chat completions")


def to_item(message: JsonObject) -> JsonObject:
    """Return one message as Chat Completions takes it."""
    metadata = message.get("metadata") or {}
    item: JsonObject = {"role": message["role"], "content": _content(message)}
    if message["role"] == "tool":
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
    return message


def without_internal(item: JsonObject) -> JsonObject:
    """Return an item as it is sent: `_metadata` is ours alone."""
    return item if "_metadata" not in item else {key: item[key] for key in item if key != "_metadata"}


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
        return [_part(part) for part in parts]
    return message["content"] if message["content"] is not None else ""


def _part(part: JsonObject) -> JsonObject:
    """Return a part as Chat Completions takes it; parts in its own form pass unchanged."""
    kind = part.get("type")
    if kind == "image":
        url = part.get("url") or f"data:{part.get('mime_type', 'image/png')};base64,{part.get('data', '')}"
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "file" and "file" not in part:
        return {"type": "file", "file": _file(part)}
    return part


def _file(part: JsonObject) -> JsonObject:
    if part.get("file_id"):
        return {"file_id": part["file_id"]}
    data = f"data:{part.get('mime_type', 'application/octet-stream')};base64,{part.get('data', '')}"
    return {"filename": part.get("name", "file"), "file_data": data}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(map(text_of, content))
    return content if isinstance(content, str) else ""
