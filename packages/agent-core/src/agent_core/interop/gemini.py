"""Gemini: functionCall parts, function declarations, and functionResponse parts.

A call may also come bare, as ``{"name", "args"}``; it is sent as a part. Declarations describe
their arguments either in JSON Schema (``parametersJsonSchema``, which is what is written here) or in
OpenAPI's older dialect (``parameters``), which is translated when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core.errors import ToolError
from agent_core.interop.core_text import read_outcome
from agent_core.interop.formats import (
    GEMINI_FUNCTION_CALL_FORMAT_ID,
    GEMINI_FUNCTION_DECLARATION_FORMAT_ID,
    GEMINI_FUNCTION_RESPONSE_FORMAT_ID,
    InspectedSchema,
    ToolCallFormat,
    ToolInteropTarget,
    ToolResultFormat,
    ToolSchemaFormat,
)
from agent_core.interop.parts import Part, beside_text, is_text, write_parts
from agent_core.interop.wire import (
    decode_object,
    encode_object,
    id_in,
    json_call,
    json_schema,
    kind_of,
    lacks_id,
    leftovers,
    name_in,
    need_json,
    with_id,
)
from agent_core.values import ToolCall, ToolResult

if TYPE_CHECKING:
    from agent_core.frozen import JsonObject

# OpenAPI's dialect of schemas, as Gemini's older ``parameters`` field uses it, in JSON Schema.

_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_NAMED_SCHEMAS = ("properties",)
_LISTED_SCHEMAS = ("anyOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties")


def as_json_schema(schema: object) -> object:
    """Return *schema* with types in lower case and ``nullable`` as the type "null".

    JSON Schema passes through unchanged, so that nobody has to know which of the two it is.
    """
    if not isinstance(schema, Mapping):
        return schema
    translated = {key: _translate(key, item) for key, item in schema.items() if key != "nullable"}
    kind = translated.get("type")
    if schema.get("nullable") is True and isinstance(kind, str):
        translated["type"] = [kind, "null"]
    return translated


def _translate(key: str, value: object) -> object:
    if key == "type" and isinstance(value, str) and value in _TYPES:
        return value.lower()
    if key in _NAMED_SCHEMAS and isinstance(value, Mapping):
        return {name: as_json_schema(item) for name, item in value.items()}
    if key in _LISTED_SCHEMAS and isinstance(value, (list, tuple)):
        return [as_json_schema(item) for item in value]
    return as_json_schema(value) if key in _SCHEMAS else value


# Both spellings are on the wire: the API takes either.
_JSON_SCHEMA_FIELDS = ("parametersJsonSchema", "parameters_json_schema")
# Fields that other formats have and a declaration has not.
_FOREIGN_FIELDS = frozenset({"type", "function", "custom", "input_schema", "inputSchema"})


def _is_call(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return isinstance(value.get("functionCall"), Mapping) or _is_bare_call(value)


def _is_bare_call(value: Mapping[str, object]) -> bool:
    return "args" in value and "type" not in value and "functionCall" not in value


def _inspect_call(value: Any) -> ToolCall:
    bare = _is_bare_call(value)
    call = value if bare else value["functionCall"]
    inner = leftovers(call, "name", "args", "id")
    return json_call(
        GEMINI_FUNCTION_CALL_FORMAT_ID,
        value,
        name=name_in(call, "name" if bare else "functionCall.name"),
        call_id=id_in(call, "id"),
        decoded=decode_object(call.get("args")),
        extra=inner if bare else leftovers(value, "functionCall", functionCall=inner),
    )


def _build_call(call: ToolCall) -> JsonObject:
    need_json(call)
    body = {"name": call.tool_name, "args": encode_object(call.payload)}
    return {"functionCall": {**with_id("id", call.call_id), **body}}


def _tidy_call(call: ToolCall) -> Mapping[str, object]:
    raw: Mapping[str, Any] = call.raw
    bare = _is_bare_call(raw)
    inner = raw if bare else raw["functionCall"]
    is_loose = bare or not isinstance(inner.get("args", {}), Mapping)
    if not is_loose and not lacks_id(inner, "id", call.call_id):
        return raw
    built = _build_call(call)["functionCall"]
    return {**({} if bare else raw), "functionCall": {**inner, **built}}


def _is_declaration(value: object) -> bool:
    return isinstance(value, Mapping) and "name" in value and not (_FOREIGN_FIELDS & value.keys())


def _inspect_declaration(declaration: Any) -> InspectedSchema:
    return json_schema(
        GEMINI_FUNCTION_DECLARATION_FORMAT_ID,
        declaration,
        body=declaration,
        parameters=_parameters(declaration),
        extra=leftovers(declaration, "name", "description", "parameters", *_JSON_SCHEMA_FIELDS),
    )


def _parameters(declaration: Mapping[str, object]) -> object:
    for field in _JSON_SCHEMA_FIELDS:
        if declaration.get(field) is not None:
            return declaration[field]
    return as_json_schema(declaration.get("parameters"))


def _build_declaration(schema: InspectedSchema) -> JsonObject:
    need_json(schema)
    built: JsonObject = {"name": schema.name}
    if schema.description:
        built["description"] = schema.description
    return {**built, "parametersJsonSchema": schema.parameters}


def _is_response(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("functionResponse"), Mapping)


def _inspect_response(value: Any) -> ToolResult:
    body = value["functionResponse"]
    response = body.get("response", {})
    if not isinstance(response, Mapping):
        raise ToolError(None, f"'functionResponse.response' must be an object, got {kind_of(response)}")
    text, own_parts, failed = read_outcome(response) if response else ("", (), False)
    return ToolResult(
        text=text,
        call_id=id_in(body, "id"),
        is_error=failed,
        parts=own_parts or beside_text(text, body.get("parts")),
        raw=value,
        format_id=GEMINI_FUNCTION_RESPONSE_FORMAT_ID,
    )


def _build_response(result: ToolResult, target: ToolInteropTarget) -> JsonObject:
    if target.call is None:
        raise ToolError(None, "a functionResponse needs the name of its tool: give the target a call")
    body = {
        **with_id("id", result.call_id),
        "name": target.call.tool_name,
        "response": {"error" if result.is_error else "output": result.text},
    }
    others = [part for part in result.parts if not is_text(part)]
    own = result.format_id == GEMINI_FUNCTION_RESPONSE_FORMAT_ID
    media = {"parts": write_parts(others, _write_part, keep_unknown=own)} if others else {}
    return {"functionResponse": {**body, **media}}


def _write_part(part: Part) -> Part | None:
    if "url" in part:  # the API takes bytes here, not addresses
        return None
    return {"inlineData": {"mimeType": part["mime_type"], "data": part["data"]}}


def _tidy_response(result: ToolResult) -> Mapping[str, object]:
    raw: Mapping[str, Any] = result.raw
    body = raw["functionResponse"]
    if not lacks_id(body, "id", result.call_id):
        return raw
    return {**raw, "functionResponse": {**body, "id": result.call_id}}


CALL_FORMATS = (
    ToolCallFormat(
        id=GEMINI_FUNCTION_CALL_FORMAT_ID,
        matches=_is_call,
        inspect=_inspect_call,
        build=_build_call,
        tidy=_tidy_call,
    ),
)
SCHEMA_FORMATS = (
    ToolSchemaFormat(
        id=GEMINI_FUNCTION_DECLARATION_FORMAT_ID,
        matches=_is_declaration,
        inspect=_inspect_declaration,
        build=_build_declaration,
    ),
)
RESULT_FORMATS = (
    ToolResultFormat(
        id=GEMINI_FUNCTION_RESPONSE_FORMAT_ID,
        matches=_is_response,
        inspect=_inspect_response,
        build=_build_response,
        tidy=_tidy_response,
    ),
)
