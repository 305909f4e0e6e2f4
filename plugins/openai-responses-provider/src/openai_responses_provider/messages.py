"""Messages as items of the Responses API, and back."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agent_core.errors import AgentError, ToolError
from agent_core.interop import (
    OPENAI_CHAT_FUNCTION_FORMAT_ID,
    OPENAI_RESPONSES_CUSTOM_FORMAT_ID,
    OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID,
    OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
    OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID,
    ToolInteropRegistry,
    ToolInteropTarget,
)
from agent_core.interop.parts import as_text, read_part
from agent_core.interop.wire import encode
from agent_core.values import ToolCall
from agent_provider_kit import JsonObject
from openai_responses_provider import client_tools
from openai_responses_provider.events import refusal_in
from openai_responses_provider.items import (
    CUSTOM_CALL,
    CUSTOM_OUTPUT,
    FUNCTION_OUTPUT,
    METADATA,
    PLACE,
    REFUSED_BY,
    Item,
    Items,
    about,
    is_message,
    is_output,
    is_reasoning,
    is_tool_call,
    kind_of,
    numbered,
    role_of,
    turns,
)

Part = JsonObject
ITEM = "item"
"""Where a message's metadata keeps an item that is not a message, so that it can be sent again."""
_interop = ToolInteropRegistry.default()
client_tools.register(_interop)
_TARGET = ToolInteropTarget("openai responses")
_CALLS = (OPENAI_RESPONSES_FUNCTION_FORMAT_ID, OPENAI_RESPONSES_CUSTOM_FORMAT_ID)
_LONGEST_ID = 64
# Files, pictures and lists of tools would fill every message; they stay in the item.
_LONG = frozenset(
    {"type", "_metadata", "result", "results", "tools", "output", "outputs", "encrypted_content"}
)
_INTERNAL = (PLACE, REFUSED_BY)


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


def to_items(message: JsonObject) -> Items:
    """Return a message as items: one, or for calls one each in addition to what is said."""
    role = message["role"]
    if role == "tool":
        return [_output(message)]
    if role == "assistant":
        return numbered(_assistant(message))
    own = (message.get("metadata") or {}).get(ITEM)
    if isinstance(own, Mapping):  # additional_tools, say: no message says what it does
        return [dict(own)]
    parts = message.get("multipartContent")
    return [
        {"type": "message", "role": role, "content": list(map(to_part, parts)) if parts else _text(message)}
    ]


def wire_id(call_id: Any) -> str:
    """Return the id of a call as the API takes it; the same id always becomes the same."""
    own = str(call_id or "call")
    if len(own) <= _LONGEST_ID:
        return own
    return f"{own[:40]}_{sha256(own.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _assistant(message: JsonObject) -> Items:
    metadata = message.get("metadata") or {}
    calls = [_call(call) for call in metadata.get("tool_calls") or ()]
    content: Any = _text(message)
    if not content and metadata.get("refusal"):
        content = [{"type": "refusal", "refusal": metadata["refusal"]}]
    said = [{"type": "message", "role": "assistant", "content": content}] if content or not calls else []
    return [*said, *calls]


def _call(call: JsonObject) -> Item:
    item = _interop.convert_tool_call(call, target=_TARGET, target_formats=_CALLS)
    return {**item, "call_id": wire_id(item.get("call_id"))}


def _output(message: JsonObject) -> Item:
    metadata = message.get("metadata") or {}
    call_id = wire_id(metadata.get("tool_call_id"))
    structured = message.get("tool_result") or _unstructured(message)
    if kind_of(structured) == "mcp_approval_response":
        return dict(structured)
    if is_output(structured):
        return {**structured, "call_id": call_id}
    item = _converted(structured, call_id, metadata) or {
        **_unstructured(message),
        "type": _output_type(metadata),
        "call_id": call_id,
    }
    return {**item, METADATA: {client_tools.IS_ERROR: True}} if metadata.get("error") else item


def _converted(structured: Any, call_id: str, metadata: JsonObject) -> Item | None:
    call = ToolCall(call_id=call_id, tool_name=metadata.get("tool_name") or "tool", payload={})
    custom = _output_type(metadata) == CUSTOM_OUTPUT
    target = (
        OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID if custom else OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID
    )
    try:
        return _interop.convert_tool_result(
            structured, target=ToolInteropTarget("openai responses", call), target_formats=[target]
        )
    except ToolError:  # a stranger's structure; its text is there as well
        return None


def _output_type(metadata: JsonObject) -> str:
    """Return the type of item with which a tool answers, as far as its schema says."""
    try:
        schema = _interop.inspect_schema(metadata["tool_schema"])
    except (KeyError, AgentError):
        return FUNCTION_OUTPUT
    return CUSTOM_OUTPUT if schema.payload_kind == "text" else FUNCTION_OUTPUT


def _unstructured(message: JsonObject) -> JsonObject:
    parts = message.get("multipartContent")
    return {"type": FUNCTION_OUTPUT, "output": list(map(to_part, parts)) if parts else _text(message)}


def _text(message: JsonObject) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "" if content is None else as_text(content)


# What the provider's own tools did, in short; the items themselves keep everything.


