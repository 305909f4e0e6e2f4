"""Readable messages as items of the Responses API."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from agent_core.errors import AgentError, ToolError
from agent_core.interop import (
    OPENAI_RESPONSES_CUSTOM_FORMAT_ID,
    OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID,
    OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
    OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID,
    InspectedCall,
    ToolInteropRegistry,
    ToolInteropTarget,
)
from agent_core.interop.parts import as_text
from openai_responses_provider.kinds import (
    CUSTOM_OUTPUT,
    FUNCTION_OUTPUT,
    Item,
    Items,
    is_output,
    kind_of,
    numbered,
)
from openai_responses_provider.parts import to_part

_interop = ToolInteropRegistry.default()
_TARGET = ToolInteropTarget("openai responses")
_CALLS = (OPENAI_RESPONSES_FUNCTION_FORMAT_ID, OPENAI_RESPONSES_CUSTOM_FORMAT_ID)
_LONGEST_ID = 64


def to_items(message: dict[str, Any]) -> Items:
    """Return a message as items: one, or for calls one each beside what is said."""
    role = message["role"]
    if role == "tool":
        return [_output(message)]
    if role == "assistant":
        return numbered(_assistant(message))
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


def _assistant(message: dict[str, Any]) -> Items:
    metadata = message.get("metadata") or {}
    calls = [_call(call) for call in metadata.get("tool_calls") or ()]
    content: Any = _text(message)
    if not content and metadata.get("refusal"):
        content = [{"type": "refusal", "refusal": metadata["refusal"]}]
    said = [{"type": "message", "role": "assistant", "content": content}] if content or not calls else []
    return [*said, *calls]


def _call(call: dict[str, Any]) -> Item:
    item = _interop.convert_tool_call(call, target=_TARGET, target_formats=_CALLS)
    return {**item, "call_id": wire_id(item.get("call_id"))}


def _output(message: dict[str, Any]) -> Item:
    metadata = message.get("metadata") or {}
    call_id = wire_id(metadata.get("tool_call_id"))
    structured = message.get("tool_result") or _unstructured(message)
    if kind_of(structured) == "mcp_approval_response":
        return dict(structured)
    if is_output(structured):
        return {**structured, "call_id": call_id}
    return _converted(structured, call_id, metadata) or {
        **_unstructured(message),
        "type": _output_type(metadata),
        "call_id": call_id,
    }


def _converted(structured: Any, call_id: str, metadata: dict[str, Any]) -> Item | None:
    call = InspectedCall(call_id=call_id, tool_name=metadata.get("tool_name") or "tool", payload={})
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


def _output_type(metadata: dict[str, Any]) -> str:
    """Return the type of item with which a tool answers, as far as its schema tells."""
    try:
        schema = _interop.inspect_schema(metadata["tool_schema"])
    except (KeyError, AgentError):
        return FUNCTION_OUTPUT
    return CUSTOM_OUTPUT if schema.payload_kind == "text" else FUNCTION_OUTPUT


def _unstructured(message: dict[str, Any]) -> dict[str, Any]:
    parts = message.get("multipartContent")
    return {"type": FUNCTION_OUTPUT, "output": list(map(to_part, parts)) if parts else _text(message)}


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "" if content is None else as_text(content)
