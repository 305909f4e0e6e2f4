"""Reading wire values: fields, JSON arguments, freeform text, and the calls and schemas made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_core.encoding import parse
from agent_core.errors import ToolError
from agent_core.frozen import JsonObject, thaw
from agent_core.interop.formats import InspectedSchema
from agent_core.values import JSON_OBJECT, PLAIN_TEXT, ToolCall

# Reading single fields of a wire value; errors name the field and the kind found, never its value.

_SHOWN_KEYS = 12
_SHOWN_LENGTH = 40


def kind_of(value: object) -> str:
    """Say what *value* is in the words of JSON: "a list", "an object", "nothing"."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def outline(value: object) -> str:
    """Say what *value* looks like without telling anything that is in it."""
    if not isinstance(value, Mapping):
        return kind_of(value)
    if not value:
        return "an object without keys"
    keys = [repr(str(key)[:_SHOWN_LENGTH]) for key in value]
    shown = ", ".join(keys[:_SHOWN_KEYS])
    return f"an object with the keys {shown}" + (", …" if len(keys) > _SHOWN_KEYS else "")


def has_type(value: object, name: str) -> bool:
    return isinstance(value, (dict, Mapping)) and value.get("type") == name


def name_in(value: Mapping[str, object], field: str = "name") -> str:
    """Return the tool's name.

    Raises:
        ToolError: If it is missing, blank or no text.
    """
    name = value.get("name")
    if isinstance(name, str) and name.strip():
        return name
    found = "blank text" if isinstance(name, str) else kind_of(name)
    raise ToolError(None, f"{field!r} must be the name of a tool, got {found}")


def id_in(value: Mapping[str, object], field: str) -> str | None:
    """Return the id under *field*; an empty one is none.

    Raises:
        ToolError: If it is not text: a result that misquotes the id answers no call.
    """
    found = value.get(field)
    if found is None or isinstance(found, str):
        return found or None
    raise ToolError(None, f"{field!r} must be text, got {kind_of(found)}")


def text_in(value: Mapping[str, object], field: str) -> str:
    """Return the text under *field*, or "" when there is none.

    Raises:
        ToolError: If something else is there.
    """
    found = value.get(field)
    if found is None or isinstance(found, str):
        return found or ""
    raise ToolError(None, f"{field!r} must be text, got {kind_of(found)}")


def leftovers(value: Mapping[str, object], *known: str, **inner: JsonObject) -> JsonObject:
    """Return the fields that are not *known*, and those of inner objects under the inner's name."""
    outer = {key: item for key, item in value.items() if key not in known}
    return outer | {key: item for key, item in inner.items() if item}


def with_id(field: str, call_id: str | None) -> JsonObject:
    """Return the id as a field, or no field: ids are never invented here."""
    return {} if call_id is None else {field: call_id}


def lacks_id(raw: Mapping[str, object], field: str, call_id: str | None) -> bool:
    """Whether *raw* has no id of its own although one is known."""
    return call_id is not None and not raw.get(field)


# The arguments of a call: decoded where they are a JSON object, described where they are not.
#
# Nothing is ever repaired. Arguments with a problem keep their text, so that the model can be shown
# what it wrote, and so that history carries them faithfully from one provider to the next.

INVALID_JSON = "INVALID_JSON"
"""Where formats that only take objects carry broken text; the key that Anthropic's pages propose."""

MAX_DEPTH = 200
"""How deep arguments may nest; deeper ones would exhaust the stack of whoever walks them."""

# From here on a number may exceed 64 bits, and the fast decoder would round it without a word.
_LONG_NUMBER = re.compile(r"\d{19}")

# A constant counts only outside of strings, so strings are matched first and skipped.
_STRINGS_AND_CONSTANTS = re.compile(r'"(?:\\.|[^"\\])*"|-?Infinity|NaN')


def decode(arguments: object) -> tuple[object, str | None]:
    """Return the arguments as a dict of the caller's own, and None; or their text, and the problem."""
    if arguments is None:
        return {}, None
    if isinstance(arguments, str):
        return _decode_text(arguments)
    if isinstance(arguments, Mapping):
        return thaw(dict(arguments)), None
    return encode(arguments), _not_an_object(arguments)


def decode_object(arguments: object) -> tuple[object, str | None]:
    """Decode for a format whose arguments are an object, where broken text travels in an envelope."""
    if isinstance(arguments, Mapping) and set(arguments) == {INVALID_JSON}:
        text = arguments[INVALID_JSON]
        payload, problem = decode(text)
        if isinstance(text, str) and problem is not None:
            return payload, problem
    return decode(arguments)


def encode(payload: object) -> str:
    """Return arguments as JSON text; text, which is broken arguments, as it is."""
    if isinstance(payload, str):
        return payload
    text = json.dumps(thaw(payload), ensure_ascii=False, separators=(",", ":"), default=str)
    # A lone surrogate is JSON only while it is escaped: no UTF-8 can carry it.
    return text if _is_unicode(text) else json.dumps(thaw(payload), separators=(",", ":"), default=str)


