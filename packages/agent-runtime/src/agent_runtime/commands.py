"""What a hook returns: state updates, scheduled actions and effects, for the engine to carry out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agent_runtime.phases import Phase
    from agent_runtime.state import StateKey


class Update(NamedTuple):
    """A change of one state key, to be applied by the key's own rule."""

    key: str
    value: Any


class Action(NamedTuple):
    """Something to be done by the handler of that name: in this phase, or when *phase* comes next."""

    name: str
    payload: Any = None
    phase: Phase | None = None


class Effect(NamedTuple):
    """A side effect, done by the handler of that name after the state was updated."""

    name: str
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Command:
    """What a hook returns; None does as well, if there is nothing to do.

    Made step by step: ``Command().update(SEEN, 1).schedule("add_message", {...}).effect("notify")``.
    """

    updates: tuple[Update, ...] = ()
    actions: tuple[Action, ...] = ()
    effects: tuple[Effect, ...] = ()

    def update(self, key: StateKey[Any] | str, value: object) -> Command:
        """Also update a state key."""
        name = key if isinstance(key, str) else key.name
        return replace(self, updates=(*self.updates, Update(name, value)))

    def schedule(self, name: str, payload: object = None, *, phase: Phase | None = None) -> Command:
        """Also schedule an action, by default for right after the hooks of this phase."""
        return replace(self, actions=(*self.actions, Action(name, payload, phase)))

    def effect(self, name: str, payload: object = None) -> Command:
        """Also have a side effect."""
        return replace(self, effects=(*self.effects, Effect(name, payload)))

    def go_on(self, message: str) -> Command:
        """Also have the model read *message* and answer again; for hooks at a natural end."""
        return self.schedule("go_on", message)

    def stop(self, code: str, detail: str = "") -> Command:
        """Also end the run after this step, with a reason of one's own."""
        return self.schedule("stop", {"code": code, "detail": detail})
