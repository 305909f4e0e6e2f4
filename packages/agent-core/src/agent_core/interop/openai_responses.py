"""OpenAI Responses: the items of function and custom tools, and the items that answer them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.errors import ToolError
from agent_core.interop.formats import (
    OPENAI_RESPONSES_CUSTOM_FORMAT_ID,
    OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID,
    OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
    OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID,
    InspectedSchema,
    ToolCallFormat,
    ToolInteropTarget,
    ToolResultFormat,
    ToolSchemaFormat,
)
from agent_core.interop.parts import Part, data_url, read_content, write_parts
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
    from collections.abc import Callable, Mapping

    from agent_core.frozen import JsonObject


def _has_type(name: str) -> Callable[[object], bool]:
    return partial(has_type, name=name)


def _inspect_function(item: Any) -> ToolCall:
    return json_call(
        OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
        item,
        name=name_in(item),
        call_id=id_in(item, "call_id"),
        decoded=decode(item.get("arguments")),
        extra=leftovers(item, "type", "call_id", "name", "arguments"),
    )


def _build_function(call: ToolCall) -> JsonObject:
    need_json(call)
    body = {"name": call.tool_name, "arguments": encode(call.payload)}
    return {"type": "function_call", **with_id("call_id", call.call_id), **body}


def _tidy_function(call: ToolCall) -> Mapping[str, object]:
    raw: Mapping[str, Any] = call.raw
    if isinstance(raw.get("arguments"), str) and not lacks_id(raw, "call_id", call.call_id):
        return raw
    return {**raw, **_build_function(call)}


def _inspect_custom(item: Any) -> ToolCall:
    return text_call(
        OPENAI_RESPONSES_CUSTOM_FORMAT_ID,
        item,
        body=item,
        call_id=id_in(item, "call_id"),
        extra=leftovers(item, "type", "call_id", "name", "input"),
    )


def _build_custom(call: ToolCall) -> JsonObject:
    need_text(call)
    body = {"name": call.tool_name, "input": call.payload}
    return {"type": "custom_tool_call", **with_id("call_id", call.call_id), **body}


def _tidy_custom(call: ToolCall) -> Mapping[str, object]:
    raw: Mapping[str, Any] = call.raw
    if "input" in raw and not lacks_id(raw, "call_id", call.call_id):
        return raw
    return {**raw, **_build_custom(call)}


def _is_function_schema(value: Any) -> bool:
    return has_type(value, "function") and "function" not in value and "name" in value


def _inspect_function_schema(schema: Any) -> InspectedSchema:
    return json_schema(
        OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
        schema,
        body=schema,
        parameters=schema.get("parameters"),
        strict=schema.get("strict") is True,
        extra=leftovers(schema, "type", "name", "description", "parameters", "strict"),
    )


def _build_function_schema(schema: InspectedSchema) -> JsonObject:
    need_json(schema)
    built: JsonObject = {"type": "function", "name": schema.name}
    if schema.description:
        built["description"] = schema.description
    # Unlike the other APIs, this one treats a tool as strict unless the field says otherwise.
    strict = bool(schema.payload_metadata.get("strict"))
    return {**built, "parameters": schema.parameters, "strict": strict}


def _is_custom_schema(value: Any) -> bool:
    # Anthropic's own tools may say "custom" too; theirs have an input_schema.
    if not has_type(value, "custom") or "input_schema" in value:
        return False
    return "custom" not in value and "name" in value


def _inspect_custom_schema(schema: Any) -> InspectedSchema:
    extra = leftovers(schema, "type", "name", "description", "format")
    return text_schema(OPENAI_RESPONSES_CUSTOM_FORMAT_ID, schema, body=schema, extra=extra)


def _build_custom_schema(schema: InspectedSchema) -> JsonObject:
    need_text(schema)
    built: JsonObject = {"type": "custom", "name": schema.name}
    if schema.description:
        built["description"] = schema.description
    if (grammar := schema.payload_metadata.get("format")) is not None:
        built["format"] = grammar
    return built


def _write_part(part: Part) -> Part:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    return {"type": "input_image", "image_url": data_url(part)}


def _inspect_output(format_id: str, item: Any) -> ToolResult:
    text, parts = read_content(item.get("output"))
    return ToolResult(text=text, call_id=id_in(item, "call_id"), parts=parts, raw=item, format_id=format_id)


def _build_output(
    format_id: str, item_type: str, result: ToolResult, _target: ToolInteropTarget
) -> JsonObject:
    if result.call_id is None:
        raise ToolError(None, "an output item needs the id of its call: give the target a call")
    output: Any = result.text
    if result.parts:
        output = write_parts(result.parts, _write_part, keep_unknown=result.format_id == format_id)
    return {"type": item_type, "call_id": result.call_id, "output": output}


def _tidy_output(result: ToolResult) -> Mapping[str, object]:
    raw: Mapping[str, Any] = result.raw
    return {**raw, "call_id": result.call_id} if lacks_id(raw, "call_id", result.call_id) else raw


def _output_format(format_id: str, item_type: str) -> ToolResultFormat:
    return ToolResultFormat(
        id=format_id,
        matches=_has_type(item_type),
        inspect=partial(_inspect_output, format_id),
        build=partial(_build_output, format_id, item_type),
        tidy=_tidy_output,
    )


CALL_FORMATS = (
    ToolCallFormat(
        id=OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
        matches=_has_type("function_call"),
        inspect=_inspect_function,
        build=_build_function,
        tidy=_tidy_function,
    ),
    ToolCallFormat(
        id=OPENAI_RESPONSES_CUSTOM_FORMAT_ID,
        matches=_has_type("custom_tool_call"),
        inspect=_inspect_custom,
        build=_build_custom,
        tidy=_tidy_custom,
    ),
)
SCHEMA_FORMATS = (
    ToolSchemaFormat(
        id=OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
        matches=_is_function_schema,
        inspect=_inspect_function_schema,
        build=_build_function_schema,
    ),
    ToolSchemaFormat(
        id=OPENAI_RESPONSES_CUSTOM_FORMAT_ID,
        matches=_is_custom_schema,
        inspect=_inspect_custom_schema,
        build=_build_custom_schema,
    ),
)
RESULT_FORMATS = (
    _output_format(OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID, "function_call_output"),
    _output_format(OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID, "custom_tool_call_output"),
)
