"""Finding plugins: in modules that somebody lists, and among what is installed.

A listed module is searched by duck typing: the methods of a class tell what it is. Installed plugins
say it themselves, by the entry point group under which they are announced; those that are given to a
runtime or an application as objects may say it by an attribute.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_core.errors import ArgumentError, ArgumentTypeError, RegistrationError
from agent_core.plugin.provider import API_HOOKS
from agent_core.plugin.tool import RUN_HOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.metadata import EntryPoint
    from types import ModuleType

ENTRY_POINT_GROUPS = {
    "providers": "agent_platform.providers",
    "extensions": "agent_platform.extensions",
    "features": "agent_platform.features",
    "tools": "agent_platform.tools",
    "applications": "agent_platform.applications",
}
KINDS = ("provider", "extension", "feature", "tool", "application")
LOAD_PLUGINS = "AGENT_LOAD_PLUGINS"


@dataclass(slots=True)
class FoundPlugins:
    """Plugin classes by kind."""

    providers: list[Any] = field(default_factory=list)
    extensions: list[Any] = field(default_factory=list)
    features: list[Any] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """An entry point: the plugin behind it, or the reason why there is none."""

    kind: str
    name: str
    distribution: str
    plugin: Any = None
    problem: str | None = None


def kind_of(plugin: object, *, serves_application: bool = False) -> str:
    """Return of which kind a plugin is: what its attribute `kind` says, or else what its hooks leave open.

    Args:
        serves_application: Whether its hooks are also those of an application plugin.

    Raises:
        RegistrationError: If it says something else than a kind, or if its hooks fit several.
    """
    name = str(getattr(plugin, "name", None) or getattr(plugin, "__name__", type(plugin).__name__))
    said = getattr(plugin, "kind", None)
    if said is not None:
        if said not in KINDS:
            raise RegistrationError(name, f"its kind must be one of {', '.join(KINDS)}, not {said!r:.80}")
        return str(said)
    fitting = [kind for kind, fits in (("provider", _is_provider), ("tool", _is_tool)) if fits(plugin)]
    fitting += ["application"] * serves_application
    if len(fitting) > 1:
        kinds = " and of a ".join(fitting)
        raise RegistrationError(name, f"its hooks are those of a {kinds}: say which with the attribute kind")
    return fitting[0] if fitting else "extension" if hasattr(plugin, "process_chunk") else "feature"


def find_in_modules(modules: Sequence[str]) -> FoundPlugins:
    """Import the modules and sort the classes that they define by what those can do."""
    if not isinstance(modules, (list, tuple)) or not all(isinstance(path, str) for path in modules):
        raise ArgumentTypeError("modules must be a list of import paths")
    found = FoundPlugins()
    for path in modules:
        here = _sort_classes(importlib.import_module(path))
        here.providers.sort(key=lambda provider: (not _is_named_after(provider, path), provider.__name__))
        found.providers += here.providers
        found.extensions += here.extensions
        found.features += here.features
        found.tools += here.tools
    return found


def find_installed(
    names: Iterable[str] | None = None, kinds: Iterable[str] | None = None
) -> list[InstalledPlugin]:
    """Load installed plugins; one that fails is reported with its reason and the rest still load.

    Args:
        names: Only these. By default the environment variable AGENT_LOAD_PLUGINS decides (a
            comma-separated list, empty for none); where it is not set, all are loaded.
        kinds: Only these kinds, for example ``["tools"]``.

    Raises:
        ArgumentError: If a kind is not known.
    """
    wanted = _wanted(names)
    announced = _announced(tuple(sys.path))
    return [
        _load(kind, entry, distribution)
        for kind in _kinds(kinds)
        for entry, distribution in announced[kind]
        if wanted is None or entry.name in wanted
    ]


def installed_names(kinds: Iterable[str]) -> list[str]:
    """Return the names under which installed packages announce plugins of these kinds; none is loaded."""
    announced = _announced(tuple(sys.path))
    return sorted({entry.name for kind in _kinds(kinds) for entry, _ in announced[kind]})


@cache
def _announced(_path: tuple[str, ...]) -> dict[str, list[tuple[EntryPoint, str]]]:
    """Return the entry points of each kind with their distributions: a file each, so they are read once."""
    from importlib.metadata import entry_points

    found = entry_points()
    return {
        kind: [
            (entry, "unknown" if entry.dist is None else entry.dist.name)
            for entry in sorted(found.select(group=group), key=lambda entry: entry.name)
        ]
        for kind, group in ENTRY_POINT_GROUPS.items()
    }


def _wanted(names: Iterable[str] | None) -> set[str] | None:
    if isinstance(names, str):
        raise ArgumentTypeError("names must be a list of names, not one string")
    if names is not None:
        return set(names)
    chosen = os.environ.get(LOAD_PLUGINS)
    return None if chosen is None else {name.strip() for name in chosen.split(",") if name.strip()}


def _kinds(kinds: Iterable[str] | None) -> list[str]:
    chosen = list(ENTRY_POINT_GROUPS if kinds is None else kinds)
    for kind in chosen:
        if kind not in ENTRY_POINT_GROUPS:
            raise ArgumentError(f"kinds must be among {list(ENTRY_POINT_GROUPS)}, not {kind!r}")
    return chosen


def _load(kind: str, entry: EntryPoint, distribution: str) -> InstalledPlugin:
    try:
        plugin = entry.load()
    except (Exception, SystemExit) as error:  # a plugin's module may do anything
        problem = f"{type(error).__name__}: {error}"
        return InstalledPlugin(kind=kind, name=entry.name, distribution=distribution, problem=problem)
    return InstalledPlugin(kind=kind, name=entry.name, distribution=distribution, plugin=plugin)


def _sort_classes(module: ModuleType) -> FoundPlugins:
    found = FoundPlugins()
    members = [item for _, item in sorted(vars(module).items()) if isinstance(item, type)]
    for item in dict.fromkeys(members):  # a class with two names is still one
        if item.__module__ == module.__name__ and _may_be_plugin(item):
            _list_for(found, item).append(item)
    return found


def _may_be_plugin(item: type) -> bool:
    """Leave out what cannot be meant: private classes, exceptions and protocols."""
    protocol = getattr(item, "_is_protocol", False)
    return not item.__name__.startswith("_") and not issubclass(item, BaseException) and not protocol


def _list_for(found: FoundPlugins, item: type) -> list[Any]:
    if _is_provider(item):
        return found.providers
    if _is_tool(item):
        return found.tools
    return found.extensions if hasattr(item, "process_chunk") else found.features


def _is_provider(plugin: object) -> bool:
    return any(hasattr(plugin, hook) for hook in API_HOOKS)


def _is_tool(plugin: object) -> bool:
    return hasattr(plugin, "get_tool_schemas") and any(hasattr(plugin, hook) for hook in RUN_HOOKS)


def _is_named_after(provider: type, path: str) -> bool:
    module = _identifier(path.rsplit(".", 1)[-1])
    snake_case = re.sub(r"(?<!^)(?=[A-Z])", "_", provider.__name__)
    return module in (_identifier(str(getattr(provider, "name", ""))), _identifier(snake_case))


def _identifier(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
