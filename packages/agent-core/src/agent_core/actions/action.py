"""An action as the core knows it, and the values to run it with.

A plugin lists its actions as dicts; they are read once, here. An action without a trigger waits for a
user. A trigger is the name of a lifecycle, and lifecycle names are open: an application may run any,
`STANDARD_LIFECYCLES` are those that it always does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from agent_core.actions.inputs import ActionInput, read_inputs
from agent_core.actions.reader import Reader
from agent_core.actions.values import hint, type_name
from agent_core.errors import ActionInputError
from agent_core.frozen import FrozenDict, freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Sequence

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

_KEYS = ("id", "label", "description", "inputs", "trigger", "idempotent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that a plugin can do with a session, on request or at a lifecycle.

    Attributes:
        owner: The kind of plugin that it belongs to.
        triggers: The lifecycles at which it runs; none for a manual action.
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
    extra: Mapping[str, Any] = field(default_factory=FrozenDict)
    definition: Mapping[str, Any] = field(default_factory=FrozenDict, repr=False, compare=False)

    @classmethod
    def from_dict(cls, definition: Mapping[str, Any], *, plugin: str, owner: Owner) -> Self:
        """Read one entry of a plugin's `get_actions`.

        Raises:
            PluginError: If a field has the wrong type; the message names it.
        """
        name = Reader(plugin, "an action", definition).name("id")
        read = Reader(plugin, f"action {name!r}", definition)
        return cls(
            id=name,
            plugin=plugin,
            owner=owner,
            label=read.text("label") or name,
            description=read.text("description"),
            inputs=read_inputs(read),
            triggers=read.names("trigger"),
            idempotent=read.flag("idempotent"),
            extra=read.rest(*_KEYS),
            definition=freeze(dict(definition)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as its plugin gave it, with the plugin and the kind of owner."""
        own = thaw(self.definition) or {"id": self.id, "label": self.label, "trigger": [*self.triggers]}
        return {**own, "plugin": self.plugin, "action_owner": self.owner}

    @property
    def is_manual(self) -> bool:
        """Whether it runs only when someone asks for it."""
        return not self.triggers

    def matches(self, trigger: str) -> bool:
        """Whether it runs at that lifecycle."""
        return trigger in self.triggers


def match_triggers(action: Action, triggers: Sequence[str]) -> str | None:
    """Return the first of *triggers* at which the action runs, or None."""
    return next(filter(action.matches, triggers), None)


def check_inputs(action: Action, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values to run an action with: those given, with defaults for those absent.

    None for an input counts as absent. Nothing is converted: "3" is no integer, and neither is True.

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


def _value(action: Action, wanted: ActionInput, given: object) -> Any:
    value = thaw(wanted.default) if given is None else given
    if value is None:
        if wanted.required:
            raise ActionInputError(action.id, wanted.name, "required, but missing")
        return None
    problem = wanted.problem_with(value)
    if problem is not None:
        raise ActionInputError(action.id, wanted.name, problem)
    return value
