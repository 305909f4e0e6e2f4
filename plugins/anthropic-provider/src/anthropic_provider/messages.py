"""Messages as items of the Messages API, and back.

One message is one item, whatever the API wants to be sent: a system message has an item of its own, and
so has each tool result. `anthropic_provider.sending` makes of them what the API takes.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from agent_core import ToolError
from agent_core.interop import (
    ANTHROPIC_TOOL_RESULT_FORMAT_ID,
    ANTHROPIC_TOOL_USE_FORMAT_ID,
    OPENAI_CHAT_FUNCTION_FORMAT_ID,
    InspectedCall,
    ToolInteropRegistry,
    ToolInteropTarget,
)
from agent_core.interop.parts import as_text
from anthropic_provider.kinds import (
    METADATA,
    Blocks,
    blocks_of,
    dropped_blocks,
    is_call,
    is_result,
    is_server_call,
    is_server_result,
    is_text,
    is_thinking,
)
from anthropic_provider.parts import to_block

Dicts = list[dict[str, Any]]

_interop = ToolInteropRegistry.default()
_TARGET = ToolInteropTarget("anthropic")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


def to_item(message: dict[str, Any]) -> dict[str, Any]:
    """Return one message in the API's form."""
    role = message["role"]
    if role == "tool":
        return {"role": "user", "content": [_tool_result(message)]}
    if role == "assistant":
        return {"role": role, "content": _assistant_content(message)}
    parts = message.get("multipartContent")
    return {"role": role, "content": [to_block(part) for part in parts] if parts else _text(message)}


def to_messages(item: dict[str, Any]) -> Dicts:
    """Return an item in readable form: one message, or one more for each tool result beside other content."""
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


def reasoning_of(item: dict[str, Any]) -> str:
    """Return what the model thought, also where it is not sent any more or was cut off."""
    incomplete = (item.get(METADATA) or {}).get("incomplete_blocks") or []
    thoughts = [
        block for block in (*dropped_blocks(item), *blocks_of(item), *incomplete) if is_thinking(block)
    ]
    return "\n\n".join(block["thinking"] for block in thoughts if block.get("thinking"))


def _assistant_content(message: dict[str, Any]) -> Any:
    calls = (message.get("metadata") or {}).get("tool_calls") or ()
    parts = message.get("multipartContent") or ()
    text = _text(message)
    if parts and all(map(_is_own, parts)):
        return [*parts, *map(_tool_use, calls)]
    if not calls:
        return text
    return [*([{"type": "text", "text": text}] if text else []), *map(_tool_use, calls)]


def _is_own(part: dict[str, Any]) -> bool:
    return is_text(part) or is_server_call(part) or is_server_result(part)


def _tool_use(call: dict[str, Any]) -> dict[str, Any]:
    block = _interop.convert_tool_call(call, target=_TARGET, target_formats=[ANTHROPIC_TOOL_USE_FORMAT_ID])
    return {**block, "id": wire_id(block.get("id")), "name": _FORBIDDEN.sub("_", block["name"])}


def _tool_result(message: dict[str, Any]) -> dict[str, Any]:
    metadata = message.get("metadata") or {}
    call_id = wire_id(metadata.get("tool_call_id"))
    call = InspectedCall(call_id=call_id, tool_name=metadata.get("tool_name") or "tool", payload={})
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


def _unstructured(message: dict[str, Any]) -> dict[str, Any]:
    parts = message.get("multipartContent")
    content = [to_block(part) for part in parts] if parts else _text(message)
    failed = {"is_error": True} if (message.get("metadata") or {}).get("error") else {}
    return {"type": "tool_result", "content": content, **failed}


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "" if content is None else as_text(content)


def _plain(item: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
    role = "system" if item.get("role") == "system" else "user"
    message = {"role": role, "content": _joined(blocks), "metadata": dict(item.get(METADATA) or {})}
    if isinstance(item.get("content"), list):
        message["multipartContent"] = blocks
    return message


def _tool_message(item: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    metadata = {"tool_call_id": block.get("tool_use_id"), **(item.get(METADATA) or {})}
    if block.get("is_error"):
        metadata["error"] = {"type": "tool_failed"}
    text = _interop.inspect_result(block).text
    return {"role": "tool", "content": text, "metadata": metadata, "tool_result": block}


def _assistant(item: dict[str, Any]) -> dict[str, Any]:
    blocks = blocks_of(item)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": _joined(blocks),
        "metadata": {**_about(item, blocks), **(item.get(METADATA) or {})},
    }
    shown = [block for block in blocks if not is_thinking(block) and not is_call(block)]
    if any(not is_text(block) or block.get("citations") for block in shown):
        message["multipartContent"] = shown
    return message


def _about(item: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
    found = {
        "tool_calls": [_readable_call(block) for block in blocks if is_call(block)],
        "reasoning": reasoning_of(item),
        "server_tools": _server_tools(blocks),
        "citations": [citation for block in blocks for citation in block.get("citations") or ()],
    }
    return {key: value for key, value in found.items() if value}


def _readable_call(block: dict[str, Any]) -> dict[str, Any]:
    return _interop.convert_tool_call(block, target=_TARGET, target_formats=[OPENAI_CHAT_FUNCTION_FORMAT_ID])


def _server_tools(blocks: Blocks) -> Dicts:
    """Return the calls that the provider ran itself, each with its result if that is there."""
    results = {block.get("tool_use_id"): block for block in blocks if is_server_result(block)}
    tools = []
    for call in filter(is_server_call, blocks):
        told = {key: call.get(key) for key in ("id", "name", "input")}
        result = results.get(call.get("id"))
        tools.append(told if result is None else {**told, "result": result.get("content")})
    return tools


def _joined(blocks: Blocks) -> str:
    return "".join(block["text"] for block in blocks if is_text(block))
