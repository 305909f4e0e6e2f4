"""Settings as fields of a request's body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_provider_kit import (
    BEDROCK_SETTINGS,
    VERTEX_SETTINGS,
    read_effort,
    read_output_schema,
    read_parallel,
    read_tool_choice,
)

if TYPE_CHECKING:
    from agent_provider_kit import Config, JsonObject, ToolChoice

MAX_TOKENS = 8192
_ANSWER = 4096  # room for the answer behind a thinking budget
# Models up to 4.5 think within a budget; those from 4.6 on decide themselves, and `effort` guides them.
_WITH_BUDGET = re.compile(
    r"claude-(?:v?[123]\b|instant|(?:opus|sonnet|haiku)-(?:3|4(?:-[015])?(?:$|[-@:](?!\d{1,2}\b))))"
)
_TOOLSET = re.compile(r"(\w+)_toolset_\d+")
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24_576}
_EFFORTS = {"minimal": "low"}
# The API refuses these words in a schema. The model can still read them in the description.
_NOT_ENFORCED = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "maxItems", "uniqueItems", "minProperties", "maxProperties",
)  # fmt: skip

SENT_AS_THEY_ARE: dict[str, JsonObject] = {
    "temperature": {"type": "number"},
    "top_p": {"type": "number"},
    "top_k": {"type": "integer"},
    "stop_sequences": {"type": "array"},
    "output_config": {"type": "object", "description": "Effort, and the format of structured answers."},
    "service_tier": {"type": "string"},
    "context_management": {"type": "object", "description": "What the provider may clear or compact."},
    "container": {"type": "any", "description": "The container in which code is run, to use it again."},
    "mcp_servers": {"type": "array", "description": "MCP servers that the provider itself talks to."},
    "inference_geo": {"type": "string"},
}
SETTINGS: dict[str, JsonObject] = {
    **SENT_AS_THEY_ARE,
    "max_tokens": {
        "type": "integer",
        "description": f"The longest answer; {MAX_TOKENS}, or what a thinking budget needs, by default.",
    },
    "thinking": {
        "type": "any",
        "description": 'As the API takes it, or "adaptive", "disabled", or a budget of tokens.',
    },
    "server_tools": {"type": "array", "description": "Tools that the provider runs: web search and others."},
    "user_id": {"type": "string", "description": "An opaque id of the person behind the request."},
    "cache": {
        "type": "any",
        "default": False,
        "description": 'True, "5m" or "1h" to have the prompt remembered between requests.',
    },
    **VERTEX_SETTINGS,
    **BEDROCK_SETTINGS,
    "cloud": {
        "type": "string",
        "enum": ["vertex", "bedrock"],
        "description": "Who runs the model, if not Anthropic.",
    },
    "betas": {"type": "array", "description": "Values of the anthropic-beta header."},
    "api_version": {"type": "string", "default": "2023-06-01"},
}


def options(config: Config) -> JsonObject:
    """Return the fields that do not depend on the conversation."""
    body = {key: config[key] for key in SENT_AS_THEY_ARE if config.get(key) is not None}
    thinking, output = _answer_fields(config)
    if thinking is not None:
        body["thinking"] = thinking
    if output:
        body["output_config"] = {**output, **(config.get("output_config") or {})}
    if config.get("user_id"):
        body["metadata"] = {"user_id": config["user_id"]}
    return {"max_tokens": _max_tokens(config, thinking), **body}


def tool_options(config: Config, tools: list[Any]) -> JsonObject:
    """Return the fields about tools; without tools there must be none."""
    typed = list(config.get("server_tools") or ())
    # A tool of ours that the API knows by type (bash, memory, …) is offered under that type alone.
    names = {name_of_typed(tool) for tool in typed}
    offered = [*(tool for tool in tools if tool.get("name") not in names), *typed]
    if not offered:
        return {}
    choice = choose_tool(config)
    return {"tools": offered, **({} if choice is None else {"tool_choice": choice})}


def name_of_typed(tool: Mapping[str, Any]) -> Any:
    """Return the name by which the model calls a tool that the API knows by type; a set has its own."""
    found = _TOOLSET.match(str(tool.get("type")))
    return tool.get("name") or (found[1] if found else None)


def read_thinking(setting: Any) -> JsonObject | None:
    """Return the `thinking` field that a setting means."""
    if setting is None or isinstance(setting, dict):
        return setting
    if isinstance(setting, bool):
        return {"type": "adaptive" if setting else "disabled"}
    if isinstance(setting, int):
        return {"type": "enabled", "budget_tokens": setting}
    return {"type": str(setting)}


def choose_tool(config: Config) -> JsonObject | None:
    """Return the `tool_choice` field that the settings mean."""
    setting = read_tool_choice(config)
    choice = None if setting is None else _choice(setting)
    if read_parallel(config) is False and (choice or {}).get("type") != "none":
        return {"type": "auto", **(choice or {}), "disable_parallel_tool_use": True}
    return choice


def _choice(choice: ToolChoice) -> JsonObject:
    if choice.mode == "native":
        return dict(choice.native)
    if choice.mode == "tool":
        return {"type": "tool", "name": choice.name}
    return {"type": "any" if choice.mode == "required" else choice.mode}


def _answer_fields(config: Config) -> tuple[JsonObject | None, JsonObject]:
    """Return the fields `thinking` and `output_config` that the settings mean."""
    thinking = read_thinking(config.get("thinking"))
    output: JsonObject = {}
    effort = read_effort(config)
    if effort == "none":
        thinking = thinking or {"type": "disabled"}
    elif effort is not None and _WITH_BUDGET.search(str(config.get("model"))):
        thinking = thinking or {"type": "enabled", "budget_tokens": _BUDGETS.get(effort, _BUDGETS["high"])}
    elif effort is not None:
        thinking = thinking or {"type": "adaptive"}
        output["effort"] = _EFFORTS.get(effort, effort)
    if (form := read_output_schema(config)) is not None:
        output["format"] = {"type": "json_schema", "schema": enforceable(form.schema)}
    return thinking, output


def enforceable(schema: Mapping[str, Any]) -> JsonObject:
    """Return a schema that the API takes: objects are closed, and bounds stand in the description.

    Whatever fits the result fits the original as well, except for the bounds.
    """
    made = {key: _inner(key, value) for key, value in schema.items() if key not in _NOT_ENFORCED}
    if "oneOf" in made:
        made["anyOf"] = made.pop("oneOf")
    if made.get("type") == "object" or "properties" in made:
        made["additionalProperties"] = False
    bounds = ", ".join(f"{key}: {schema[key]}" for key in _NOT_ENFORCED if key in schema)
    if bounds:
        made["description"] = f"{made['description']} ({bounds})" if made.get("description") else bounds
    return made


def _inner(key: str, value: Any) -> Any:
    if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
        return {
            name: enforceable(each) if isinstance(each, Mapping) else each for name, each in value.items()
        }
    if key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, (list, tuple)):
        return [_inner("items", each) for each in value]
    return enforceable(value) if key == "items" and isinstance(value, Mapping) else value


def _max_tokens(config: Config, thinking: Mapping[str, Any] | None) -> int:
    if config.get("max_tokens") is not None:
        return int(config["max_tokens"])
    return max(MAX_TOKENS, ((thinking or {}).get("budget_tokens") or 0) + _ANSWER)
