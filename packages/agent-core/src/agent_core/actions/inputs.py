"""What an action takes: its inputs, as a plugin declares them in either of two forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_core.actions.reader import Reader
from agent_core.actions.values import TYPES, InputType, fits, hint, same, type_name
from agent_core.frozen import FrozenDict, freeze

_KEYS = ("type", "required", "default", "enum", "label", "description")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionInput:
    """One value that an action takes.

    Attributes:
        default: Used when the value is absent; None for no default.
        enum: The values allowed; empty when any will do.
        extra: Keys of the definition that the core does not know, as they were.
    """

    name: str
    type: InputType = "any"
    required: bool = False
    default: Any = None
    enum: tuple[Any, ...] = ()
    label: str = ""
    description: str = ""
    extra: Mapping[str, Any] = field(default_factory=FrozenDict)

    def problem_with(self, value: object) -> str | None:
        """Say what is wrong with *value*, or return None if the input takes it."""
        if not fits(value, self.type):
            return f"expected {self.type}, got {type_name(value)}"
        if self.enum and not any(same(value, allowed) for allowed in self.enum):
            return f"{value!r:.80} is none of {', '.join(map(repr, self.enum))}"
        return None


def read_inputs(action: Reader) -> FrozenDict:
    """Return an action's inputs by name, from a mapping of names or from the list that a dialog shows.

    Raises:
        PluginError: If an input is not what it should be; the message names it.
    """
    given = action.value("inputs")
    if isinstance(given, Mapping):
        return FrozenDict({name: _read(action, name, spec) for name, spec in given.items()})
    inputs: dict[str, ActionInput] = {}
    for index, spec in enumerate(action.items("inputs")):
        place = f"inputs[{index}]"
        name = Reader(action.plugin, f"{action.where}, field {place!r}", spec).name("name")
        if name in inputs:
            raise action.error(f"another input has the name {name!r}", f"{place}.name")
        inputs[name] = _read(action, name, {key: spec[key] for key in spec if key != "name"})
    return FrozenDict(inputs)


def _read(action: Reader, name: object, spec: object) -> ActionInput:
    if not isinstance(name, str) or not name:
        raise action.error(f"a name of an input is no text: {name!r:.80}", "inputs")
    read = Reader(action.plugin, f"{action.where}, input {name!r}", spec)
    wanted = ActionInput(
        name=name,
        type=_read_type(read),
        required=read.flag("required"),
        default=freeze(read.value("default")),
        enum=tuple(map(freeze, read.items("enum"))),
        label=read.text("label"),
        description=read.text("description"),
        extra=read.rest(*_KEYS),
    )
    _check_own_values(read, wanted)
    return wanted


def _read_type(read: Reader) -> InputType:
    name = read.text("type") or "any"
    for known in TYPES:
        if name == known:
            return known
    raise read.error(f"unknown type {name!r}{hint(name, TYPES)}", "type")


def _check_own_values(read: Reader, wanted: ActionInput) -> None:
    # A default, or a choice, that the input itself would refuse helps nobody.
    for allowed in wanted.enum:
        if not fits(allowed, wanted.type):
            raise read.error(f"expected {wanted.type}, got {type_name(allowed)}", "enum")
    if wanted.default is not None and (problem := wanted.problem_with(wanted.default)):
        raise read.error(problem, "default")
