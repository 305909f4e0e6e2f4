"""OpenAI Chat Completions: function and custom tools, and the message of role "tool".

The function call is also the platform's own default shape, and many compatible servers write it
loosely: arguments as an object and a missing ``type`` are read, and put right when they are sent.
A custom call may be flat, as the platform keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core.errors import ToolError
from agent_core.interop.formats import (
    OPENAI_CHAT_CUSTOM_FORMAT_ID,
    OPENAI_CHAT_FUNCTION_FORMAT_ID,
    OPENAI_CHAT_TOOL_RESULT_FORMAT_ID,
    InspectedSchema,
    ToolCallFormat,
    ToolInteropTarget,
    ToolResultFormat,
    ToolSchemaFormat,
)
from agent_core.interop.parts import read_content
from agent_core.interop.wire import (
    decode,
    encode,
    has_type,
    id_in,
    json_call,
    json_schema,
    lacks_id,
    leftovers,
    name_in,
    need_json,
    need_text,
    text_call,
    text_schema,
    with_id,
)
from agent_core.values import ToolCall, ToolResult

if TYPE_CHECKING:
    from agent_core.frozen import JsonObject


def _is_function(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and value.get("type") in (None, "function")
        and isinstance(value.get("function"), Mapping)
    )


def _inspect_function(call: Any) -> ToolCall:
    function = call["function"]
    return json_call(
        OPENAI_CHAT_FUNCTION_FORMAT_ID,
        call,
        name=name_in(function, "function.name"),
        call_id=id_in(call, "id"),
        decoded=decode(function.get("arguments")),
        extra=leftovers(call, "id", "type", "function", function=leftovers(function, "name", "arguments")),
    )


def _build_function(call: ToolCall) -> JsonObject:
    need_json(call)
    function = {"name": call.tool_name, "arguments": encode(call.payload)}
    return {**with_id("id", call.call_id), "type": "function", "function": function}


def _tidy_function(call: ToolCall) -> Mapping[str, object]:
    raw: Mapping[str, Any] = call.raw
    function = raw["function"]
    is_loose = not raw.get("type") or not isinstance(function.get("arguments"), str)
    if not is_loose and not lacks_id(raw, "id", call.call_id):
        return raw
    built = _build_function(call)
    return {**raw, **built, "function": {**function, **built["function"]}}


def _is_custom(value: Any) -> bool:
    if not has_type(value, "custom"):
        return False
    return isinstance(value.get("custom"), Mapping) or "name" in value or "input" in value


def _inspect_custom(call: Any) -> ToolCall:
    body = call.get("custom")
    if isinstance(body, Mapping):
        extra = leftovers(call, "id", "type", "custom", custom=leftovers(body, "name", "input"))
    else:
        body, extra = call, leftovers(call, "id", "type", "name", "input")
    return text_call(OPENAI_CHAT_CUSTOM_FORMAT_ID, call, body=body, call_id=id_in(call, "id"), extra=extra)


def _build_custom(call: ToolCall) -> JsonObject:
    need_text(call)
    custom = {"name": call.tool_name, "input": call.payload}
    return {**with_id("id", call.call_id), "type": "custom", "custom": custom}


def _tidy_custom(call: ToolCall) -> Mapping[str, object]:
    raw: Mapping[str, Any] = call.raw
    nested = raw["custom"] if isinstance(raw.get("custom"), Mapping) else {}
    if "input" in nested and not lacks_id(raw, "id", call.call_id):
        return raw
    built = _build_custom(call)
    return {**leftovers(raw, "name", "input"), **built, "custom": {**nested, **built["custom"]}}


def _inspect_function_schema(schema: Any) -> InspectedSchema:
    function = schema["function"]
    inner = leftovers(function, "name", "description", "parameters", "strict")
    return json_schema(
        OPENAI_CHAT_FUNCTION_FORMAT_ID,
        schema,
        body=function,
        parameters=function.get("parameters"),
        strict=function.get("strict") is True,
        extra=leftovers(schema, "type", "function", function=inner),
    )


def _build_function_schema(schema: InspectedSchema) -> JsonObject:
    need_json(schema)
    function: JsonObject = {"name": schema.name}
    if schema.description:
        function["description"] = schema.description
    function["parameters"] = schema.parameters
    if schema.payload_metadata.get("strict"):
        function["strict"] = True
    return {"type": "function", "function": function}


def _tidy_function_schema(schema: InspectedSchema) -> Mapping[str, object]:
    raw: Mapping[str, Any] = schema.raw
    return raw if raw.get("type") else {**raw, "type": "function"}


def _is_custom_schema(value: Any) -> bool:
    return has_type(value, "custom") and isinstance(value.get("custom"), Mapping)


def _inspect_custom_schema(schema: Any) -> InspectedSchema:
    custom = schema["custom"]
    inner = leftovers(custom, "name", "description", "format")
    return text_schema(
        OPENAI_CHAT_CUSTOM_FORMAT_ID,
        schema,
        body=custom,
        extra=leftovers(schema, "type", "custom", custom=inner),
    )


def _build_custom_schema(schema: InspectedSchema) -> JsonObject:
    need_text(schema)
    custom: JsonObject = {"name": schema.name}
    if schema.description:
        custom["description"] = schema.description
    if (grammar := schema.payload_metadata.get("format")) is not None:
        custom["format"] = _nested_grammar(grammar)
    return {"type": "custom", "custom": custom}


def _nested_grammar(text_format: Mapping[str, object]) -> JsonObject:
    if text_format.get("type") != "grammar":
        return dict(text_format)
    return {"type": "grammar", "grammar": leftovers(text_format, "type")}


def _is_tool_message(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("role") == "tool" and "content" in value


def _inspect_tool_message(message: Any) -> ToolResult:
    text, parts = read_content(message["content"])
    return ToolResult(
        text=text,
        call_id=id_in(message, "tool_call_id"),
        parts=parts,
        raw=message,
        format_id=OPENAI_CHAT_TOOL_RESULT_FORMAT_ID,
    )


def _build_tool_message(result: ToolResult, _target: ToolInteropTarget) -> JsonObject:
    if result.parts:
        raise ToolError(None, "a tool message carries text alone")
    if result.call_id is None:
        raise ToolError(None, "a tool message needs the id of its call: give the target a call")
    return {"role": "tool", "tool_call_id": result.call_id, "content": result.text}


def _tidy_tool_message(result: ToolResult) -> Mapping[str, object]:
    raw: Mapping[str, Any] = result.raw
    missing = lacks_id(raw, "tool_call_id", result.call_id)
    return {**raw, "tool_call_id": result.call_id} if missing else raw


CALL_FORMATS = (
    ToolCallFormat(
        id=OPENAI_CHAT_FUNCTION_FORMAT_ID,
        matches=_is_function,
        inspect=_inspect_function,
        build=_build_function,
        tidy=_tidy_function,
    ),
    ToolCallFormat(
        id=OPENAI_CHAT_CUSTOM_FORMAT_ID,
        matches=_is_custom,
        inspect=_inspect_custom,
        build=_build_custom,
        tidy=_tidy_custom,
    ),
)
SCHEMA_FORMATS = (
    ToolSchemaFormat(
        id=OPENAI_CHAT_FUNCTION_FORMAT_ID,
        matches=_is_function,
        inspect=_inspect_function_schema,
        build=_build_function_schema,
        tidy=_tidy_function_schema,
    ),
    ToolSchemaFormat(
        id=OPENAI_CHAT_CUSTOM_FORMAT_ID,
        matches=_is_custom_schema,
        inspect=_inspect_custom_schema,
        build=_build_custom_schema,
    ),
)
RESULT_FORMATS = (
    ToolResultFormat(
        id=OPENAI_CHAT_TOOL_RESULT_FORMAT_ID,
        matches=_is_tool_message,
        inspect=_inspect_tool_message,
        build=_build_tool_message,
        tidy=_tidy_tool_message,
    ),
)
