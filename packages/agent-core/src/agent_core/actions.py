"""Actions that plugins offer for a session: their definitions, their inputs, what triggers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from agent_core.errors import ActionInputError, PluginError
from agent_core.frozen import EMPTY, freeze, thaw

STANDARD_LIFECYCLES = (
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
"""The lifecycles that applications run by themselves; any other name works as well."""

RESPONSE_FINALIZE = "response_finalize"
"""The one lifecycle that the core runs by itself, before a turn's messages are returned."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
    "any": (object,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionInput:
    """One input of an action."""

    name: str
    type: str = "any"
    required: bool = False
    default: Any = None
    enum: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that a plugin can do to a session.

    Attributes:
        inputs: By name.
        triggers: The lifecycles that run it; empty for an action that somebody must ask for.
        owner: "provider_extension" or "feature".
        idempotent: Whether running it twice is the same as running it once, as its plugin says.
        definition: The plugin's own words, with all that only front ends care for.
    """

    id: str
    plugin: str
    owner: str
    inputs: Mapping[str, ActionInput] = field(default_factory=dict)
    triggers: tuple[str, ...] = ()
    idempotent: bool = False
    definition: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    @property
    def is_manual(self) -> bool:
        """True if nothing runs it by itself."""
        return not self.triggers

    def matches(self, trigger: str) -> bool:
        """Say whether that lifecycle runs it."""
        return trigger in self.triggers

    def to_dict(self) -> dict[str, Any]:
        """Return the definition for front ends, with the plugin that it belongs to."""
        return {**thaw(self.definition), "plugin": self.plugin, "action_owner": self.owner}

    @classmethod
    def from_dict(cls, definition: Mapping[str, Any], *, plugin: str, owner: str) -> Action:
        """Read a plugin's definition.

        Raises:
            PluginError: If a field is missing or of the wrong type.
        """
        reader = _DefinitionReader(plugin, definition)
        return cls(
            id=reader.id,
            plugin=plugin,
            owner=owner,
            inputs=reader.inputs(),
            triggers=reader.triggers(),
            idempotent=definition.get("idempotent") is True,
            definition=freeze(dict(definition)),
        )


def match_triggers(action: Action, triggers: Sequence[str]) -> str | None:
    """Return the first of *triggers* that runs the action."""
    return next((trigger for trigger in triggers if action.matches(trigger)), None)


def check_inputs(action: Action, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs with defaults filled in; None counts as not given.

    Raises:
        ActionInputError: If an input is missing, unknown or of the wrong type.
    """
    for name in params:
        if name not in action.inputs:
            raise ActionInputError(action.id, name, _unknown(name, list(action.inputs)))
    checked = {}
    for name, declared in action.inputs.items():
        value = params.get(name)
        value = declared.default if value is None else value
        if value is not None:
            checked[name] = _check(action, declared, value)
        elif declared.required:
            raise ActionInputError(action.id, name, "is required")
    return checked


def _check(action: Action, declared: ActionInput, value: Any) -> Any:
    fits = isinstance(value, _TYPES[declared.type])
    if isinstance(value, bool) and declared.type in ("integer", "number"):
        fits = False  # True is an int to Python and to nobody else
    if not fits or (isinstance(value, float) and not isfinite(value)):
        raise ActionInputError(action.id, declared.name, f"must be of type {declared.type}, not {value!r}")
    if declared.enum and value not in declared.enum:
        raise ActionInputError(
            action.id, declared.name, f"must be one of {list(declared.enum)}, not {value!r}"
        )
    return value


def _unknown(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"is not known, did you mean {close[0]!r}?" if close else f"is not known, known are {known}"


class _DefinitionReader:
    """Reads a plugin's definition and says which field is wrong."""

    def __init__(self, plugin: str, definition: Mapping[str, Any]) -> None:
        self._plugin = plugin
        self._definition = definition
        self.id: str = definition.get("id", "")
        if not isinstance(self.id, str) or not self.id:
            raise self._wrong("id must be a non-empty string")

    def triggers(self) -> tuple[str, ...]:
        trigger = self._definition.get("trigger")
        names = () if trigger is None else (trigger,) if isinstance(trigger, str) else trigger
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) and n for n in names):
            raise self._wrong("trigger must be a name or a list of names")
        return tuple(names)

    def inputs(self) -> dict[str, ActionInput]:
        """Read the mapping form, or the list form that dialogs use."""
        inputs = self._definition.get("inputs") or {}
        if isinstance(inputs, list):
            inputs = {item.get("name"): item for item in inputs if isinstance(item, Mapping)}
        if not isinstance(inputs, Mapping):
            raise self._wrong("inputs must be a dict or a list of dicts")
        return {name: self._input(name, described) for name, described in inputs.items()}

    def _input(self, name: Any, described: Any) -> ActionInput:
        if not isinstance(name, str) or not name or not isinstance(described, Mapping):
            raise self._wrong(f"input {name!r} must be a dict with a name")
        kind = described.get("type", "any")
        if kind not in _TYPES:
            raise self._wrong(f"input {name!r} has the unknown type {kind!r}; known are {list(_TYPES)}")
        return ActionInput(
            name=name,
            type=kind,
            required=described.get("required") is True,
            default=described.get("default"),
            enum=tuple(described.get("enum") or ()),
        )

    def _wrong(self, problem: str) -> PluginError:
        return PluginError(self._plugin, "get_actions", f"action {self._definition.get('id')!r}: {problem}")
