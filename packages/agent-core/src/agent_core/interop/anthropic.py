"""Anthropic Messages: tool_use blocks, tools with an input_schema, and tool_result blocks.

A server_tool_use block is not a call for us: Anthropic runs those itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core.errors import ToolError
from agent_core.interop.formats import (
    ANTHROPIC_TOOL_FORMAT_ID,
    ANTHROPIC_TOOL_RESULT_FORMAT_ID,
    ANTHROPIC_TOOL_USE_FORMAT_ID,
    InspectedSchema,
    ToolCallFormat,
    ToolInteropTarget,
    ToolResultFormat,
    ToolSchemaFormat,
)
from agent_core.interop.parts import Part, read_content, write_parts
from agent_core.interop.wire import (
    decode_object,
    encode_object,
    has_type,
    id_in,
    json_call,
    json_schema,
    lacks_id,
    leftovers,
    name_in,
    need_json,
    with_id,
)
from agent_core.values import ToolCall, ToolResult

if TYPE_CHECKING:
    from agent_core.frozen import JsonObject


def _is_tool_use(value: object) -> bool:
    return has_type(value, "tool_use")


def _inspect_tool_use(block: Any) -> ToolCall:
    return json_call(
        ANTHROPIC_TOOL_USE_FORMAT_ID,
        block,
        name=name_in(block),
        call_id=id_in(block, "id"),
        decoded=decode_object(block.get("input")),
        extra=leftovers(block, "type", "id", "name", "input"),
    )


def _build_tool_use(call: ToolCall) -> JsonObject:
    need_json(call)
    body = {"name": call.tool_name, "input": encode_object(call.payload)}
    return {"type": "tool_use", **with_id("id", call.call_id), **body}


def _tidy_tool_use(call: ToolCall) -> Mapping[str, object]:
    raw: Mapping[str, Any] = call.raw
    if isinstance(raw.get("input"), Mapping) and not lacks_id(raw, "id", call.call_id):
        return raw
    return {**raw, **_build_tool_use(call)}


def _is_tool(value: object) -> bool:
    if not isinstance(value, Mapping) or "input_schema" not in value:
        return False
    return value.get("type") in (None, "custom")


def _inspect_tool(tool: Any) -> InspectedSchema:
    return json_schema(
        ANTHROPIC_TOOL_FORMAT_ID,
        tool,
        body=tool,
        parameters=tool["input_schema"],
        # `strict` stays among the extras: OpenAI's asks more of a schema than Anthropic's does.
        extra=leftovers(tool, "type", "name", "description", "input_schema"),
    )


def _build_tool(schema: InspectedSchema) -> JsonObject:
    need_json(schema)
    built: JsonObject = {"name": schema.name}
    if schema.description:
        built["description"] = schema.description
    return {**built, "input_schema": {"type": "object", **schema.parameters}}


def _is_tool_result(value: Any) -> bool:
    # The platform's own result has the same type and always a text.
    return has_type(value, "tool_result") and "text" not in value


def _inspect_tool_result(block: Any) -> ToolResult:
    text, parts = read_content(block.get("content"))
    return ToolResult(
        text=text,
        call_id=id_in(block, "tool_use_id"),
        is_error=block.get("is_error") is True,
        parts=parts,
        raw=block,
        format_id=ANTHROPIC_TOOL_RESULT_FORMAT_ID,
    )


def _build_tool_result(result: ToolResult, _target: ToolInteropTarget) -> JsonObject:
    if result.call_id is None:
        raise ToolError(None, "a tool_result block needs the id of its call: give the target a call")
    built = {"type": "tool_result", "tool_use_id": result.call_id, "content": _content(result)}
    return {**built, "is_error": True} if result.is_error else built


def _content(result: ToolResult) -> object:
    if not result.parts:
        return result.text
    # A block of empty text is refused over there.
    said = [part for part in result.parts if part.get("text") != ""]
    own = result.format_id == ANTHROPIC_TOOL_RESULT_FORMAT_ID
    return write_parts(said, _write_part, keep_unknown=own)


def _write_part(part: Part) -> Part:
    if part["type"] == "text":
        return part
    if "url" in part:
        return {"type": "image", "source": {"type": "url", "url": part["url"]}}
    source = {"type": "base64", "media_type": part["mime_type"], "data": part["data"]}
    return {"type": "image", "source": source}


def _tidy_tool_result(result: ToolResult) -> Mapping[str, object]:
    raw: Mapping[str, Any] = result.raw
    missing = lacks_id(raw, "tool_use_id", result.call_id)
    return {**raw, "tool_use_id": result.call_id} if missing else raw


CALL_FORMATS = (
    ToolCallFormat(
        id=ANTHROPIC_TOOL_USE_FORMAT_ID,
        matches=_is_tool_use,
        inspect=_inspect_tool_use,
        build=_build_tool_use,
        tidy=_tidy_tool_use,
    ),
)
SCHEMA_FORMATS = (
    ToolSchemaFormat(id=ANTHROPIC_TOOL_FORMAT_ID, matches=_is_tool, inspect=_inspect_tool, build=_build_tool),
)
RESULT_FORMATS = (
    ToolResultFormat(
        id=ANTHROPIC_TOOL_RESULT_FORMAT_ID,
        matches=_is_tool_result,
        inspect=_inspect_tool_result,
        build=_build_tool_result,
        tidy=_tidy_tool_result,
    ),
)
