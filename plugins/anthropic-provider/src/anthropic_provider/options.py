"""Settings as fields of a request's body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import Config, JsonObject

MAX_TOKENS = 8192
_ANSWER = 4096  # room for the answer behind a thinking budget

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
    "tool_choice": {
        "type": "any",
        "description": 'As the API takes it, or "auto", "any", "none", or the name of a tool.',
    },
    "parallel_tool_calls": {"type": "boolean", "description": "False for one call at a time."},
    "server_tools": {"type": "array", "description": "Tools that the provider runs: web search and others."},
    "user_id": {"type": "string", "description": "An opaque id of the person behind the request."},
    "cache": {
        "type": "any",
        "default": False,
        "description": 'True, "5m" or "1h" to have the prompt remembered between requests.',
    },
    "betas": {"type": "array", "description": "Values of the anthropic-beta header."},
    "api_version": {"type": "string", "default": "2023-06-01"},
}


def options(config: Config) -> JsonObject:
    """Return the fields that do not depend on the conversation."""
    body = {key: config[key] for key in SENT_AS_THEY_ARE if config.get(key) is not None}
    thinking = read_thinking(config.get("thinking"))
    if thinking is not None:
        body["thinking"] = thinking
    if config.get("user_id"):
        body["metadata"] = {"user_id": config["user_id"]}
    return {"max_tokens": _max_tokens(config, thinking), **body}


def tool_options(config: Config, tools: list[Any]) -> JsonObject:
    """Return the fields about tools; without tools there must be none."""
    offered = [*tools, *(config.get("server_tools") or ())]
    if not offered:
        return {}
    choice = read_tool_choice(config)
    return {"tools": offered, **({} if choice is None else {"tool_choice": choice})}


def read_thinking(setting: Any) -> JsonObject | None:
    """Return the `thinking` field that a setting means."""
    if setting is None or isinstance(setting, dict):
        return setting
    if isinstance(setting, bool):
        return {"type": "adaptive" if setting else "disabled"}
    if isinstance(setting, int):
        return {"type": "enabled", "budget_tokens": setting}
    return {"type": str(setting)}


def read_tool_choice(config: Config) -> JsonObject | None:
    """Return the `tool_choice` field that the settings mean."""
    setting = config.get("tool_choice")
    choice = setting if setting is None or isinstance(setting, dict) else _named_choice(str(setting))
    if config.get("parallel_tool_calls") is False and (choice or {}).get("type") != "none":
        return {"type": "auto", **(choice or {}), "disable_parallel_tool_use": True}
    return choice


def _named_choice(name: str) -> JsonObject:
    if name in ("auto", "any", "none"):
        return {"type": name}
    return {"type": "any"} if name == "required" else {"type": "tool", "name": name}


def _max_tokens(config: Config, thinking: Mapping[str, Any] | None) -> int:
    if config.get("max_tokens") is not None:
        return int(config["max_tokens"])
    return max(MAX_TOKENS, ((thinking or {}).get("budget_tokens") or 0) + _ANSWER)
