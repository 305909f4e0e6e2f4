"""The JSON Schema of declarations, made from the dataclasses that read them.

Types, limits and defaults come from the fields, descriptions from the "Attributes:" block of each docstring,
so that a field cannot be added, renamed or limited without the schema following. What no annotation says,
other forms that are read as well and the few rules that join two fields, is in the tables below; the rest (a
reply that must be shorter than its window) only the dataclasses know, and they have the last word.

`python -m agent_runtime.schema` prints the schema of a whole file of declarations.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from agent_runtime import fields
from agent_runtime.fields import Range, Rule, Text, init_fields
from agent_runtime.policies import CONDITIONS, ContentMatch, StopCondition, StopOnTool
from agent_runtime.specs import (
    AgentSpec,
    ContextPolicy,
    HandoffSpec,
    ModelSpec,
    RemoteEndpoint,
    RetryPolicy,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""Which JSON Schema the schemas are written in."""

Schema = dict[str, Any]

_NAME: Schema = {"type": "string", "pattern": r"\S"}
# Where another form is read as well, or a section has a shape of its own.
_INSTEAD: dict[tuple[type, str], Schema] = {
    (AgentSpec, "endpoint"): {
        "anyOf": [{"$ref": "#/$defs/endpoint"}, {"type": "string", "pattern": "^https?://"}, {"type": "null"}]
    },
    (AgentSpec, "handoffs"): {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/handoff"}, _NAME]}},
    (AgentSpec, "sections"): {
        "type": "object",
        "propertyNames": _NAME,
        "properties": {"retry": {"$ref": "#/$defs/retry"}},
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
            "agent": object_schema(AgentSpec),
            "named_agent": object_schema(AgentSpec, without="id"),
            "model": object_schema(ModelSpec),
            "named_model": object_schema(ModelSpec, without="id"),
            **_parts(),
        },
    }


def agent_schema() -> Schema:
    """Return the schema of one agent, as `AgentSpec.from_dict` reads it."""
    return {"$schema": DIALECT, "title": "Agent", **object_schema(AgentSpec), "$defs": _parts()}


def model_schema() -> Schema:
    """Return the schema of one model, as `ModelSpec.from_dict` reads it."""
    return {"$schema": DIALECT, "title": "Model", **object_schema(ModelSpec)}


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
    return {field.name: said.get(field.name, " ".join(first.split())) for field in init_fields(cls)}


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
        "context_policy": object_schema(ContextPolicy),
        "endpoint": object_schema(RemoteEndpoint),
        "handoff": object_schema(HandoffSpec),
        "retry": object_schema(RetryPolicy),
        "stop_condition": {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in conditions]},
        **conditions,
    }


def _condition(kind: type[StopCondition]) -> Schema:
    schema = object_schema(kind)
    named = {"const": kind.type, "description": "Which condition this is."}
    return {
        **schema,
        "properties": {"type": named, **schema["properties"]},
        "required": ["type", *schema.get("required", [])],
    }


def object_schema(cls: type, *, without: str = "") -> Schema:
    """Return the schema of a dataclass: every field, and none but them."""
    listed = [field for field in init_fields(cls) if field.name != without]
    rules, said = fields.rules(cls), described(cls)
    schema: Schema = {
        "type": "object",
        "description": _summary(cls),
        "properties": {
            field.name: {
                "description": said[field.name],
                **_value(cls, field.name, rules[field.name]),
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


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Schema:
    if field.default is dataclasses.MISSING:
        return {}
    return {"default": list(field.default) if isinstance(field.default, tuple) else field.default}


def _value(cls: type, name: str, rule: Rule) -> Schema:
    instead = _INSTEAD.get((cls, name))
    if instead is not None:
        return instead
    schema = {**_typed(rule.kind), **_limited(rule.limits)}
    if isinstance(rule.limits, Range) and rule.limits.off:
        return {"anyOf": [schema, {"const": False}, {"type": "null"}]}
    return _optional(schema) if rule.optional else schema


def _typed(kind: Any) -> Schema:
    """Return the schema of a type, of those kinds that declarations use."""
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return {"type": "array", "items": _NAME if item is str else _typed(item)}
    if get_origin(kind) is Mapping:
        return {"type": "object", "propertyNames": _NAME}
    return {"type": _SIMPLE[kind]} if kind in _SIMPLE else {"$ref": f"#/$defs/{_REFERENCES[kind]}"}


def _limited(limits: Range | Text | None) -> Schema:
    if limits is None:
        return {}
    if isinstance(limits, Text):
        return {"pattern": limits.pattern}
    most = {} if limits.most is None else {"maximum": limits.most}
    return {"minimum": limits.least, **most}


def _optional(schema: Schema) -> Schema:
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def main() -> None:
    """Print the schema of a file of declarations."""
    sys.stdout.write(json.dumps(spec_schema(), indent=2) + "\n")


if __name__ == "__main__":
    main()
