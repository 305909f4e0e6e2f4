"""The parameters of a `run_action`: plain JSON, small enough to travel with a display."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from agent_core.display.fields import Warn, is_array, is_object, kind_of
from agent_core.display.text import clean
from agent_core.encoding import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PARAMS: Final = 8 * 1024
MAX_DEPTH: Final = 16

_INTEGERS = range(-(2**63), 2**63)  # what every JSON encoder of ours can write


class _NotJsonError(ValueError):
    """A value cannot be written as JSON; the message says why."""


def read_params(value: object, field: str, warn: Warn) -> dict[str, Any] | None:
    """Return a copy of the parameters, or None when they are not a small JSON object."""
    try:
        params = _copy(value, MAX_DEPTH, count())
    except _NotJsonError as problem:
        warn(field, f"action dropped: {problem}")
        return None
    if not isinstance(params, dict) or len(canonical(params)) > MAX_PARAMS:
        warn(field, f"action dropped, since this is no object of at most {MAX_PARAMS // 1024} kB")
        return None
    if params != value:
        warn(field, "control characters or direction marks removed")
    return params


def _copy(value: object, depth: int, nodes: Iterator[int]) -> Any:
    if depth == 0:
        raise _NotJsonError(f"nested deeper than {MAX_DEPTH} levels")
    if next(nodes) > MAX_PARAMS:  # each takes a byte at least; one list put many times into another adds up
        raise _NotJsonError(f"more than {MAX_PARAMS // 1024} kB")
    if is_object(value):
        return {_key(key): _copy(item, depth - 1, nodes) for key, item in value.items()}
    if is_array(value):
        return [_copy(item, depth - 1, nodes) for item in value]
    return _scalar(value)


def _key(key: object) -> str:
    if type(key) is not str:
        raise _NotJsonError(f"a key is {kind_of(key)} and no string")
    return clean(key)


def _scalar(value: object) -> Any:
    if type(value) is str:
        return clean(value)
    if value is None or type(value) is bool:
        return value
    if type(value) is int and value in _INTEGERS:
        return value
    if type(value) is float and abs(value) < float("inf"):
        return value
    raise _NotJsonError(f"a value is {kind_of(value)} and cannot be written as JSON")
