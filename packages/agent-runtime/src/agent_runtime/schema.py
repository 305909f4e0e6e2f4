"""The JSON Schema of declarations, made from the dataclasses that read them.

Types and defaults come from the fields, descriptions from the "Attributes:" block of each docstring, so
that a field cannot be added or renamed without the schema following. What no annotation tells, the limits
of numbers and the few rules that join two fields, stands in the tables below; the rest (a reply that must be
shorter than its window) only the dataclasses know, and they have the last word.

`python -m agent_runtime.schema` prints the schema of a whole file of declarations.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from agent_runtime.policies.conditions import (
    CONDITIONS,
    ConsecutiveErrors,
    ContentMatch,
    CostBudget,
    MaxRounds,
    RepeatedCalls,
    StopCondition,
    StopOnTool,
    Timeout,
    TokenBudget,
)
from agent_runtime.specs import HARD_CAP, AgentSpec, ContextPolicy, ModelSpec, RemoteEndpoint, RetryPolicy

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""Which JSON Schema the schemas are written in."""

Schema = dict[str, Any]

_NAME: Schema = {"type": "string", "pattern": r"\S"}
_NUMBER: Schema = {"minimum": 0}
_COUNT: Schema = {"minimum": 1}
_TIMES: Schema = {"minimum": 0, "maximum": 20}

# What a field may hold, as far as its annotation does not say it.
_LIMITS: dict[tuple[type, str], Schema] = {
    (AgentSpec, "id"): _NAME,
    (AgentSpec, "max_rounds"): {"minimum": 1, "maximum": HARD_CAP},
    (ModelSpec, "id"): _NAME,
    (ModelSpec, "provider"): _NAME,
    (ModelSpec, "context_window"): _COUNT,
    (ModelSpec, "max_output_tokens"): _COUNT,
    (ModelSpec, "input_price"): _NUMBER,
    (ModelSpec, "output_price"): _NUMBER,
    (ModelSpec, "cached_input_price"): _NUMBER,
    (RetryPolicy, "max_retries"): _TIMES,
    (RetryPolicy, "stream_retries"): _TIMES,
    (RetryPolicy, "base_delay"): _NUMBER,
    (RetryPolicy, "max_delay"): _NUMBER,
    (RetryPolicy, "max_retry_after"): _NUMBER,
    (RetryPolicy, "deadline"): _NUMBER,
    (ContextPolicy, "max_tokens"): _COUNT,
    (ContextPolicy, "reserve_tokens"): _NUMBER,
    (ContextPolicy, "keep_recent"): _COUNT,
    (RemoteEndpoint, "url"): {"pattern": "^https?://"},
    (RemoteEndpoint, "token"): {"pattern": r"\S"},
    (RemoteEndpoint, "timeout"): {"minimum": 0.001},
    (RemoteEndpoint, "max_bytes"): _COUNT,
    (MaxRounds, "rounds"): _COUNT,
    (Timeout, "seconds"): {"minimum": 0.001},
    (TokenBudget, "tokens"): _COUNT,
    (CostBudget, "amount"): _NUMBER,
    (ConsecutiveErrors, "count"): _COUNT,
    (RepeatedCalls, "count"): {"minimum": 2},
}

# Where another form is read as well, or a section has a shape of its own.
_INSTEAD: dict[tuple[type, str], Schema] = {
    (AgentSpec, "endpoint"): {
        "anyOf": [{"$ref": "#/$defs/endpoint"}, {"type": "string", "pattern": "^https?://"}, {"type": "null"}]
    },
    (AgentSpec, "sections"): {
        "type": "object",
        "propertyNames": _NAME,
        "properties": {"retry": {"$ref": "#/$defs/retry"}},
    },
    (ContextPolicy, "compact_at"): {
        "anyOf": [{"type": "number", "minimum": 0.1, "maximum": 1}, {"const": False}, {"type": "null"}]
    },
    (StopOnTool, "tools"): {"anyOf": [{"type": "array", "items": _NAME}, _NAME]},
}

_SAID: Schema = {"minLength": 1}

# Rules that join two fields of one declaration.
_TOGETHER: dict[type, Schema] = {
    AgentSpec: {
        "anyOf": [
            {"required": ["model"], "properties": {"model": _SAID}},
            {"required": ["endpoint"], "properties": {"endpoint": {"type": ["object", "string"]}}},
        ]
    },
    ContentMatch: {
        "oneOf": [
            {"required": ["text"], "properties": {"text": _SAID}},
            {"required": ["pattern"], "properties": {"pattern": _SAID}},
        ]
    },
}