def encode_object(payload: Any) -> JsonObject:
    """Return arguments as an object; broken ones in their envelope."""
    return {INVALID_JSON: payload} if isinstance(payload, str) else payload


def _decode_text(text: str) -> tuple[object, str | None]:
    if not text.strip():
        return {}, None
    might_be_deep = text.count("{") + text.count("[") > MAX_DEPTH
    try:
        value = json.loads(text) if _LONG_NUMBER.search(text) else parse(text)
        _refuse_constants(text)
    except (ValueError, RecursionError) as error:
        is_too_deep = might_be_deep and (isinstance(error, RecursionError) or "depth" in str(error))
        return text, _TOO_DEEP if is_too_deep else f"The arguments are not valid JSON: {error}."
    if not isinstance(value, dict):
        return text, _not_an_object(value)
    if might_be_deep and is_deep(value):
        return text, _TOO_DEEP
    return value, None


def _refuse_constants(text: str) -> None:
    """Raise for the constants that Python, unlike JSON, takes for numbers."""
    if "NaN" in text or "Infinity" in text:
        for found in _STRINGS_AND_CONSTANTS.finditer(text):
            if not found[0].startswith('"'):
                raise json.JSONDecodeError(f"{found[0]} is not a JSON value", text, found.start())


def is_deep(value: object) -> bool:
    """Say whether JSON data is nested more than `MAX_DEPTH` levels deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value
    return [item for item in items if isinstance(item, (dict, list))]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_an_object(value: object) -> str:
    return f"The arguments must be a JSON object, got {kind_of(value)}."


_TOO_DEEP = f"The arguments are nested too deeply: at most {MAX_DEPTH} levels are read."


# Text tools on wires that only know JSON arguments.
#
# A tool that takes freeform text becomes a tool with one required property, ``input``, whose
# description carries the grammar, if any, as advice; a call of it becomes ``{"input": text}``. Both
# ways back exist. A schema is recognised by that description. A call has no such sign, since an
# ordinary tool may also take one ``input``: it is unwrapped only for a format, or by a caller, that
# wants text.

INPUT = "input"
WRAPPED_TEXT = "wrapped_text"
"""The key of `payload_metadata` that remembers how the text was formatted before it was wrapped."""

_ADVICE = "The whole input of the tool, as plain text."
_GRAMMAR = re.compile(re.escape(_ADVICE) + r" It must follow this (\w+) grammar:\n(.*)", re.DOTALL)


def wrap_call(call: ToolCall) -> ToolCall:
    """Return a text call as the JSON call ``{"input": text}``."""
    return replace(
        call,
        payload={INPUT: call.payload},
        payload_kind="json",
        payload_format=JSON_OBJECT,
        payload_metadata={**call.payload_metadata, WRAPPED_TEXT: call.payload_format},
    )


def unwrap_call(call: ToolCall) -> ToolCall | None:
    """Return a JSON call ``{"input": text}`` as a text call, or None for any other payload."""
    payload = call.payload
    if not isinstance(payload, Mapping) or set(payload) != {INPUT} or not isinstance(payload[INPUT], str):
        return None
    return replace(
        call,
        payload=payload[INPUT],
        payload_kind="text",
        payload_format=call.payload_metadata.get(WRAPPED_TEXT, PLAIN_TEXT),
        payload_metadata=_without_memory(call.payload_metadata),
    )


def wrap_schema(schema: InspectedSchema) -> InspectedSchema:
    """Return a text tool as a JSON tool with the one required property ``input``."""
    parameters = {
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": _advice(schema)}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    metadata = {key: item for key, item in schema.payload_metadata.items() if key != "format"}
    return replace(
        schema,
        parameters=parameters,
        payload_kind="json",
        payload_format=JSON_OBJECT,
        payload_metadata=metadata | memory_of(parameters),
    )


def unwrap_schema(schema: InspectedSchema) -> InspectedSchema | None:
    """Return a JSON tool that `wrap_schema` made as the text tool it was, or None for another."""
    memory = memory_of(schema.parameters).get(WRAPPED_TEXT)
    if memory is None:
        return None
    grammar = {} if memory["type"] == PLAIN_TEXT else {"format": memory}
    return replace(
        schema,
        parameters={},
        payload_kind="text",
        payload_format=memory.get("syntax", PLAIN_TEXT),
        payload_metadata=_without_memory(schema.payload_metadata) | grammar,
    )


def memory_of(parameters: Mapping[str, object]) -> JsonObject:
    """Return ``{"wrapped_text": the text's format}`` for wrapped parameters, and {} for others."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping) or set(properties) != {INPUT}:
        return {}
    advice = properties[INPUT].get("description") if isinstance(properties[INPUT], Mapping) else None
    if advice == _ADVICE:
        return {WRAPPED_TEXT: {"type": PLAIN_TEXT}}
    found = _GRAMMAR.fullmatch(advice) if isinstance(advice, str) else None
    if found is None:
        return {}
    return {WRAPPED_TEXT: {"type": "grammar", "syntax": found[1], "definition": found[2]}}


def _advice(schema: InspectedSchema) -> str:
    grammar = schema.payload_metadata.get("format")
    if not isinstance(grammar, Mapping) or not isinstance(grammar.get("definition"), str):
        return _ADVICE
    return f"{_ADVICE} It must follow this {schema.payload_format} grammar:\n{grammar['definition']}"


def _without_memory(metadata: Mapping[str, object]) -> JsonObject:
    return {key: item for key, item in metadata.items() if key != WRAPPED_TEXT}


# Inspected calls and schemas from the pieces that the formats find in their own places.

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def json_call(
    format_id: str,
    raw: Mapping[str, object],
    *,
    name: str,
    call_id: str | None,
    decoded: tuple[object, str | None],
    extra: JsonObject,
) -> ToolCall:
    """Return a call with arguments, *decoded* as `agent_core.interop.wire` does it."""
    payload, problem = decoded
    return ToolCall(
        call_id=call_id,
        tool_name=name,
        payload=payload,
        payload_metadata=metadata(extra),
        raw=raw,
        format_id=format_id,
        problem=problem,
    )


def text_call(
    format_id: str,
    raw: Mapping[str, object],
    *,
    body: Mapping[str, object],
    call_id: str | None,
    extra: JsonObject,
) -> ToolCall:
    """Return a call whose *body* has a name and freeform input."""
    return ToolCall(
        call_id=call_id,
        tool_name=name_in(body),
        payload=text_in(body, "input"),
        payload_kind="text",
        payload_format=syntax_of(flat_grammar(body.get("format"))),
        payload_metadata=metadata(extra),
        raw=raw,
        format_id=format_id,
    )


def json_schema(
    format_id: str,
    raw: Mapping[str, object],
    *,
    body: Mapping[str, object],
    parameters: object,
    extra: JsonObject,
    strict: bool = False,
) -> InspectedSchema:
    """Return a tool whose arguments are described by JSON Schema; None means no arguments."""
    described = NO_PARAMETERS if parameters is None else parameters
    if not isinstance(described, Mapping):
        raise ToolError(name_in(body), f"its parameters must be an object, got {kind_of(parameters)}")
    enforced = {"strict": True} if strict else {}
    return InspectedSchema(
        name=name_in(body),
        description=text_in(body, "description"),
        parameters=described,
        payload_metadata=enforced | memory_of(described) | metadata(extra),
        raw=raw,
        format_id=format_id,
    )


def text_schema(
    format_id: str, raw: Mapping[str, object], *, body: Mapping[str, object], extra: JsonObject
) -> InspectedSchema:
    """Return a tool that takes freeform text, perhaps within a grammar."""
    grammar = flat_grammar(body.get("format"))
    limits = {} if syntax_of(grammar) == PLAIN_TEXT else {"format": grammar}
    return InspectedSchema(
        name=name_in(body),
        description=text_in(body, "description"),
        payload_kind="text",
        payload_format=syntax_of(grammar),
        payload_metadata=limits | metadata(extra),
        raw=raw,
        format_id=format_id,
    )


def metadata(extra: JsonObject) -> JsonObject:
    """Return payload metadata with the fields that only one format knows."""
    return {"extra": extra} if extra else {}


def flat_grammar(text_format: object) -> JsonObject:
    """Return a text format the way the Responses API writes it; Chat nests the grammar once more."""
    if not isinstance(text_format, Mapping):
        return {"type": PLAIN_TEXT}
    inner = text_format.get("grammar")
    return {"type": "grammar", **inner} if isinstance(inner, Mapping) else dict(text_format)


def syntax_of(text_format: Mapping[str, object]) -> str:
    """Return the payload format of text: its grammar's syntax, or else the type."""
    return str(text_format.get("syntax") or text_format.get("type") or PLAIN_TEXT)


def need_json(value: ToolCall | InspectedSchema) -> None:
    """Refuse a text payload, for formats that only know JSON.

    Raises:
        ToolError: If the payload is text.
    """
    if value.payload_kind != "json":
        raise ToolError(_name(value), "this format takes JSON arguments, not freeform text")


def need_text(value: ToolCall | InspectedSchema) -> None:
    """Refuse a JSON payload, for formats that only know text.

    Raises:
        ToolError: If the payload is JSON.
    """
    if value.payload_kind != "text":
        raise ToolError(_name(value), "this format takes freeform text, not JSON arguments")


def _name(value: ToolCall | InspectedSchema) -> str:
    return value.tool_name if isinstance(value, ToolCall) else value.name
