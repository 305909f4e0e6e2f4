"""Text tools on wires that only know JSON arguments.

A tool that takes freeform text becomes a tool with one required property, ``input``, whose
description carries the grammar, if any, as advice; a call of it becomes ``{"input": text}``. Both
ways back exist. A schema is recognised by that description. A call has no such sign, since an
ordinary tool may also take one ``input``: it is unwrapped only for a format, or by a caller, that
wants text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_core.interop.values import JSON_OBJECT, PLAIN_TEXT, InspectedCall, InspectedSchema

INPUT = "input"
WRAPPED_TEXT = "wrapped_text"
"""The key of `payload_metadata` that remembers how the text was formatted before it was wrapped."""

_ADVICE = "The whole input of the tool, as plain text."
_GRAMMAR = re.compile(re.escape(_ADVICE) + r" It must follow this (\w+) grammar:\n(.*)", re.DOTALL)


def wrap_call(call: InspectedCall) -> InspectedCall:
    """Return a text call as the JSON call ``{"input": text}``."""
    return replace(
        call,
        payload={INPUT: call.payload},
        payload_kind="json",
        payload_format=JSON_OBJECT,
        payload_metadata={**call.payload_metadata, WRAPPED_TEXT: call.payload_format},
    )


def unwrap_call(call: InspectedCall) -> InspectedCall | None:
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


def memory_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
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


def _without_memory(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in metadata.items() if key != WRAPPED_TEXT}
