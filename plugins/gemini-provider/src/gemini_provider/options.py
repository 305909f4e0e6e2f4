"""Settings as fields of a request's body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError
from agent_provider_kit import (
    VERTEX_SETTINGS,
    read_effort,
    read_output_schema,
    read_parallel,
    read_tool_choice,
)

if TYPE_CHECKING:
    from agent_provider_kit import Config, Dicts, JsonObject

# Setting, field of generationConfig, and what the setting is.
_GENERATION: dict[str, tuple[str, JsonObject]] = {
    "temperature": ("temperature", {"type": "number"}),
    "top_p": ("topP", {"type": "number"}),
    "top_k": ("topK", {"type": "integer"}),
    "max_output_tokens": (
        "maxOutputTokens",
        {"type": "integer", "description": "The longest answer, thoughts included."},
    ),
    "stop_sequences": ("stopSequences", {"type": "array"}),
    "seed": ("seed", {"type": "integer"}),
    "presence_penalty": ("presencePenalty", {"type": "number"}),
    "frequency_penalty": ("frequencyPenalty", {"type": "number"}),
    "response_mime_type": ("responseMimeType", {"type": "string"}),
    "response_json_schema": (
        "responseJsonSchema",
        {"type": "object", "description": "JSON Schema of a structured answer."},
    ),
    "response_schema": (
        "responseSchema",
        {"type": "object", "description": "The same in the API's older dialect."},
    ),
    "response_modalities": ("responseModalities", {"type": "array"}),
    "media_resolution": ("mediaResolution", {"type": "string"}),
    "speech_config": ("speechConfig", {"type": "object"}),
    "image_config": ("imageConfig", {"type": "object"}),
}
_BODY: dict[str, tuple[str, JsonObject]] = {
    "cached_content": (
        "cachedContent",
        {"type": "string", "description": "The name of cached content to continue from."},
    ),
    "service_tier": ("serviceTier", {"type": "string"}),
}
SETTINGS: dict[str, JsonObject] = {
    **{name: described for name, (_field, described) in (*_GENERATION.items(), *_BODY.items())},
    **VERTEX_SETTINGS,
    "api_version": {
        "type": "string",
        "default": "v1beta",
        "description": "v1beta, or v1, which is stable and knows fewer fields.",
    },
    "thinking": {
        "type": "any",
        "description": 'As the API takes it, or a level ("low", "high"), a budget of tokens, or false.',
    },
    "include_thoughts": {"type": "boolean", "description": "Ask for summaries of what the model thinks."},
    "generation_config": {"type": "object", "description": "More fields of generationConfig, as they are."},
    "tool_config": {"type": "object", "description": "More fields of toolConfig, as they are."},
    "server_tools": {
        "type": "array",
        "description": 'Tools that the provider runs, such as {"googleSearch": {}}.',
    },
    "safety_settings": {
        "type": "any",
        "description": "As the API takes them, or a threshold for each category.",
    },
}
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
# Models before Gemini 3 think within a budget of tokens. The numbers are those with which Google itself
# reads `reasoning_effort`: https://ai.google.dev/gemini-api/docs/openai#thinking
_WITH_BUDGET = re.compile(r"gemini-(?:[12]([.-]|$)|(flash|pro)(-lite)?-latest$)|gemma|learnlm")
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}


def options(config: Config) -> JsonObject:
    """Return the fields that depend on neither conversation nor tools."""
    body = _fields(config, _BODY)
    generation = _fields(config, _GENERATION)
    thinking = read_thinking(config)
    if thinking:
        generation["thinkingConfig"] = thinking
    if (output := read_output_schema(config)) is not None:
        generation.setdefault("responseJsonSchema", output.schema)
    generation |= config.get("generation_config") or {}
    if "responseJsonSchema" in generation or "responseSchema" in generation:
        generation.setdefault("responseMimeType", "application/json")  # a schema is refused without it
    if generation:
        body["generationConfig"] = generation
    if config.get("safety_settings"):
        body["safetySettings"] = read_safety(config["safety_settings"])
    return body


def tool_options(config: Config, declarations: list[Any]) -> JsonObject:
    """Return the fields about tools; without tools there are none."""
    tools = [*(config.get("server_tools") or ())]
    if declarations:
        tools.insert(0, {"functionDeclarations": declarations})
    if not tools:
        return {}
    if read_parallel(config) is False:
        raise ConfigError(
            "parallel_tool_calls: the Gemini API has no setting for one call at a time; "
            "leave the setting out, or use another provider",
            field="parallel_tool_calls",
        )
    choice = function_calling(config)
    chosen = {**choice, **(config.get("tool_config") or {})}
    return {"tools": tools, **({"toolConfig": chosen} if chosen else {})}


def read_thinking(config: Config) -> JsonObject:
    """Return the `thinkingConfig` that the settings mean; empty for what the model does by itself."""
    effort = read_effort(config)
    thinking = _thinking(config.get("thinking"))
    if effort is not None and not thinking:
        thinking = _effort(effort, str(config.get("model")).rpartition("/")[2])
    if config.get("include_thoughts") is not None:
        thinking["includeThoughts"] = config["include_thoughts"]
    return thinking


def function_calling(config: Config) -> JsonObject:
    """Return the `toolConfig` that the setting `tool_choice` means; empty without one."""
    choice = read_tool_choice(config)
    if choice is None:
        return {}
    if choice.mode == "native" and isinstance(choice.native, Mapping):
        return {"functionCallingConfig": dict(choice.native)}
    if choice.mode in _MODES:
        return {"functionCallingConfig": {"mode": _MODES[choice.mode]}}
    if choice.name.lower() == "validated":
        return {"functionCallingConfig": {"mode": "VALIDATED"}}
    names = [choice.name] if choice.mode == "tool" else list(choice.native)
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": names}}


def read_safety(setting: Any) -> Dicts:
    """Return the `safetySettings` that a setting means."""
    if isinstance(setting, Mapping):
        return [{"category": category, "threshold": setting[category]} for category in setting]
    return list(setting)


def _thinking(setting: Any) -> JsonObject:
    if setting is None:
        return {}
    if isinstance(setting, Mapping):
        return dict(setting)
    if isinstance(setting, bool):
        return {"includeThoughts": True} if setting else {"thinkingBudget": 0}
    return {"thinkingBudget": setting} if isinstance(setting, int) else {"thinkingLevel": str(setting)}


def _effort(effort: str, model: str) -> JsonObject:
    if _WITH_BUDGET.match(model):
        return {"thinkingBudget": _BUDGETS.get(effort, _BUDGETS["high"])}
    # These cannot be kept from thinking. The Pro models do not know the lowest level either.
    if effort in ("none", "minimal"):
        return {"thinkingLevel": "low" if "pro" in model else "minimal"}
    return {"thinkingLevel": effort}


def _fields(config: Config, table: dict[str, tuple[str, JsonObject]]) -> JsonObject:
    return {
        field: config[name] for name, (field, _described) in table.items() if config.get(name) is not None
    }
