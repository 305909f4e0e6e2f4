"""Actions that plugins offer for a session: what they are called, when they run, what they take.

A plugin lists its actions as dicts, which are read once, here. An action without a trigger waits for a
user. A trigger is the name of a lifecycle. Applications may run lifecycles of any name;
`STANDARD_LIFECYCLES` are those that they always run.

Input types are exact: a form that turned "3" into 3 would hide mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from agent_core.errors import (
    ActionInputError,
    ActionNotConfirmedError,
    ArgumentTypeError,
    PluginError,
    closest,
)
from agent_core.frozen import FrozenDict, JsonObject, freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


InputType = Literal["string", "integer", "number", "boolean", "array", "object", "any"]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


TYPES: Final[dict[InputType, Callable[[object], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "any": lambda _value: True,
}


def fits(value: object, wanted: InputType) -> bool:
    """Whether *value* is of that type; True is not an integer, an integer is a number, NaN is not."""
    return TYPES[wanted](value)


def type_name(value: object) -> str:
    """Name the type of *value* as an input would."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    names = (name for name, test in TYPES.items() if name != "any" and test(value))
    return "null" if value is None else next(names, type(value).__name__)


def same(value: object, allowed: object) -> bool:
    """Whether two values are one answer; for Python True equals 1, for a form it does not."""
    return bool(value == allowed) and isinstance(value, bool) == isinstance(allowed, bool)


def hint(name: object, known: Iterable[str]) -> str:
    """End a sentence about an unknown *name* with the nearest known one, or all of them."""
    names = tuple(known)
    if (close := closest(name, names)) is not None:
        return f", did you mean {close!r}?"
    return f"; known are {', '.join(map(repr, names))}" if names else "; none is known"


class Reader:
    """Reads one dict of a plugin; None counts as absent.

    Args:
        where: What the dict describes, for messages: ``action 'compact'``.

    Raises:
        PluginError: From every method, if the field is not what it is read as.
    """

    def __init__(self, plugin: str, where: str, given: object) -> None:
        self.plugin = plugin
        self.where = where
        if not isinstance(given, Mapping):
            raise self.error(f"expected object, got {type_name(given)}")
        self.given = given

    def error(self, problem: str, key: str | None = None) -> PluginError:
        place = self.where if key is None else f"{self.where}, field {key!r}"
        return PluginError(self.plugin, "get_actions", f"{place}: {problem}")

    def value(self, key: str) -> object:
        return self.given.get(key)

    def text(self, key: str) -> str:
        """Return a string, empty if absent."""
        value = "" if self.value(key) is None else self.value(key)
        if not isinstance(value, str):
            raise self.error(f"expected string, got {type_name(value)}", key)
        return value

    def name(self, key: str) -> str:
        """Return a string that has to be there."""
        if not (name := self.text(key)):
            raise self.error("required, but missing or empty", key)
        return name

    def names(self, key: str) -> tuple[str, ...]:
        """Return one name, or several, as a tuple."""
        value = self.value(key)
        names = (value,) if isinstance(value, str) else self.items(key)
        for name in names:
            if not isinstance(name, str) or not name:
                raise self.error(f"expected a name or a list of names, got {value!r:.80}", key)
        return names

    def flag(self, key: str) -> bool:
        """Return a boolean, False if absent."""
        value = self.value(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"expected boolean, got {type_name(value)}", key)
        return bool(value)

    def items(self, key: str) -> tuple[Any, ...]:
        """Return an array as a tuple, empty if absent."""
        value = () if self.value(key) is None else self.value(key)
        if not isinstance(value, list | tuple):
            raise self.error(f"expected array, got {type_name(value)}", key)
        return tuple(value)

    def rest(self, *known: str) -> FrozenDict:
        """Return every field that is not *known*."""
        return FrozenDict({key: freeze(value) for key, value in self.given.items() if key not in known})


_INPUT_KEYS = ("type", "required", "default", "enum", "label", "description")


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
        return FrozenDict({name: _read_input(action, name, spec) for name, spec in given.items()})
    inputs: dict[str, ActionInput] = {}
    for index, spec in enumerate(action.items("inputs")):
        place = f"inputs[{index}]"
        name = Reader(action.plugin, f"{action.where}, field {place!r}", spec).name("name")
        if name in inputs:
            raise action.error(f"another input has the name {name!r}", f"{place}.name")
        inputs[name] = _read_input(action, name, {key: spec[key] for key in spec if key != "name"})
    return FrozenDict(inputs)


