"""Settings that mean the same at every provider, and what a value of each means.

Four of them shape the answer: `output_schema`, `reasoning_effort`, `tool_choice` and `parallel_tool_calls`.
They are read here, once; each provider writes what was read in the words of its API. The page
``docs/reference/provider-settings.md`` has a table of what goes on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agent_core import ConfigError
from agent_provider_kit.transport import Timeouts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_provider_kit.keys import ApiKey
    from agent_provider_kit.wire import Config, JsonObject

ANSWER_SETTINGS: dict[str, JsonObject] = {
    "output_schema": {
        "type": "object",
        "description": "JSON Schema of the answer, or an object with `schema`, `name` and `strict`.",
    },
    "reasoning_effort": {
        "type": "string",
        "description": "How long the model thinks: none, minimal, low, medium, high.",
    },
    "tool_choice": {
        "type": "any",
        "description": 'auto, none, required, {"name": …} for one tool, or as the API takes it.',
    },
    "parallel_tool_calls": {"type": "boolean", "description": "False for one tool call at a time."},
}
"""What shapes an answer, the same for every provider."""

COMMON_SETTINGS: dict[str, JsonObject] = {
    "model": {"type": "string", "description": "The model's name at the provider."},
    "api_key": {
        "type": "string",
        "secret": True,
        "description": "The API key; better kept in the environment.",
    },
    "api_key_origin": {
        "type": "string",
        "description": "Where `api_key` came from, for error messages; of an empty one, why it is not there.",
    },
    "base_url": {"type": "string", "description": "Where the provider's API is."},
    "extra_headers": {"type": "object", "description": "More HTTP headers."},
    "extra_query": {"type": "object", "description": "More parameters of every address."},
    "extra_body": {"type": "object", "description": "More fields for the request body."},
    "connect_timeout": {"type": "number", "default": 15.0, "description": "Seconds until connected."},
    "first_byte_timeout": {
        "type": "number",
        "default": 300.0,
        "description": "Seconds until the reply begins.",
    },
    "idle_timeout": {"type": "number", "default": 120.0, "description": "Seconds without news in a reply."},
    "content_timeout": {
        "type": "number",
        "default": 900.0,
        "description": "Seconds in which a reply brings nothing but pings and blanks.",
    },
    "capabilities": {"type": "array", "description": "Tags to assume instead of the provider's usual ones."},
    "discover_models": {"type": "boolean", "default": False, "description": "Ask the server for its models."},
    **ANSWER_SETTINGS,
}
"""The settings that every provider over HTTP has."""


_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")  # control characters, and what is no text
_CANNOT_BE_SENT = "has a line break or another character in it that cannot be sent"


def check_extras(config: Config, key: ApiKey) -> None:
    """Refuse what no request could carry, without showing it: most of it is secret.

    Raises:
        ConfigError: It names the setting.
    """
    for name in ("extra_headers", "extra_query", "extra_body"):
        if not isinstance(given := config.get(name) or {}, Mapping):
            raise ConfigError(f"{name} must be an object, not {type(given).__name__}", field=name)
    for header, value in (config.get("extra_headers") or {}).items():
        if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
            raise ConfigError("extra_headers has a name that no header can have", field="extra_headers")
        if not isinstance(value, str):
            problem = f"must be a text, not {type(value).__name__}"
            raise ConfigError(f"extra_headers[{header!r}] {problem}", field="extra_headers")
        if _UNSENDABLE.search(value):
            raise ConfigError(f"extra_headers[{header!r}] {_CANNOT_BE_SENT}", field="extra_headers")
    if _UNSENDABLE.search(key.value):
        problem = f"{_CANNOT_BE_SENT}; it came from {key.origin}"
        raise ConfigError(f"the API key (api_key) {problem}", field="api_key")


def timeouts(config: Config) -> Timeouts:
    """Return the patience that the configuration has at each stage."""
    usual = Timeouts()
    return Timeouts(
        config.get("connect_timeout", usual.connect),
        config.get("first_byte_timeout", usual.first_byte),
        config.get("idle_timeout", usual.idle),
        config.get("content_timeout", usual.content),
    )


# Structured answers.

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 64
_ENVELOPE = frozenset({"schema", "name", "strict", "description"})


class OutputSchema(NamedTuple):
    """The form that an answer must have.

    Attributes:
        schema: JSON Schema.
        name: What the form is called, of letters, digits, "_" and "-".
        strict: Whether the provider should enforce each detail. Unless the configuration says so, it is
            true for schemas that OpenAI can enforce: every object closed, and all of its fields required.
        description: What the form is for, or "".
    """

    schema: JsonObject
    name: str
    strict: bool
    description: str = ""


def read_output_schema(config: Config) -> OutputSchema | None:
    """Return the form that the setting `output_schema` asks for, or None if there is no such setting.

    Raises:
        ConfigError: If the setting is not a JSON Schema.
    """
    setting = config.get("output_schema")
    if setting is None:
        return None
    if not isinstance(setting, Mapping):
        raise ConfigError(
            f"output_schema must be a JSON Schema object, not {type(setting).__name__}", field="output_schema"
        )
    named: Mapping[str, Any] = {}
    if isinstance(setting.get("schema"), Mapping) and setting.keys() <= _ENVELOPE:
        named, setting = setting, setting["schema"]
    schema = dict(setting)
    strict = named.get("strict")
    return OutputSchema(
        schema,
        _schema_name(named.get("name") or schema.get("title")),
        _is_closed(schema) if strict is None else bool(strict),
        str(named.get("description") or schema.get("description") or ""),
    )


def _schema_name(name: Any) -> str:
    return _NOT_IN_A_NAME.sub("_", str(name or "")).strip("_")[:_LONGEST_NAME] or "answer"


def _is_closed(schema: JsonObject) -> bool:
    """Say whether OpenAI's strict mode takes a schema: its objects have no other and no optional fields."""
    return schema.get("type") == "object" and all(map(_is_closed_object, subschemas(schema)))


