"""Files that belong to the application, and that no tool of a model shall touch, wherever a workspace is.

Every request has them in its configuration under `protected_paths`, as absolute paths of files and of folders
with all that is in them. A tool that works on files leaves them alone: it neither reads nor writes them, and
does not say that they are there. Only the program that opens the application says which these are. A
configuration file, a session and a caller cannot take any off the list.

The application adds what it knows itself: its database, its attachments, and the files that plugins keep. A
plugin tells those by a static method `own_paths(settings)`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_log = get_logger("app")
PROTECTED = "protected_paths"
"""The key of a request's configuration."""
_SQLITE = "sqlite:///"
_BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite puts beside a database, by the ends of the names."""


def protected_paths(given: Iterable[str | Path], store: Any, assets: Any) -> tuple[str, ...]:
    """Return what a program names, and what an application keeps in files itself, without links.

    Args:
        given: Files and folders.
        store: The session store, or its URL.
        assets: The asset store, or its place.
    """
    url = store if isinstance(store, str) else getattr(store, "url", "")
    places = [*given, *_database(url)]
    if isinstance(assets, Path) or (isinstance(assets, str) and "://" not in assets):
        places.append(assets)
    return tuple(dict.fromkeys(_real(place) for place in places))


def kept_by_plugins(config: Mapping[str, Any], plugins: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that plugins keep, with the settings of the application and with those of agents."""
    found: list[str] = []
    for name, plugin in plugins.items():
        if hasattr(plugin, "own_paths"):
            for settings in _settings_of(name, config):
                found += _told_by(plugin, name, settings)
    return tuple(dict.fromkeys(map(_real, found)))


def _settings_of(name: str, config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings that a plugin has: those of the application, and an agent's own."""
    yield config.get("plugins", {}).get(name, {})
    for agent in config.get("agents", {}).values():
        sections = agent.get("sections")
        if isinstance(sections, Mapping) and name in sections:
            yield sections[name]


def _told_by(plugin: Any, name: str, settings: Mapping[str, Any]) -> list[str]:
    try:
        return [str(path) for path in plugin.own_paths(settings)]
    except Exception as error:  # noqa: BLE001 - a plugin's code; settings that are wrong are told elsewhere
        _log.warning("own_paths_not_told", plugin=name, error=str(error))
        return []


def check_unsaid(config: Mapping[str, Any]) -> None:
    """Refuse a configuration that says itself what is protected, for it could say too little.

    Raises:
        ConfigError: With the field.
    """
    for agent, spec in config.get("agents", {}).items():
        sections = spec.get("sections")
        _check(sections, "config", f"agents.{agent}.sections")
    for model, spec in config.get("models", {}).items():
        _check(spec, "config", f"models.{model}")


def _check(outer: Any, key: str, where: str) -> None:
    inner = outer.get(key) if isinstance(outer, Mapping) else None
    if isinstance(inner, Mapping) and PROTECTED in inner:
        field = f"{where}.{key}.{PROTECTED}"
        raise ConfigError(
            f"{field} is not yours to set: the program that opens the application does", field=field
        )


def _database(url: str) -> Iterator[str]:
    path = url.removeprefix(_SQLITE)
    if path not in ("", url, ":memory:"):
        yield from (f"{path}{end}" for end in _BESIDE)


def _real(path: str | Path) -> str:
    return os.path.realpath(Path(path).expanduser())
