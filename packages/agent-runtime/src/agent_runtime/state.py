"""Typed state of a run: keys, immutable snapshots, and how updates of one key come together.

Nobody writes state. Hooks return commands with updates; the engine applies them by each key's own
strategy and the next hook sees the next snapshot. A key of session scope outlives the run: it is kept
in the session's metadata. All values must be such that JSON can hold them, since a run that waits for
a decision may go on in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Generic, Literal, TypeVar

from agent_core.frozen import freeze, thaw
from agent_runtime.errors import StateError

V = TypeVar("V")
Scope = Literal["run", "session"]
Merge = Literal["exclusive", "commutative"]


@dataclass(frozen=True, slots=True, eq=False)
class StateKey(Generic[V]):
    """A named piece of state.

    Attributes:
        name: What it is called; two plugins cannot register the same name.
        default: Its value before the first update.
        scope: "run" for as long as a run lasts, "session" for as long as the session does.
        merge: "exclusive": of two hooks of a phase that update it, the second is asked again with the
            first one's update in sight. "commutative": updates are applied in any order, so `reduce`
            must not care.
        reduce: Makes the next value of a value and an update; by default the update is the next value.
    """

    name: str
    default: V
    scope: Scope = "run"
    merge: Merge = "exclusive"
    reduce: Callable[[V, Any], V] | None = None

    def __post_init__(self) -> None:
        if self.scope not in ("run", "session") or self.merge not in ("exclusive", "commutative"):
            raise StateError(self.name, "scope is run or session, merge is exclusive or commutative")
        if self.merge == "commutative" and self.reduce is None:
            raise StateError(
                self.name, "a commutative key needs a reduce function that does not care for order"
            )
        object.__setattr__(self, "default", freeze(self.default))  # all runs share it


class State(Mapping[str, Any]):
    """A snapshot of all keys. It never changes; updating gives another."""

    __slots__ = ("_keys", "_values")

    def __init__(self, keys: Mapping[str, StateKey[Any]], values: Mapping[str, Any] | None = None) -> None:
        self._keys = keys
        self._values: Mapping[str, Any] = {} if values is None else values

    def read(self, key: StateKey[V]) -> V:
        """Return the value of *key*, its default if nobody has updated it."""
        value: V = self._values.get(key.name, key.default)
        return value

    @property
    def is_untouched(self) -> bool:
        """True if every key still has its default."""
        return not self._values

    def __getitem__(self, name: str) -> Any:
        return self._values[name] if name in self._values else self._keys[name].default

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def updated(self, name: str, update: object) -> State:
        """Return the snapshot with one key updated by its own rule.

        Raises:
            StateError: If no plugin registered the key, the rule refused the update, or JSON cannot
                hold what came of it.
        """
        key = self._keys.get(name)
        if key is None:
            raise StateError(name, f"nobody registered it; there are {sorted(self._keys)}")
        value = update if key.reduce is None else _reduced(key, self[name], update)
        _check_plain(name, value)
        return self._with(name, freeze(value))

    def replaced(self, name: str, value: object) -> State:
        """Return the snapshot with another value for a key, past its rule; for the runtime itself."""
        return self._with(name, value)

    def is_exclusive(self, name: str) -> bool:
        """Say whether only one hook of a phase may update that key without seeing the others."""
        return name in self._keys and self._keys[name].merge == "exclusive"

    def saved(self, scope: Scope) -> dict[str, Any]:
        """Return the values of one scope as plain JSON data; those that are as at first are left out.

        Raises:
            StateError: If a value is such that JSON cannot hold it.
        """
        kept = {name: value for name, value in self._values.items() if self._keys[name].scope == scope}
        for name, value in kept.items():
            _check_plain(name, value)
        return {name: thaw(freeze(value)) for name, value in kept.items()}

    @classmethod
    def restored(cls, keys: Mapping[str, StateKey[Any]], *saved: Mapping[str, Any]) -> State:
        """Return a snapshot with what was saved; keys that nobody registers any more are forgotten."""
        values = {name: value for part in saved for name, value in part.items() if name in keys}
        return cls(keys, values)

    def _with(self, name: str, value: object) -> State:
        return State(self._keys, {**self._values, name: value})


def _reduced(key: StateKey[V], value: V, update: object) -> V:
    assert key.reduce is not None
    try:
        return key.reduce(value, update)
    except Exception as error:  # a plugin's rule
        raise StateError(key.name, f"the update {update!r} cannot be applied: {error}") from error


def _check_plain(name: str, value: object) -> None:
    try:
        problem = _not_plain(value)
    except RecursionError:
        problem = "it contains itself, or is too deep"
    if problem is not None:
        raise StateError(name, f"JSON cannot hold its value: {problem}")


def _not_plain(value: object) -> str | None:
    """Return what of *value* JSON would not give back as it was, or None if all of it."""
    if isinstance(value, dict):
        odd = [key for key in value if not isinstance(key, str)]
        inside = value.values()
        return (
            f"the key {odd[0]!r} is not a text" if odd else next(filter(None, map(_not_plain, inside)), None)
        )
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_not_plain, value)), None)
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value)):
        return None
    return f"there is no JSON for {value!r}"