def _is_closed_object(schema: Mapping[str, Any]) -> bool:
    if schema.get("type") != "object" and "properties" not in schema:
        return True
    fields = schema.get("properties") or {}
    return schema.get("additionalProperties") is False and set(schema.get("required") or ()) == set(fields)


def subschemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a JSON Schema and every schema in it."""
    yield schema
    for key in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(named := schema.get(key), Mapping):
            for each in named.values():
                yield from subschemas(each) if isinstance(each, Mapping) else ()
    for key in ("items", "additionalProperties", "not", "contains", "anyOf", "oneOf", "allOf", "prefixItems"):
        found = schema.get(key)
        for each in found if isinstance(found, (list, tuple)) else (found,):
            yield from subschemas(each) if isinstance(each, Mapping) else ()


# Which tools the model may or must call.

Mode = Literal["auto", "none", "required", "tool", "native"]
_MODES: dict[str, Mode] = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


class ToolChoice(NamedTuple):
    """What the model does with its tools.

    Attributes:
        mode: Whether it decides itself (`auto`), calls none, must call one (`required`), or must call the
            one that is named (`tool`); `native` if the setting is in the API's own form.
        name: The tool's name for the mode `tool`.
        native: The setting as it is, for the mode `native`.
    """

    mode: Mode
    name: str = ""
    native: Any = None


def read_tool_choice(config: Config) -> ToolChoice | None:
    """Return what the setting `tool_choice` asks for, or None if there is no such setting."""
    setting = config.get("tool_choice")
    if setting is None:
        return None
    if isinstance(setting, str):
        mode = _MODES.get(setting.lower())
        return ToolChoice("tool", setting) if mode is None else ToolChoice(mode)
    if isinstance(setting, Mapping) and setting.keys() == {"name"}:
        return ToolChoice("tool", str(setting["name"]))
    return ToolChoice("native", native=setting)


def read_parallel(config: Config) -> bool | None:
    """Return the setting `parallel_tool_calls`, or None if there is no such setting.

    Raises:
        ConfigError: If it is neither True nor False.
    """
    setting = config.get("parallel_tool_calls")
    if setting is None or isinstance(setting, bool):
        return setting
    problem = f"parallel_tool_calls must be true or false, not {setting!r:.40}"
    raise ConfigError(problem, field="parallel_tool_calls")


def read_effort(config: Config) -> str | None:
    """Return the setting `reasoning_effort` in lower case, or None if there is no such setting.

    Providers know "none", "minimal", "low", "medium" and "high". Any other word is one of the API's own.

    Raises:
        ConfigError: If it is not a word.
    """
    setting = config.get("reasoning_effort")
    if setting is None:
        return None
    if not isinstance(setting, str) or not setting.strip():
        raise ConfigError(
            f'reasoning_effort must be one of "none", "minimal", "low", "medium" and "high", not {setting!r}',
            field="reasoning_effort",
        )
    return setting.strip().lower()
