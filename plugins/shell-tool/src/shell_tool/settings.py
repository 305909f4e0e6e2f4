"""What the configuration says about commands, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_core import ConfigError

ROOTS = "roots"
BASH = "shell_bash"
TIMEOUT = "shell_timeout"
MAX_TIMEOUT = "shell_max_timeout"
GRACE = "shell_grace"
OUTPUT = "shell_output_bytes"
STREAM = "shell_stream_bytes"
KEEP = "shell_keep_bytes"
MAX_JOBS = "shell_max_jobs"
ENV = "shell_env"
ENV_ALLOW = "shell_env_allow"
ENV_DENY = "shell_env_deny"

SCHEMA: dict[str, Any] = {
    ROOTS: {
        "type": "array",
        "items": {"type": "string"},
        "description": "Folders to run commands in if the session names none; the first is the default.",
    },
    BASH: {"type": "string", "default": "bash", "description": "The bash that runs commands."},
    TIMEOUT: {"type": "number", "default": 120, "description": "Seconds that a command has by default."},
    MAX_TIMEOUT: {
        "type": "number",
        "default": 3600,
        "description": "Seconds that a call may ask for at most.",
    },
    GRACE: {
        "type": "number",
        "default": 2,
        "description": "Seconds between asking a command to end and ending it by force.",
    },
    OUTPUT: {"type": "integer", "default": 30_000, "description": "Bytes of output that the model reads."},
    STREAM: {
        "type": "integer",
        "default": 10_000_000,
        "description": "Bytes of output that are shown while a command runs.",
    },
    KEEP: {
        "type": "integer",
        "default": 50_000_000,
        "description": "Bytes of output of one command that are kept, in a temporary file.",
    },
    MAX_JOBS: {
        "type": "integer",
        "default": 16,
        "description": "Commands of one session that may run in the background at once.",
    },
    ENV: {"type": "object", "description": "Variables that commands have in any case."},
    ENV_ALLOW: {
        "type": "array",
        "items": {"type": "string"},
        "description": "Patterns of variables that commands have although they look like secrets.",
    },
    ENV_DENY: {
        "type": "array",
        "items": {"type": "string"},
        "description": "Patterns of variables that commands do not have.",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one configuration; `SCHEMA` describes them."""

    roots: tuple[Path, ...] = ()
    bash: str = "bash"
    timeout: float = 120
    max_timeout: float = 3600
    grace: float = 2
    output_bytes: int = 30_000
    stream_bytes: int = 10_000_000
    keep_bytes: int = 50_000_000
    max_jobs: int = 16
    env: Mapping[str, str] = field(default_factory=dict)
    env_allow: tuple[str, ...] = ()
    env_deny: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one cannot be used; `field` names it.
        """
        return cls(
            roots=tuple(Path(text) for text in _texts(config, ROOTS)),
            bash=_text(config, BASH),
            timeout=_number(config, TIMEOUT),
            max_timeout=_number(config, MAX_TIMEOUT),
            grace=_number(config, GRACE),
            output_bytes=_count(config, OUTPUT),
            stream_bytes=_count(config, STREAM),
            keep_bytes=_count(config, KEEP),
            max_jobs=_count(config, MAX_JOBS),
            env=_environment(config),
            env_allow=_texts(config, ENV_ALLOW),
            env_deny=_texts(config, ENV_DENY),
        )


def _value(config: Mapping[str, Any], key: str) -> Any:
    value = config.get(key)
    return SCHEMA[key].get("default") if value is None else value


def _text(config: Mapping[str, Any], key: str) -> str:
    value = _value(config, key)
    if not isinstance(value, str) or not value:
        raise _wrong(key, "a text", value)
    return value


def _texts(config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = config.get(key)
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item for item in value):
        raise _wrong(key, "a list of texts that are not empty", value)
    return tuple(value)


def _number(config: Mapping[str, Any], key: str) -> float:
    value = _value(config, key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise _wrong(key, "a number above 0", value)
    return value


def _count(config: Mapping[str, Any], key: str) -> int:
    value = _value(config, key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(key, "a whole number above 0", value)
    return value


def _environment(config: Mapping[str, Any]) -> dict[str, str]:
    value = config.get(ENV)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(ENV, "an object of names and texts", value)
    for name, text in value.items():
        usable = isinstance(name, str) and name and "=" not in name and isinstance(text, str)
        if not usable or "\0" in name + text:
            raise _wrong(ENV, "an object of names and texts", value)
    return dict(value)


def _wrong(key: str, wanted: str, value: Any) -> ConfigError:
    return ConfigError(f"config[{key!r}] must be {wanted}, not {value!r:.80}", field=key)
