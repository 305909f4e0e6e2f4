"""Reading a request's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.encoding import canonical
from agent_core.errors import ConfigError, ConfigTypeError
from agent_core.frozen import FrozenDict, freeze

_NAME_LISTS = (
    "enabled_plugins",
    "disabled_plugins",
    "force_enabled_plugins",
    "allowed_tools",
    "excluded_tools",
)


def read_config(config: Any) -> FrozenDict:
    """Return the configuration, frozen, after checking the keys that belong to the core.

    Raises:
        ConfigTypeError: If it is no dict.
        ConfigError: If one of the core's own keys has the wrong type; `field` names it.
    """
    if not isinstance(config, Mapping):
        raise ConfigTypeError(f"config must be a dict, not {type(config).__name__}")
    for key in _NAME_LISTS:
        _check_names(key, config.get(key))
    for key in ("provider", "model"):
        if config.get(key) is not None and not isinstance(config[key], str):
            raise ConfigError(
                f"config[{key!r}] must be a string, not {type(config[key]).__name__}", field=key
            )
    frozen: FrozenDict = freeze(config if isinstance(config, dict) else dict(config))
    return frozen


def config_key(config: Mapping[str, Any]) -> bytes:
    """Return bytes that are equal for equal configurations."""
    return canonical(config)


def names(config: Mapping[str, Any], key: str) -> list[str]:
    """Return a list of names out of the configuration; missing counts as empty."""
    return list(config.get(key) or ())


def _check_names(key: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ConfigError(f"config[{key!r}] must be a list of names, not {type(value).__name__}", field=key)
    if not all(isinstance(name, str) for name in value):
        raise ConfigError(f"config[{key!r}] must contain only names", field=key)
