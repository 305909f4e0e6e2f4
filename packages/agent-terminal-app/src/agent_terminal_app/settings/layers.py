"""Layers of settings: each is read from its place, later ones override earlier ones, and origins are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import SettingsError
from agent_terminal_app.settings.files import ConfigFile, is_there, parse, read_bytes
from agent_terminal_app.settings.keypaths import Way, leaves, spell, value_at
from agent_terminal_app.settings.rules import SANDBOXES, checked, find_fault, find_gap
from agent_terminal_app.settings.trust import is_left_alone, is_trusted, was_trusted

if TYPE_CHECKING:
    from agent_terminal_app.paths import Paths

_LISTS = ("allow", "ask", "deny", "always_ask")


@dataclass(frozen=True, slots=True)
class Layer:
    """The values of one place, and how to find the line of each."""

    values: Mapping[str, Any]
    place: Callable[[Way], str]


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """Return what holds: the later layers over the earlier ones."""
    values: dict[str, Any] = {}
    for layer in layers:
        values = _over(values, layer.values, ())
    return values


def _over(below: Any, above: Any, way: Way) -> Any:
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        own = {key: _over(below.get(key), value, (*way, key)) for key, value in above.items()}
        return {**below, **own}
    if _adds_up(way) and isinstance(below, list) and isinstance(above, list):
        return list(dict.fromkeys([*below, *above]))
    if _stays(way, below):
        return below
    return _over({}, above, way) if isinstance(above, Mapping) else above


def _adds_up(way: Way) -> bool:
    """Say whether a way leads to a list of rules, of which no layer can drop one of another."""
    match way:
        case ("agents", _, "excluded_tools"):
            return True
    return _is_of_permissions(way) and way[-1] in _LISTS


def _stays(way: Way, below: Any) -> bool:
    """Say whether no later layer changes a value: a layer that denies everything else stays in force."""
    return _is_of_permissions(way) and way[-1] == "default" and below == "deny"


def _is_of_permissions(way: Way) -> bool:
    match way:
        case ("permissions", _) | ("agents", _, "sections", "permissions", _):
            return True
    return False


class Origins(Mapping[str, str]):
    """Where each value came from, by its dotted key; looked up on first use."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = tuple(layers)
        self._found: dict[str, str] | None = None

    def __getitem__(self, key: str) -> str:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"Origins({self._all()!r})"

    def entries(self, way: Way) -> list[tuple[Any, str]]:
        """Return the items of a list that counts, each with where it stands."""
        found: list[tuple[Any, str]] = []
        for layer in self._layers:
            try:
                listed = value_at(layer.values, way)
            except LookupError:
                continue
            earlier = found if _adds_up(way) else []
            found = [*earlier, *((one, layer.place((*way, place))) for place, one in enumerate(listed))]
        return found

    def _all(self) -> dict[str, str]:
        if self._found is None:
            self._found = {spell(way): ", ".join(places) for way, places in self._places().items()}
        return self._found

    def _places(self) -> dict[Way, list[str]]:
        found: dict[Way, list[str]] = {}
        fixed: set[Way] = set()
        for layer in self._layers:
            for way, value in leaves(layer.values):
                if way in fixed or (value == {} and any(_is_below(other, way) for other in found)):
                    continue  # an empty table takes nothing away
                earlier = found.get(way, []) if _adds_up(way) else []
                found = {other: places for other, places in found.items() if not _hides(way, other)}
                found[way] = [*earlier, layer.place(way)]
                fixed |= {way} if _stays(way, value) else set()
        return found


def _is_below(other: Way, way: Way) -> bool:
    return other[: len(way)] == way != other


def _hides(way: Way, other: Way) -> bool:
    """Say whether a value at one way leaves no room for one at the other."""
    shorter = min(len(way), len(other))
    return way[:shorter] == other[:shorter]


