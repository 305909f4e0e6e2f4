"""JSON from strangers: what is not exactly JSON, or would be read differently elsewhere, is refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from agent_app.transfer.form import ImportRefused

if TYPE_CHECKING:
    from agent_app.transfer.form import ImportLimits

_OPENINGS = (b",", b"[", b"{", b":")


def read_json(data: bytes, name: str, limits: ImportLimits) -> Any:
    """Return what a JSON document says.

    Raises:
        ImportRefused: If it is none, has a name twice in one object or a number without end, or has too
            many values or levels.
    """
    import json

    if sum(map(data.count, _OPENINGS)) > limits.values:
        raise ImportRefused(f"{name} has more values than the {limits.values} that are allowed")
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError as error:
        raise ImportRefused(f"{name} is nested more than {limits.depth} levels deep") from error
    except ValueError as error:
        raise ImportRefused(f"{name} is not JSON: {error}") from error
    _check(value, name, limits.depth)
    return value


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"it has the number {constant}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("it has an object with one name twice")
    return made


def _check(value: Any, name: str, depth: int) -> None:
    """Refuse what is too deep or too large; the walk needs no recursion, so that depth cannot hurt it."""
    level: list[Any] = [value]
    while level:
        if depth < 0:
            raise ImportRefused(f"{name} is nested too deeply")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
            elif isinstance(item, float) and not math.isfinite(item):
                raise ImportRefused(f"{name} has a number that is too large")
        level, depth = inner, depth - 1
