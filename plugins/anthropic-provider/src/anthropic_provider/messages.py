"""Messages as items of the Messages API, and back.

One message is one item, whatever the API wants to be sent: a system message has an item of its own, and
so has each tool result. `anthropic_provider.request` turns the items into what the API takes.
"""

from __future__ import annotations

import re
from base64 import b64decode
from hashlib import sha256
from typing import Any

from agent_core import ToolError
from agent_core.interop import (
    ANTHROPIC_TOOL_RESULT_FORMAT_ID,
    ANTHROPIC_TOOL_USE_FORMAT_ID,
    OPENAI_CHAT_FUNCTION_FORMAT_ID,
    ToolInteropRegistry,
    ToolInteropTarget,
)
from agent_core.interop.parts import as_text, read_part
from agent_core.values import ToolCall
from agent_provider_kit import Dicts, JsonObject

Block = JsonObject
Blocks = list[Block]

METADATA = "_metadata"
"""Where an item keeps what is only ours; it is never sent."""

DROPPED = "dropped_blocks"
"""Where `_metadata` keeps blocks that are not sent any more, each with the reason."""
Part = JsonObject
_TEXTS = ("input_text", "output_text")
_IMAGES = ("image", "image_url", "input_image")
_FILES = ("file", "input_file")
_FOREIGN = ("input_audio", "audio", "video", "refusal", None)
_PLAIN_TEXT = ("application/json", "application/xml", "application/yaml", "application/toml")
_interop = ToolInteropRegistry.default()
_TARGET = ToolInteropTarget("anthropic")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


def is_text(block: Block) -> bool:
    """Whether it is text, of a person or of the model."""
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def is_thinking(block: Block) -> bool:
    """Whether it is thinking, readable or not."""
    return block.get("type") in ("thinking", "redacted_thinking")


def is_call(block: Block) -> bool:
    """Whether it is a call of one of our tools."""
    return block.get("type") == "tool_use"


def is_result(block: Block) -> bool:
    """Whether it is the result of one of our tools."""
    return block.get("type") == "tool_result"


def is_server_call(block: Block) -> bool:
    """Whether it is a call that the provider runs itself: server_tool_use, mcp_tool_use."""
    return str(block.get("type")).endswith("_tool_use")


def is_server_result(block: Block) -> bool:
    """Whether it is the result of such a call: web_search_tool_result and its many siblings."""
    return str(block.get("type")).endswith("_tool_result")


def blocks_of(item: JsonObject) -> Blocks:
    """Return an item's content as blocks; text alone is one."""
    content = item.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def says_something(item: JsonObject) -> bool:
    """Whether anything of an item can be sent: the API refuses a message of nothing but blanks."""
    content = item.get("content")
    if isinstance(content, str):
        return not is_blank(content)
    if not isinstance(content, list):
        return False
    for block in content:  # noqa: SIM110 - asked of every item in every request, and a generator is slow
        if not is_text(block) or not is_blank(block["text"]):
            return True
    return False


def is_blank(text: str) -> bool:
    """Whether a text has no character that can be seen; it is not read further than to the first."""
    return not text or text.isspace()


def begins_turn(items: Dicts, place: int) -> bool:
    """Say whether a turn begins here: a person speaks, behind an answer of the model that calls nothing.

    Where two items of the model stand together, they are sent as one, and no turn is cut off there.
    """
    if items[place].get("role") != "user" or place < 1 or items[place - 1].get("role") != "assistant":
        return False
    alone = place == 1 or items[place - 2].get("role") == "user"
    if not alone or not says_something(items[place]) or not says_something(items[place - 1]):
        return False
    calls = any(is_call(block) or is_server_call(block) for block in blocks_of(items[place - 1]))
    return not calls and not any(map(is_result, blocks_of(items[place])))


def dropped_blocks(item: JsonObject) -> Blocks:
    """Return the blocks that an item once had and that are not sent any more."""
    kept = (item.get(METADATA) or {}).get(DROPPED) or []
    return [entry["block"] for entry in kept]


def put_aside(item: JsonObject, places: set[int], reason: str) -> JsonObject:
    """Return the item without the blocks at *places*, which its `_metadata` keeps."""
    blocks = blocks_of(item)
    metadata = item.get(METADATA) or {}
    gone = [{"block": blocks[place], "reason": reason} for place in sorted(places)]
    return {
        **item,
        "content": [block for place, block in enumerate(blocks) if place not in places],
        METADATA: {**metadata, DROPPED: [*(metadata.get(DROPPED) or []), *gone]},
    }


# Parts of a message as content blocks: images and files in any dialect, and the API's own blocks. A part
# in the API's own form passes unchanged, with every field. What the API cannot read becomes a note in its
# place, so that one attachment never spoils the whole conversation.


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


def to_item(message: JsonObject) -> JsonObject:
    """Return one message in the API's form."""
    role = message["role"]
    if role == "tool":
        return {"role": "user", "content": [_tool_result(message)]}
    if role == "assistant":
        return {"role": role, "content": _assistant_content(message)}
    parts = message.get("multipartContent")
    return {"role": role, "content": [to_block(part) for part in parts] if parts else _text(message)}


def to_messages(item: JsonObject) -> Dicts:
    """Return an item in readable form: one message, and one more for each tool result with other content."""
    if item.get("role") != "user":
        return [_assistant(item) if item.get("role") == "assistant" else _plain(item, blocks_of(item))]
    content = blocks_of(item)
    results = [block for block in (*content, *dropped_blocks(item)) if is_result(block)]
    others = [block for block in content if not is_result(block)]
    messages = [_tool_message(item, block) for block in results]
    return [*messages, _plain(item, others)] if others or not results else messages


