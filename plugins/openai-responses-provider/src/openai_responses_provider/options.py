"""Settings as fields of a request's body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_provider_kit import read_effort, read_output_schema, read_parallel, read_tool_choice
from openai_responses_provider.client_tools import without_doubles

if TYPE_CHECKING:
    from agent_provider_kit import Config, JsonObject, ToolChoice

ENCRYPTED = "reasoning.encrypted_content"
_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-")  # these refuse to be asked for encrypted reasoning

SENT_AS_THEY_ARE: dict[str, JsonObject] = {
    "temperature": {"type": "number"},
    "top_p": {"type": "number"},
    "top_logprobs": {"type": "integer"},
    "max_output_tokens": {"type": "integer", "description": "The longest answer, thinking included."},
    "max_tool_calls": {"type": "integer", "description": "How often built-in tools may be used."},
    "truncation": {"type": "string", "description": "What to do about a conversation that is too long."},
    "service_tier": {"type": "string"},
    "prompt_cache_key": {"type": "string", "description": "Keeps requests with one beginning together."},
    "prompt_cache_retention": {"type": "string"},
    "safety_identifier": {"type": "string"},
    "user": {"type": "string"},
    "moderation": {"type": "object"},
    "context_management": {"type": "any", "description": "What the provider may compact."},
}
SETTINGS: dict[str, JsonObject] = {
    **SENT_AS_THEY_ARE,
    "instructions": {
        "type": "string",
        "description": "Instructions that the model gets before everything else.",
    },
    "system_role": {
        "type": "string",
        "enum": ["system", "developer", "instructions"],
        "default": "system",
        "description": "How system messages are sent: by which role, or as the top-level instructions.",
    },
    "store": {
        "type": "boolean",
        "default": False,
        "description": "Whether the provider keeps the answer; nothing here depends on it.",
    },
    "background": {
        "type": "boolean",
        "default": False,
        "description": "Work without a connection; the answer is looked up until it is ready.",
    },
    "poll_seconds": {
        "type": "number",
        "default": 2.0,
        "description": "How long to wait before an answer that is not ready is looked up again.",
    },
    "encrypted_reasoning": {
        "type": "boolean",
        "description": "Ask for encrypted reasoning; by default whenever the model may think.",
    },
    "include": {"type": "array", "description": "What else the answer should contain."},
    "item_ids": {
        "type": "string",
        "enum": ["keep", "omit"],
        "default": "keep",
        "description": "Whether items are sent back with the ids that the provider gave them.",
    },
    "reasoning_summary": {"type": "string", "description": "auto, concise or detailed, to see its thoughts."},
    "reasoning": {"type": "object", "description": "The whole field, for what has no setting of its own."},
    "text_format": {"type": "object", "description": "As the API takes it; wins over output_schema."},
    "verbosity": {"type": "string", "description": "low, medium or high."},
    "text": {"type": "object", "description": "The whole field, for what has no setting of its own."},
    "builtin_tools": {"type": "array", "description": "Tools that the provider runs: web search and others."},
}


def options(config: Config) -> JsonObject:
    """Return the fields that do not depend on the conversation."""
    body = {key: config[key] for key in SENT_AS_THEY_ARE if config.get(key) is not None}
    body["store"] = bool(config.get("store", False) or config.get("background"))
    if config.get("background"):
        body["background"] = True
    nested = {
        "reasoning": _nested(
            config, "reasoning", effort=read_effort(config), summary=config.get("reasoning_summary")
        ),
        "text": _nested(config, "text", format=_format(config), verbosity=config.get("verbosity")),
    }
    if config.get("instructions"):
        body["instructions"] = config["instructions"]
    return body | {key: value for key, value in nested.items() if value}


def included(config: Config, *, encrypted: bool) -> list[str]:
    """Return what the answer should contain in addition to the usual."""
    wanted = list(config.get("include") or ())
    return [*wanted, ENCRYPTED] if encrypted and ENCRYPTED not in wanted else wanted


def wants_encrypted(config: Config) -> bool:
    """Whether to ask for encrypted reasoning: models that do not think refuse the question."""
    setting = config.get("encrypted_reasoning")
    return not str(config.get("model")).startswith(_WITHOUT_REASONING) if setting is None else bool(setting)


def tool_options(config: Config, tools: list[Any]) -> JsonObject:
    """Return the fields about tools; without tools there must be none."""
    builtin = list(config.get("builtin_tools") or ())
    offered = [*without_doubles(tools, builtin), *builtin]
    if not offered:
        return {}
    fields: JsonObject = {"tools": offered}
    if (choice := read_tool_choice(config)) is not None:
        fields["tool_choice"] = _tool_choice(choice, offered)
    if (parallel := read_parallel(config)) is not None:
        fields["parallel_tool_calls"] = parallel
    return fields


def _nested(config: Config, field: str, **settings: Any) -> JsonObject:
    given = {name: value for name, value in settings.items() if value is not None}
    return {**(config.get(field) or {}), **given}


def _format(config: Config) -> Any:
    output = read_output_schema(config)
    if config.get("text_format") is not None or output is None:
        return config.get("text_format")
    named = {"name": output.name, "schema": output.schema, "strict": output.strict}
    return {
        "type": "json_schema",
        **named,
        **({"description": output.description} if output.description else {}),
    }


def _tool_choice(choice: ToolChoice, offered: list[Any]) -> Any:
    if choice.mode == "native":
        return choice.native
    if choice.mode != "tool":
        return choice.mode
    kinds = {tool.get("name"): tool.get("type", "function") for tool in offered}
    if choice.name not in kinds and choice.name in {tool.get("type") for tool in offered}:
        return {"type": choice.name}  # a built-in tool, which has no name but its type
    return {"type": kinds.get(choice.name, "function"), "name": choice.name}