def _read_input(action: Reader, name: object, spec: object) -> ActionInput:
    if not isinstance(name, str) or not name:
        raise action.error(f"the name of an input must be text, not {name!r:.80}", "inputs")
    read = Reader(action.plugin, f"{action.where}, input {name!r}", spec)
    wanted = ActionInput(
        name=name,
        type=_read_type(read),
        required=read.flag("required"),
        default=freeze(read.value("default")),
        enum=tuple(map(freeze, read.items("enum"))),
        label=read.text("label"),
        description=read.text("description"),
        extra=read.rest(*_INPUT_KEYS),
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


Owner = Literal["provider_extension", "feature", "application"]

STANDARD_LIFECYCLES: Final = (
    "session_create",
    "session_save_prepare",
    "request_prepare",
    "request_complete",
    "request_error",
    "session_fork",
    "agent_switch_prepare",
    "agent_switch_complete",
    "session_delete_prepare",
)
RESPONSE_FINALIZE: Final = "response_finalize"
"""Run by the core itself, once a turn's answer is known and before anyone sees it."""

_ACTION_KEYS = (
    "id", "label", "description", "inputs", "trigger", "idempotent", "manual", "confirm", "timeout",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that a plugin can do with a session, on request or at a lifecycle.

    Attributes:
        owner: The kind of plugin that it belongs to.
        triggers: The lifecycles at which it runs; none for an action that people alone run.
        is_manual: Whether people are offered it: one without a trigger, one whose plugin says so, and one
            that takes inputs which no lifecycle gives.
        confirm: What to ask before it runs; empty if it just runs.
        timeout: How many seconds it may take; None for as long as it takes.
        idempotent: Whether the plugin says that running it twice does no harm.
        extra: Keys of the definition that the core does not know, as they were.
        definition: The dict that the plugin gave, which is what `to_dict` shows.
    """

    id: str
    plugin: str
    owner: Owner
    label: str = ""
    description: str = ""
    inputs: Mapping[str, ActionInput] = field(default_factory=FrozenDict)
    triggers: tuple[str, ...] = ()
    idempotent: bool = False
    is_manual: bool = True
    confirm: str = ""
    timeout: float | None = None
    extra: Mapping[str, Any] = field(default_factory=FrozenDict)
    definition: Mapping[str, Any] = field(default_factory=FrozenDict, repr=False, compare=False)

    @classmethod
    def from_dict(cls, definition: Mapping[str, object], *, plugin: str, owner: Owner) -> Self:
        """Read one entry of a plugin's `get_actions`.

        Raises:
            PluginError: If a field has the wrong type; the message names it.
        """
        name = Reader(plugin, "an action", definition).name("id")
        read = Reader(plugin, f"action {name!r}", definition)
        label, inputs, triggers = read.text("label") or name, read_inputs(read), read.names("trigger")
        by_hand = not triggers or any(one != _SESSION for one in inputs)
        confirm = _read_confirm(read, label)
        if confirm and triggers:
            raise read.error("a lifecycle has nobody to ask: leave out confirm, or trigger", "confirm")
        return cls(
            id=name,
            plugin=plugin,
            owner=owner,
            label=label,
            description=read.text("description"),
            inputs=inputs,
            triggers=triggers,
            idempotent=read.flag("idempotent"),
            is_manual=by_hand if read.value("manual") is None else read.flag("manual"),
            confirm=confirm,
            timeout=_read_timeout(read),
            extra=read.rest(*_ACTION_KEYS),
            definition=freeze(dict(definition)),
        )

    def to_dict(self) -> JsonObject:
        """Return the definition as its plugin gave it, with the plugin and the kind of owner.

        One that runs at a lifecycle and is for people as well says so: front ends need no rule for that.
        """
        own = thaw(self.definition) or {"id": self.id, "label": self.label, "trigger": [*self.triggers]}
        if self.triggers and self.is_manual:
            own["manual"] = True
        return {**own, "plugin": self.plugin, "action_owner": self.owner}

    def matches(self, trigger: str) -> bool:
        """Whether it runs at that lifecycle."""
        return trigger in self.triggers


_SESSION = "session_id"  # the one input that lifecycles give


def _read_confirm(read: Reader, label: str) -> str:
    """Return the question of an action: its own, or one that is made from its label."""
    given = read.value("confirm")
    if isinstance(given, bool):
        return f"{label}?" if given else ""
    question = read.text("confirm")
    if given is not None and not question.strip():
        raise read.error("expected a question, True or False, got an empty text", "confirm")
    return question


def _read_timeout(read: Reader) -> float | None:
    given = read.value("timeout")
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < float("inf"):
        raise read.error(f"expected a number of seconds above 0, got {given!r:.40}", "timeout")
    return float(given)


def match_triggers(action: Action, triggers: Sequence[str]) -> str | None:
    """Return the first of *triggers* at which the action runs, or None."""
    return next(filter(action.matches, triggers), None)


def is_confirmed(confirmed: object, context: Mapping[str, object] | None) -> bool:
    """Say whether somebody has answered yes: the caller by its argument, or a front end by the context.

    Raises:
        ArgumentTypeError: If the argument is neither True nor False; "no" must not count as yes.
    """
    if not isinstance(confirmed, bool):
        raise ArgumentTypeError(f"confirmed must be True or False, not {confirmed!r:.40}")
    return confirmed or (context or {}).get("confirmed") is True


def check_confirmed(action: Action, *, confirmed: bool) -> None:
    """Refuse to run an action that asks for a confirmation which nobody gave.

    Raises:
        ActionNotConfirmedError: With the question.
    """
    if action.confirm and not confirmed:
        raise ActionNotConfirmedError(action.plugin, action.id, action.confirm)


def check_inputs(action: Action, params: Mapping[str, object]) -> JsonObject:
    """Return the values to run an action with: those given, with defaults for those absent.

    None for an input counts as absent. Nothing is converted: "3" is not an integer, and neither is True.

    Raises:
        ActionInputError: If a value is missing, unknown or does not fit; it names the input.
    """
    if not isinstance(params, Mapping):
        raise ActionInputError(action.id, "params", f"expected object, got {type_name(params)}")
    for name in params:
        if name not in action.inputs:
            raise ActionInputError(action.id, str(name), f"no such input{hint(name, action.inputs)}")
    values = {name: _value(action, wanted, params.get(name)) for name, wanted in action.inputs.items()}
    return {name: value for name, value in values.items() if value is not None}


def _value(action: Action, wanted: ActionInput, given: object) -> object:
    value = thaw(wanted.default) if given is None else given
    if value is None:
        if wanted.required:
            raise ActionInputError(action.id, wanted.name, "required, but missing")
        return None
    problem = wanted.problem_with(value)
    if problem is not None:
        raise ActionInputError(action.id, wanted.name, problem)
    return value