DEFAULTS: Mapping[str, Any] = {"ui": {"plain": False, "theme": "auto"}}
"""What holds where no layer says anything; `agent_app.defaults` chooses the model and the agent."""
VARIABLES = {"AGENT_MODEL": "model", "AGENT_DEFAULT_AGENT": "default_agent"}
"""The settings that the environment may set."""
CONFIG_VARIABLE = "AGENT_CONFIG"
"""Names another file in place of the user's own."""
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
        warnings: What the user should know.
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
    user: ConfigFile | None = None,
) -> Settings:
    """Return the settings of this user in this project.

    Args:
        project: The folder whose `.agent/config.toml` counts, if it is trusted.
        environment: The variables; by default those of this process.
        flags: The flags of the command line; None for one that was not given.
        user: The user's file as it is going to be, in place of the one that is there.

    Raises:
        SettingsError: If a file cannot be used.
    """
    variables = os.environ if environment is None else environment
    own_file = _user_layer(paths, variables) if user is None else [Layer(user.values, user.place)]
    below = [Layer(DEFAULTS, lambda _way: "default"), *own_file]
    own, warnings, untrusted = _project_layer(paths, project, below)
    layers = [*below, *own, _environment_layer(variables), _flag_layer(flags or {})]
    return Settings(values=merged(layers), origins=Origins(layers), warnings=warnings, untrusted=untrusted)


def user_file(paths: Paths, environment: Mapping[str, str] | None = None) -> Path:
    """Return the user's file: the usual one, or the one that AGENT_CONFIG names."""
    variables = os.environ if environment is None else environment
    named = variables.get(CONFIG_VARIABLE)
    return Path(named).expanduser() if named else paths.config_file


def _user_layer(paths: Paths, variables: Mapping[str, str]) -> list[Layer]:
    path = user_file(paths, variables)
    if not is_there(path) and not variables.get(CONFIG_VARIABLE):
        return []
    file = checked(checked(parse(path, read_bytes(path)), find_fault), find_gap)
    return [Layer(file.values, file.place)]


def _project_layer(
    paths: Paths, project: Path | None, below: Sequence[Layer]
) -> tuple[list[Layer], tuple[str, ...], Path | None]:
    """Return the project's layer, or none and a warning while the user does not trust it."""
    path = None if project is None else paths.project_config(project)
    if path is None or not is_there(path):
        return [], (), None
    try:
        content = read_bytes(path)
    except SettingsError as error:  # a broken file of somebody else must not stop the command
        return [], (f"{error}; it is ignored",), None
    named = ConfigFile(path, content, "", {})  # a file that is not trusted is not even parsed
    if is_trusted(paths, named):
        file = checked(parse(path, content), find_fault)
        checked(file, lambda own: find_gap(merged([*below, Layer(own, str)])))
        values, ignored = _as_strict(file.values, merged(below))
        warnings = tuple(
            f"{file.place(way)} would loosen the sandbox, which a project cannot; {spell(way)} is ignored"
            for way in ignored
        )
        return [Layer(values, file.place)], warnings, None
    if is_left_alone(paths, named):
        return [], (), None
    state = "has changed since you trusted it" if was_trusted(paths, named) else "is not trusted"
    warning = f"{path} {state} and is ignored: look at it, then run `agent config trust`"
    return [], (warning,), path


def _as_strict(values: Mapping[str, Any], below: Mapping[str, Any]) -> tuple[dict[str, Any], list[Way]]:
    """Return a project's values without those that loosen the sandbox, and where these stood."""
    said = below.get("sandbox", "workspace")
    mode = said if isinstance(said, str) else said.get("mode", "workspace")
    looser = SANDBOXES[SANDBOXES.index(mode) + 1 :]
    ignored = [way for way, value in leaves(values) if _is_mode(way) and value in looser]
    return _without(values, (), ignored), ignored


def _is_mode(way: Way) -> bool:
    """Say whether a value says how strict a sandbox is; a plugin's own setting is called the same."""
    return way[-1] == "sandbox" or way[-2:] == ("sandbox", "mode")


def _without(values: Mapping[str, Any], way: Way, left_out: Sequence[Way]) -> dict[str, Any]:
    return {
        key: _without(value, (*way, key), left_out) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if (*way, key) not in left_out
    }


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
