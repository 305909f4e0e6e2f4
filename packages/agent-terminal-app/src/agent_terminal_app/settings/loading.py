"""All layers, read for one start."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import SettingsError
from agent_terminal_app.settings.faults import Fault, find_fault, find_gap
from agent_terminal_app.settings.layers import Layer, Origins, merged
from agent_terminal_app.settings.sources import ConfigFile, is_there, parse, read_bytes
from agent_terminal_app.settings.ways import Way, spell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_terminal_app.paths import Paths

DEFAULTS: Mapping[str, Any] = {"ui": {"plain": False, "theme": "auto"}}
"""What holds where nobody says anything; the model and the agent are chosen when the application opens."""
VARIABLES = {"AGENT_MODEL": "model", "AGENT_DEFAULT_AGENT": "default_agent"}
"""The settings that the environment may say."""
CONFIG_VARIABLE = "AGENT_CONFIG"
"""Names another file in place of the person's usual one."""
_FLAGS: Mapping[str, Way] = {
    "agent": ("default_agent",),
    "plain": ("ui", "plain"),
    "theme": ("ui", "theme"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds now.

    Attributes:
        values: All settings, merged.
        origins: Where each value came from, by its dotted path.
        warnings: What the person should know.
        untrusted: The project's file, if it says something that does not count yet.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    untrusted: Path | None = None


def load_settings(
    paths: Paths,
    *,
    project: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings of this person in this project.

    Args:
        project: The folder whose `.agent/config.toml` counts, if it is trusted.
        environment: The variables; by default those of this process.
        flags: What was said on the command line; None for a flag that was not given.

    Raises:
        SettingsError: If a file cannot be used.
    """
    variables = os.environ if environment is None else environment
    below = [Layer(DEFAULTS, lambda _way: "default"), *_user_layer(paths, variables)]
    own, warnings, untrusted = _project_layer(paths, project, below)
    layers = [*below, *own, _environment_layer(variables), _flag_layer(flags or {})]
    return Settings(values=merged(layers), origins=Origins(layers), warnings=warnings, untrusted=untrusted)


def user_file(paths: Paths, environment: Mapping[str, str] | None = None) -> Path:
    """Return the person's file: the usual one, or the one that AGENT_CONFIG names."""
    variables = os.environ if environment is None else environment
    named = variables.get(CONFIG_VARIABLE)
    return Path(named).expanduser() if named else paths.config_file


def checked(file: ConfigFile, find: Callable[[Mapping[str, Any]], Fault | None]) -> ConfigFile:
    """Return the file if nothing is wrong with it.

    Raises:
        SettingsError: With the line of what is wrong.
    """
    fault = find(file.values)
    if fault is None:
        return file
    raise SettingsError(str(file.path), file.line(fault.way), fault.problem, hint=fault.hint)


def _user_layer(paths: Paths, variables: Mapping[str, str]) -> list[Layer]:
    path = user_file(paths, variables)
    if not is_there(path) and not variables.get(CONFIG_VARIABLE):
        return []
    file = checked(checked(parse(path, read_bytes(path)), find_fault), find_gap)
    return [Layer(file.values, file.place)]


def _project_layer(
    paths: Paths, project: Path | None, below: Sequence[Layer]
) -> tuple[list[Layer], tuple[str, ...], Path | None]:
    """Return the project's layer, or none and a warning while nobody trusts it."""
    path = None if project is None else paths.project_config(project)
    if path is None or not is_there(path):
        return [], (), None
    from agent_terminal_app.settings.trust import is_left_alone, is_trusted, was_trusted

    try:
        content = read_bytes(path)
    except SettingsError as error:  # a stranger's file must not keep the command from working
        return [], (f"{error}; it is ignored",), None
    named = ConfigFile(path, content, "", {})  # a stranger's file is not even parsed
    if is_trusted(paths, named):
        file = checked(parse(path, content), find_fault)
        checked(file, lambda own: find_gap(merged([*below, Layer(own, str)])))
        return [Layer(file.values, file.place)], (), None
    if is_left_alone(paths, named):
        return [], (), None
    state = "has changed since you trusted it" if was_trusted(paths, named) else "is not trusted"
    warning = f"{path} {state} and is ignored: look at it, then run `agent config trust`"
    return [], (warning,), path


def _environment_layer(variables: Mapping[str, str]) -> Layer:
    values = {
        key: variables[name].strip() for name, key in VARIABLES.items() if variables.get(name, "").strip()
    }
    names = {key: name for name, key in VARIABLES.items()}
    return Layer(values, lambda way: f"environment {names[str(way[0])]}")


def _flag_layer(flags: Mapping[str, Any]) -> Layer:
    values: dict[str, Any] = {}
    names: dict[Way, str] = {}
    for name, value in flags.items():
        way = _FLAGS.get(name, (name,))
        if value is not None:
            values = merged([Layer(values, str), Layer(_nested(way, value), str)])
            names[way] = f"flag --{name.replace('_', '-')}"
    return Layer(values, lambda way: names.get(way) or names.get(way[:1]) or f"flag {spell(way)}")


def _nested(way: Way, value: Any) -> dict[str, Any]:
    for step in reversed(way):
        value = {step: value}
    nested: dict[str, Any] = value
    return nested