def wire_id(call_id: Any) -> str:
    """Return the id of a call as the API takes it; the same id always becomes the same."""
    own = str(call_id or "call")
    clean = _FORBIDDEN.sub("_", own)
    return clean if clean == own else f"{clean}_{sha256(own.encode('utf-8', 'replace')).hexdigest()[:8]}"


def reasoning_of(item: JsonObject) -> str:
    """Return what the model thought, also where it is not sent any more or was cut off."""
    incomplete = (item.get(METADATA) or {}).get("incomplete_blocks") or []
    thoughts = [
        block for block in (*dropped_blocks(item), *blocks_of(item), *incomplete) if is_thinking(block)
    ]
    return "\n\n".join(block["thinking"] for block in thoughts if block.get("thinking"))


def _assistant_content(message: JsonObject) -> Any:
    calls = (message.get("metadata") or {}).get("tool_calls") or ()
    parts = message.get("multipartContent") or ()
    text = _text(message)
    if parts and all(map(_is_own, parts)):
        return [*parts, *map(_tool_use, calls)]
    if not calls:
        return text
    return [*([{"type": "text", "text": text}] if text else []), *map(_tool_use, calls)]


def _is_own(part: JsonObject) -> bool:
    return is_text(part) or is_server_call(part) or is_server_result(part)


def _tool_use(call: JsonObject) -> JsonObject:
    block = _interop.convert_tool_call(call, target=_TARGET, target_formats=[ANTHROPIC_TOOL_USE_FORMAT_ID])
    return {**block, "id": wire_id(block.get("id")), "name": _FORBIDDEN.sub("_", block["name"])}


def _tool_result(message: JsonObject) -> JsonObject:
    metadata = message.get("metadata") or {}
    call_id = wire_id(metadata.get("tool_call_id"))
    call = ToolCall(call_id=call_id, tool_name=metadata.get("tool_name") or "tool", payload={})
    try:
        block = _interop.convert_tool_result(
            message.get("tool_result") or _unstructured(message),
            target=ToolInteropTarget("anthropic", call),
            target_formats=[ANTHROPIC_TOOL_RESULT_FORMAT_ID],
        )
    except ToolError:  # a stranger's structure; its text is there as well
        block = _unstructured(message)
    if block.get("is_error") and not block.get("content"):
        block = {**block, "content": "Error"}  # an error without words is refused
    return {**block, "tool_use_id": call_id}


def _unstructured(message: JsonObject) -> JsonObject:
    parts = message.get("multipartContent")
    content = [to_block(part) for part in parts] if parts else _text(message)
    failed = {"is_error": True} if (message.get("metadata") or {}).get("error") else {}
    return {"type": "tool_result", "content": content, **failed}


def _text(message: JsonObject) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "" if content is None else as_text(content)


def _plain(item: JsonObject, blocks: Blocks) -> JsonObject:
    role = "system" if item.get("role") == "system" else "user"
    message = {"role": role, "content": _joined(blocks), "metadata": dict(item.get(METADATA) or {})}
    if isinstance(item.get("content"), list):
        message["multipartContent"] = blocks
    return message


def _tool_message(item: JsonObject, block: JsonObject) -> JsonObject:
    metadata = {"tool_call_id": block.get("tool_use_id"), **(item.get(METADATA) or {})}
    if block.get("is_error"):
        metadata["error"] = {"type": "tool_failed"}
    text = _interop.inspect_result(block).text
    return {"role": "tool", "content": text, "metadata": metadata, "tool_result": block}


def _assistant(item: JsonObject) -> JsonObject:
    blocks = blocks_of(item)
    message: JsonObject = {
        "role": "assistant",
        "content": _joined(blocks),
        "metadata": {**_about(item, blocks), **(item.get(METADATA) or {})},
    }
    shown = [block for block in blocks if not is_thinking(block) and not is_call(block)]
    if any(not is_text(block) or block.get("citations") for block in shown):
        message["multipartContent"] = shown
    return message


def _about(item: JsonObject, blocks: Blocks) -> JsonObject:
    found = {
        "tool_calls": [_readable_call(block) for block in blocks if is_call(block)],
        "reasoning": reasoning_of(item),
        "server_tools": _server_tools(blocks),
        "citations": [citation for block in blocks for citation in block.get("citations") or ()],
    }
    return {key: value for key, value in found.items() if value}


def _readable_call(block: JsonObject) -> JsonObject:
    if block.get(
        "toolset_name"
    ):  # the computer and the browser: the tool is the set, and what it does an input
        given = block.get("input") or {}
        block = {**block, "name": block["toolset_name"], "input": {"action": block.get("name"), **given}}
    return _interop.convert_tool_call(block, target=_TARGET, target_formats=[OPENAI_CHAT_FUNCTION_FORMAT_ID])


def _server_tools(blocks: Blocks) -> Dicts:
    """Return the calls that the provider ran itself, each with its result if that is there."""
    results = {block.get("tool_use_id"): block for block in blocks if is_server_result(block)}
    tools = []
    for call in filter(is_server_call, blocks):
        tool = {key: call.get(key) for key in ("id", "name", "input")}
        result = results.get(call.get("id"))
        tools.append(tool if result is None else {**tool, "result": result.get("content")})
    return tools


def _joined(blocks: Blocks) -> str:
    return "".join(block["text"] for block in blocks if is_text(block))
