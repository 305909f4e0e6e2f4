"""What every agent is forbidden, whatever it declares: by shared permissions, and by protected files.

The `permissions` of the configuration restrict every agent: the lists `deny`, `always_ask` and `ask` add up
with an agent's own, and a shared `default` of "deny" stays. They allow something only to agents without a
section of their own: an agent's own `allow`, `default` and `on_ask` replace the shared ones, so that an agent
can be given less than the others. Between an `allow` and an `ask` the most specific pattern decides,
whichever section it is in.

Protected files belong to the application, and no tool of a model may touch them, wherever a workspace is.
Every request has them in its configuration under `protected_paths`, as absolute paths of files and of folders
with everything in them. A tool that works on files neither reads nor writes them, and does not reveal that
they exist. Only the program that opens the application sets them: a configuration file, a session and a
caller cannot take any off the list. The application adds its database, its attachments, and the files of
plugins, which a plugin names in a static method `own_paths(settings)`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError
from agent_core.log import get_logger
from agent_runtime.permissions import FLOOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_log = get_logger("app")
PROTECTED = "protected_paths"
"""The key of a request's configuration."""
_SQLITE = "sqlite:///"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""The files that SQLite puts next to a database, by the ends of their names."""


def protected_paths(given: Iterable[str | os.PathLike[str]], store: Any, assets: Any) -> tuple[str, ...]:
    """Return the files that a program names, and those of the application itself, with links resolved.

    Args:
        given: Files and folders.
        store: The session store, or its URL.
        assets: The asset store, or its folder or URL.
    """
    url = store if isinstance(store, str) else getattr(store, "url", "")
    places = [*given, *_database(url)]
    if isinstance(assets, os.PathLike) or (isinstance(assets, str) and "://" not in assets):
        places.append(assets)
    return tuple(dict.fromkeys(_real(place) for place in places))


def plugin_paths(config: Mapping[str, Any], plugins: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files of plugins, with the settings of the application and those of agents."""
    found: list[str] = []
    for name, plugin in plugins.items():
        if hasattr(plugin, "own_paths"):
            for settings in _settings_of(name, config):
                found += _own_paths(plugin, name, settings)
    return tuple(dict.fromkeys(map(_real, found)))


def _settings_of(name: str, config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of a plugin: the application's, and those of each agent."""
    yield config.get("plugins", {}).get(name, {})
    for agent in config.get("agents", {}).values():
        for sections in (agent, agent.get("sections")):  # an agent may be written as one flat dict
            if isinstance(sections, Mapping) and isinstance(sections.get(name), Mapping):
                yield sections[name]


def _own_paths(plugin: Any, name: str, settings: Mapping[str, Any]) -> list[str]:
    try:
        return [str(path) for path in plugin.own_paths(settings)]
    except Exception as error:  # a plugin's code; wrong settings are reported elsewhere
        _log.warning("own_paths_failed", plugin=name, error=str(error))
        return []


def check_not_configured(config: Mapping[str, Any]) -> None:
    """Refuse a configuration that sets protected paths itself, since it could list too few.

    Raises:
        ConfigError: With the field.
    """
    for agent, spec in config.get("agents", {}).items():
        _check(spec, f"agents.{agent}")
        _check(spec.get("config"), f"agents.{agent}.config")
        sections = spec.get("sections")
        if isinstance(sections, Mapping):
            _check(sections.get("config"), f"agents.{agent}.sections.config")
    for model, spec in config.get("models", {}).items():
        _check(spec.get("config"), f"models.{model}.config")


def _check(settings: Any, where: str) -> None:
    if isinstance(settings, Mapping) and PROTECTED in settings:
        field = f"{where}.{PROTECTED}"
        raise ConfigError(
            f"{field} cannot be set here: the program that opens the application sets it; remove it",
            field=field,
        )


def _database(url: str) -> Iterator[str]:
    path = url.removeprefix(_SQLITE)
    if path not in ("", url, ":memory:"):
        yield from (f"{path}{end}" for end in _SUFFIXES)


def _real(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(Path(path).expanduser())


RESTRICTING = ("deny", FLOOR, "ask")
"""The lists that add up: an agent's section cannot remove anything from them."""
_UNDECLARED = {"default": "allow"}
"""The permissions of an agent that declares none: everything runs, except what a grant denies."""


def combined_permissions(shared: Mapping[str, Any], own: Any) -> Any:
    """Return the permissions that apply to an agent.

    Args:
        shared: The `permissions` of the configuration.
        own: The agent's own section; None if it has none. Anything but a section is returned unchanged, and
            refused where it is read.
    """
    if own is None:
        return shared or _UNDECLARED
    if not isinstance(own, Mapping):
        return own
    lists = {name: _added_up(shared.get(name, ()), own.get(name, ())) for name in RESTRICTING}
    kept = {name: listed for name, listed in lists.items() if listed}
    default = {"default": "deny"} if shared.get("default") == "deny" else {}
    return {**own, **kept, **default}


def _added_up(shared: Any, own: Any) -> Any:
    """Return both lists as one; anything but a list is returned unchanged, and refused where it is read."""
    for given in (own, shared):
        if isinstance(given, str) or not isinstance(given, (list, tuple)):
            return given
    both: Iterable[Any] = (*shared, *own)
    return list(dict.fromkeys(both)) if all(isinstance(one, str) for one in both) else list(both)
