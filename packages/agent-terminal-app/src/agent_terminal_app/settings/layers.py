"""Layers of settings, one over the other, and where each value came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_terminal_app.settings.ways import Way, leaves, spell, value_at

_LISTS = ("allow", "ask", "deny", "always_ask")


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says, and how to tell where in it a value stands."""

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
    """Say whether no later layer changes a value: who denies everything else means that, too."""
    return _is_of_permissions(way) and way[-1] == "default" and below == "deny"


def _is_of_permissions(way: Way) -> bool:
    match way:
        case ("permissions", _) | ("agents", _, "sections", "permissions", _):
            return True
    return False


class Origins(Mapping[str, str]):
    """Where each value came from, by its dotted key; looked up when somebody first asks."""

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
