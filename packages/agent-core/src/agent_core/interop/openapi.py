"""OpenAPI's dialect of schemas, as Gemini's older ``parameters`` field uses it, in JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_NAMED_SCHEMAS = ("properties",)
_LISTED_SCHEMAS = ("anyOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties")


def as_json_schema(schema: Any) -> Any:
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


def _translate(key: str, value: Any) -> Any:
    if key == "type" and isinstance(value, str) and value in _TYPES:
        return value.lower()
    if key in _NAMED_SCHEMAS and isinstance(value, Mapping):
        return {name: as_json_schema(item) for name, item in value.items()}
    if key in _LISTED_SCHEMAS and isinstance(value, (list, tuple)):
        return [as_json_schema(item) for item in value]
    return as_json_schema(value) if key in _SCHEMAS else value