def is_builtin(item: Item) -> bool:
    """Whether an item of an answer is neither said, nor thought, nor a call of a tool that only we know."""
    return not (is_message(item) or is_reasoning(item) or is_tool_call(item))


def summary_of_tool(item: Item) -> JsonObject:
    """Return what a built-in tool did, without what it brought."""
    short = {key: value for key, value in item.items() if key not in _LONG and value is not None}
    return {"type": kind_of(item), **short}


def picture_in(item: Item) -> JsonObject | None:
    """Return the picture that an item brings."""
    if kind_of(item) != "image_generation_call" or not isinstance(item.get("result"), str):
        return None
    mime_type = f"image/{item.get('output_format') or 'png'}"
    return {"type": "image", "mime_type": mime_type, "data": item["result"]}


def progress_in(event: JsonObject) -> JsonObject | None:
    """Return how far a built-in tool is, if an event says: ``response.web_search_call.searching``."""
    _response, kind, status, *more = [*str(event.get("type")).split("."), "", ""]
    if more != ["", ""] or "item_id" not in event or status in ("delta", "done"):
        return None
    progress = {"id": event["item_id"], "type": kind, "status": status}
    if isinstance(event.get("partial_image_b64"), str):
        progress["image"] = event["partial_image_b64"]
    return progress


def to_messages(items: Items) -> Items:
    """Return the items in readable form; each message says which items it is made of."""
    return [_message([items[place] for place in turn], turn) for turn in turns(items)]


def text_of(item: Item) -> str:
    """Return the text of a message."""
    content = item.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(part["text"] for part in content if isinstance(part.get("text"), str))


def reasoning_of(item: Item) -> str:
    """Return what the model thought, as far as it shows that."""
    for field in ("summary", "content"):
        parts = item.get(field)
        if isinstance(parts, list) and (texts := [part["text"] for part in parts if part.get("text")]):
            return "\n\n".join(texts)
    return ""


def readable_call(item: Item) -> JsonObject:
    """Return a call of one of our tools in the platform's form."""
    if kind_of(item) in client_tools.CLIENT_TOOLS:
        return _interop.convert_tool_call(
            item, target=_TARGET, target_formats=[OPENAI_CHAT_FUNCTION_FORMAT_ID]
        )
    own = {"id": item.get("call_id") or item.get("id")}
    name = item.get("name") or ""
    if kind_of(item) == CUSTOM_CALL:
        return {**own, "type": "custom", "name": name, "input": item.get("input") or ""}
    arguments = item.get("arguments")
    text = arguments if isinstance(arguments, str) else encode(arguments or {})
    return {**own, "type": "function", "function": {"name": name, "arguments": text}}


def _message(items: Items, places: list[int]) -> JsonObject:
    role = role_of(items[0])
    if role == "assistant":
        message = _from_assistant(items)
    elif role == "tool":
        message = _tool(items[0])
    else:
        message = _said(role, items[0])
    known = {key: value for item in items for key, value in about(item).items() if key not in _INTERNAL}
    return {**message, "metadata": {**message["metadata"], **known, "native_indices": places}}


def _said(role: str, item: Item) -> JsonObject:
    plain = {key: value for key, value in item.items() if key != METADATA}
    metadata = {} if is_message(item) else {"item_type": kind_of(item), ITEM: plain}
    message: JsonObject = {"role": role, "content": text_of(item), "metadata": metadata}
    if isinstance(item.get("content"), list):
        message["multipartContent"] = item["content"]
    return message


def _tool(item: Item) -> JsonObject:
    plain = {key: value for key, value in item.items() if key != METADATA}
    call_id = item.get("call_id") or item.get("approval_request_id")
    text = _interop.inspect_result({**plain, "type": "function_call_output"}).text if is_output(item) else ""
    return {"role": "tool", "content": text, "metadata": {"tool_call_id": call_id}, "tool_result": plain}


def _from_assistant(items: Items) -> JsonObject:
    text = "\n\n".join(filter(None, (text_of(item) for item in items if is_message(item))))
    message: JsonObject = {"role": "assistant", "content": text, "metadata": _about_turn(items)}
    pictures = [picture for item in items if (picture := picture_in(item)) is not None]
    if pictures:
        message["multipartContent"] = [*([{"type": "text", "text": text}] if text else []), *pictures]
    return message


def _about_turn(items: Items) -> JsonObject:
    calls = client_tools.waiting_calls(items)
    found: JsonObject = {
        "tool_calls": [readable_call(item) for item in calls],
        "reasoning": "\n\n".join(filter(None, (reasoning_of(item) for item in items if is_reasoning(item)))),
        "refusal": "".join(map(refusal_in, items)),
        "annotations": [annotation for item in items for annotation in _annotations(item)],
        "server_tools": [summary_of_tool(item) for item in items if is_builtin(item) and item not in calls],
    }
    return {key: value for key, value in found.items() if value}


def _annotations(item: Item) -> list[Any]:
    content = item.get("content") if is_message(item) else None
    parts = content if isinstance(content, list) else []
    return [annotation for part in parts for annotation in part.get("annotations") or ()]
