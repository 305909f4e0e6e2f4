"""Reading a request's configuration."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import orjson

from agent_core.encoding import canonical
from agent_core.errors import ConfigError, ConfigTypeError
from agent_core.frozen import FrozenDict, freeze

ConfigKey = tuple[bytes, tuple[Hashable, ...]]

_NAME_LISTS = (
    "enabled_plugins",
    "disabled_plugins",
    "force_enabled_plugins",
    "allowed_tools",
    "excluded_tools",
)


CORE_KEYS = (*_NAME_LISTS, "provider", "model", "tools", "tool_timeout", "tool_timeouts")
"""The keys that the core itself reads; all others are plugins'."""


def read_config(config: object) -> FrozenDict:
    """Return the configuration, frozen, after checking the keys that belong to the core.

    Raises:
        ConfigTypeError: If it is not a dict.
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
    _check_seconds("tool_timeout", config.get("tool_timeout"))
    _check_timeouts(config.get("tool_timeouts"))
    frozen: FrozenDict = freeze(config if isinstance(config, dict) else dict(config))
    return frozen


def plugin_config(config: Mapping[str, Any], plugin: str) -> FrozenDict:
    """Return a configuration as one plugin reads it: with the settings of its own section.

    A section is a dict under the plugin's name. What the configuration itself says under the same key counts
    before it, so that a request or a session can change a setting by its key alone. Hooks get their `config`
    like this; ``context["config"]`` is the one that all plugins share.
    """
    shared: FrozenDict = config if isinstance(config, FrozenDict) else freeze(dict(config))
    section = shared.get(plugin)
    return FrozenDict({**section, **shared}) if isinstance(section, Mapping) and section else shared


class Itself:
    """Stands for an object in a key: equal only to itself, and the object lives as long as the key."""

    __slots__ = ("_object",)

    def __init__(self, value: object) -> None:
        self._object = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)


def as_key(value: object) -> Hashable:
    """Return something hashable that is equal only for what is the same as *value*."""
    try:
        hash(value)
    except TypeError:
        return frozenset(value) if isinstance(value, set) else Itself(value)
    return type(value), value


def config_key(config: Mapping[str, object]) -> ConfigKey:
    """Return a key that is equal for equal configurations only.

    Objects that are not JSON are part of the key themselves: how they print tells too little, since
    two different secrets print alike.
    """
    plain = config if isinstance(config, dict) else dict(config)
    try:
        return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS), ()
    except orjson.JSONEncodeError:
        objects: list[Hashable] = []
        return canonical(_without_objects(plain, objects)), tuple(objects)


def _without_objects(value: object, objects: list[Hashable]) -> object:
    if isinstance(value, dict):
        return {key: _without_objects(value[key], objects) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_without_objects(item, objects) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    objects.append(as_key(value))
    return {"\0object": len(objects)}


def names(config: Mapping[str, Any], key: str) -> list[str]:
    """Return a list of names out of the configuration; missing counts as empty."""
    return list(config.get(key) or ())


def _check_names(key: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ConfigError(f"config[{key!r}] must be a list of names, not {type(value).__name__}", field=key)
    if not all(isinstance(name, str) for name in value):
        raise ConfigError(f"config[{key!r}] must contain only names", field=key)


def _check_timeouts(value: object) -> None:
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"config['tool_timeouts'] must be a dict from tool to seconds, not {type(value).__name__}",
            field="tool_timeouts",
        )
    for tool, seconds in value.items():
        _check_seconds("tool_timeouts", seconds, of=f"[{tool!r}]")


def _check_seconds(key: str, value: object, *, of: str = "") -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise ConfigError(
            f"config[{key!r}]{of} must be a number of seconds, not {type(value).__name__}", field=key
        )