_REFERENCES: dict[type, str] = {ContextPolicy: "context_policy", StopCondition: "stop_condition"}
_SIMPLE: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def spec_schema() -> Schema:
    """Return the schema of a file of declarations."""
    return {
        "$schema": DIALECT,
        "title": "Agent declarations",
        "description": "Agents and models, each by its id.",
        "type": "object",
        "properties": {
            "agents": _by_id("agent", "The agents by their ids, or a list of agents."),
            "models": _by_id("model", "The models by their ids, or a list of models."),
        },
        "additionalProperties": False,
        "$defs": {
            "agent": _object(AgentSpec),
            "named_agent": _object(AgentSpec, without="id"),
            "model": _object(ModelSpec),
            "named_model": _object(ModelSpec, without="id"),
            **_parts(),
        },
    }


def agent_schema() -> Schema:
    """Return the schema of one agent, as `AgentSpec.from_dict` reads it."""
    return {"$schema": DIALECT, "title": "Agent", **_object(AgentSpec), "$defs": _parts()}


def model_schema() -> Schema:
    """Return the schema of one model, as `ModelSpec.from_dict` reads it."""
    return {"$schema": DIALECT, "title": "Model", **_object(ModelSpec)}


def described(cls: type) -> dict[str, str]:
    """Return what the "Attributes:" block of a docstring says of each field.

    A field that the block leaves out is described by the first sentence of the docstring: a class with one
    field says all there is to say about it there.
    """
    text = inspect.cleandoc(cls.__doc__ or "")
    summary, _, block = text.partition("Attributes:")
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", block, re.MULTILINE)
    said = {name: " ".join(words.split()) for name, words in found}
    first = summary.split("\n\n", maxsplit=1)[0]
    return {field.name: said.get(field.name, " ".join(first.split())) for field in _fields(cls)}


def _by_id(kind: str, description: str) -> Schema:
    by_key = {
        "type": "object",
        "propertyNames": _NAME,
        "additionalProperties": {"$ref": f"#/$defs/named_{kind}"},
    }
    return {
        "description": description,
        "anyOf": [by_key, {"type": "array", "items": {"$ref": f"#/$defs/{kind}"}}],
    }


def _parts() -> Schema:
    conditions = {f"{name}_condition": _condition(kind) for name, kind in CONDITIONS.items()}
    return {
        "context_policy": _object(ContextPolicy),
        "endpoint": _object(RemoteEndpoint),
        "retry": _object(RetryPolicy),
        "stop_condition": {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in conditions]},
        **conditions,
    }


def _condition(kind: type[StopCondition]) -> Schema:
    schema = _object(kind)
    named = {"const": kind.type, "description": "Which condition this is."}
    return {
        **schema,
        "properties": {"type": named, **schema["properties"]},
        "required": ["type", *schema.get("required", [])],
    }


def _object(cls: Any, *, without: str = "") -> Schema:
    """Return the schema of a dataclass: every field, and none but them."""
    listed = [field for field in _fields(cls) if field.name != without]
    hints, said = get_type_hints(cls), described(cls)
    schema: Schema = {
        "type": "object",
        "description": _summary(cls),
        "properties": {
            field.name: {
                "description": said[field.name],
                **_value(cls, field, hints[field.name]),
                **_default(field),
            }
            for field in listed
        },
        "additionalProperties": False,
        **_TOGETHER.get(cls, {}),
    }
    required = [field.name for field in listed if _is_required(field)]
    return {**schema, "required": required} if required else schema


def _summary(cls: type) -> str:
    return " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())


def _fields(cls: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.init]


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Schema:
    if field.default is dataclasses.MISSING:
        return {}
    return {"default": list(field.default) if isinstance(field.default, tuple) else field.default}


def _value(cls: type, field: dataclasses.Field[Any], hint: Any) -> Schema:
    instead = _INSTEAD.get((cls, field.name))
    return {**_typed(hint), **_LIMITS.get((cls, field.name), {})} if instead is None else instead


def _typed(hint: Any) -> Schema:
    """Return the schema of an annotation, of those kinds that declarations use."""
    if get_origin(hint) in {Union, types.UnionType}:
        return _optional(_typed(next(kind for kind in get_args(hint) if kind is not type(None))))
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return {"type": "array", "items": _NAME if item is str else _typed(item)}
    if get_origin(hint) is Mapping:
        return {"type": "object", "propertyNames": _NAME}
    return {"type": _SIMPLE[hint]} if hint in _SIMPLE else {"$ref": f"#/$defs/{_REFERENCES[hint]}"}


def _optional(schema: Schema) -> Schema:
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def main() -> None:
    """Print the schema of a file of declarations."""
    sys.stdout.write(json.dumps(spec_schema(), indent=2) + "\n")


if __name__ == "__main__":
    main()
