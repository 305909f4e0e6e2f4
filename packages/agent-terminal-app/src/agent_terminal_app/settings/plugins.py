"""Settings of plugins, checked against what the plugins declare.

Reading settings loads no plugin, so these are not checked at a start. They are checked here when a setting
is changed and when `agent doctor` or `agent agents check` runs; and when an agent cannot be built, this
finds the line with the mistake.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from agent_core.config import CORE_KEYS
from agent_core.errors import nearest
from agent_core.json_schema import compile_schema
from agent_core.plugin.discovery import ENTRY_POINT_GROUPS, find_installed
from agent_runtime.errors import InvalidPluginConfig, missing_plugin_hint
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.settings.changes import Change
from agent_terminal_app.settings.keypaths import Way, read_way, spell
from agent_terminal_app.settings.rules import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from agent_runtime import BuildError
    from agent_terminal_app.paths import Paths
    from agent_terminal_app.settings import Settings

_PROVIDERS = "providers"
_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_RULES = ("type", "enum", "items", "minimum", "maximum", "exclusiveMinimum", "minLength", "pattern")


def set_checked(paths: Paths, key: str, value: Any) -> Path:
    """Write one setting into the user's file, unless its plugin does not have it.

    Raises:
        CommandError: If there is no such setting, or it cannot have this value.
        SettingsError: If the file cannot be used as it is.
    """
    return check_plugins(Change.of(paths, {key: value}), key).save()


def check_plugins(change: Change, key: str) -> Change:
    """Return a change, unless a plugin does not have the setting at a key, or one below it.

    Raises:
        CommandError: With what is wrong.
    """
    for fault in plugin_faults(change.values):
        if _touches(fault.way, read_way(key)):
            raise CommandError(fault.problem, code=Exit.USAGE, hint=fault.hint, field=spell(fault.way))
    return change


def fault_lines(settings: Settings) -> list[str]:
    """Return what is wrong with the settings of plugins, each with where it stands."""
    return [_fault_line(settings, fault) for fault in plugin_faults(settings.values)]


def build_problems(settings: Settings, error: BuildError) -> list[str]:
    """Return why agents cannot be built; of a plugin's settings where they stand, once for all agents."""
    lines: list[str] = []
    for problem in error.errors:
        plugin = problem.error.plugin if isinstance(problem.error, InvalidPluginConfig) else None
        faults = [one for one in plugin_faults(settings.values) if plugin is not None and plugin in one.way]
        found = [_fault_line(settings, one) for one in faults]
        text = " ".join(str(problem.error).split())
        lines += found or [text if repr(problem.id) in text else f"{problem.id}: {text}"]
    return list(dict.fromkeys(lines))


def _fault_line(settings: Settings, fault: Fault) -> str:
    hint = f"; {fault.hint}" if fault.hint else ""
    return f"{_place(settings, fault.way)}: {fault.problem}{hint}"


def plugin_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Find what is wrong with the settings of plugins: of all agents, of one agent, of a model's provider."""
    for name, section in values.get("plugins", {}).items():
        yield from _faults(name, section, ("plugins", name))
    for agent, spec in values.get("agents", {}).items():
        for name, section in spec.get("sections", {}).items():
            if name in _names():  # others belong to the runtime, which looks at them itself
                yield from _faults(name, section, ("agents", agent, "sections", name))
    for model, spec in values.get("models", {}).items():
        if spec.get("provider") in _names():
            yield from _faults(spec["provider"], spec.get("config", {}), ("models", model, "config"))


def _faults(name: str, section: Mapping[str, Any], way: Way) -> Iterator[Fault]:
    if name not in _names():
        yield Fault(way, f"there is no plugin {name!r}", missing_plugin_hint(name, _names()))
        return
    for found in find_installed(names=[name]):
        schema = _schema(found.plugin, name)
        if found.problem is not None or schema is None:
            continue
        known = schema["properties"]
        others = _shared_keys() if found.kind == _PROVIDERS else ()
        for key in section if schema.get("additionalProperties") is False else ():
            if key not in known and key not in others:
                yield Fault((*way, key), f"{name} has no setting {key!r}", nearest(key, known))
        yield from _misfits({key: value for key, value in section.items() if key in known}, schema, way)


def _misfits(section: Mapping[str, Any], schema: Mapping[str, Any], way: Way) -> Iterator[Fault]:
    try:
        validator = compile_schema(dict(schema))
    except ValueError:
        return  # the author of the plugin has to fix that
    for problem in validator.iter_errors(section):
        place = (*way, *problem.instance_path)
        unknown = getattr(problem.kind, "unexpected", None)
        if unknown is None:
            yield Fault(place, f"{spell(place)} does not fit: {problem.message}")
        for key in unknown or ():
            known = _known_keys(schema, problem.schema_path)
            yield Fault((*place, key), f"{spell(place)} has no setting {key!r}", nearest(key, known))


def _known_keys(schema: Mapping[str, Any], way: Sequence[str | int]) -> list[str]:
    """Return the keys that a table may have, by the way to the rule in the schema that refuses others."""
    found: Any = schema
    try:
        for step in way[:-1]:
            found = found[step]
        return [str(key) for key in found["properties"]]
    except (LookupError, TypeError):
        return []


def _schema(plugin: Any, name: str) -> Mapping[str, Any] | None:
    """Return what a plugin says of its settings, as JSON Schema; None if it says nothing that can be read."""
    try:
        made = plugin() if isinstance(plugin, type) else plugin
        declared = dict(made.config_schemas()).get(name) if hasattr(made, "config_schemas") else None
        own = made.get_config_schema() if hasattr(made, "get_config_schema") else None
        return _with_properties(declared) if own is None else _of_keys(own, declared)
    except Exception:  # a plugin's own code; `agent plugins list` reports that it is broken
        return None


def _with_properties(declared: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return declared if declared is not None and "properties" in declared else None


def _of_keys(own: Mapping[str, Any], declared: Mapping[str, Any] | None) -> Mapping[str, Any]:
    keys = {key: _rules_of(said) for key, said in own.items()}
    more = {} if declared is None else declared.get("properties", {})
    return {"type": "object", "properties": {**keys, **more}, "additionalProperties": False}


def _rules_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a setting as far as JSON Schema knows it; "any", for example, it does not."""
    rules = {rule: said[rule] for rule in _RULES if rule in said}
    return rules if rules.get("type") in _TYPES else {key: rules[key] for key in rules if key != "type"}


@cache
def _names() -> tuple[str, ...]:
    """Return the plugins that are installed, without loading any."""
    groups = ENTRY_POINT_GROUPS.values()
    return tuple(sorted({entry.name for group in groups for entry in entry_points(group=group)}))


@cache
def _shared_keys() -> frozenset[str]:
    """Return the keys that a provider's table may have besides its own: requests carry all in one table."""
    schemas = (_schema(found.plugin, found.name) for found in find_installed() if found.kind != _PROVIDERS)
    return frozenset(CORE_KEYS).union(*(schema["properties"] for schema in schemas if schema is not None))


def _touches(one: Way, other: Iterable[str]) -> bool:
    return all(step == place for step, place in zip(one, other, strict=False))


def _place(settings: Settings, way: Way) -> str:
    """Return where a setting stands, or the first of those in it."""
    name, origins = spell(way), settings.origins
    inside = (
        place for key, place in origins.items() if key == name or key.startswith((f"{name}.", f"{name}["))
    )
    around = (place for key, place in origins.items() if name.startswith(key))
    return next(inside, None) or next(around, None) or name
