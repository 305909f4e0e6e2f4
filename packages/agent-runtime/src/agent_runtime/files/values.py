"""Values that some format can write and others, or the runtime, cannot keep."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_runtime.files.ways import Way

TOO_LONG = "a whole number that does not fit into 64 bits"
"""What is wrong with a number that is too long, in every format."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def unusable(data: Any) -> Iterator[tuple[Way, str]]:
    """Find the values that cannot be kept, in the order of the data, each with what is wrong with it."""
    waiting: list[tuple[Way, Any]] = [((), data)]
    while waiting:
        way, value = waiting.pop()
        problem = _flaw(way[-1] if way else None) or _flaw(value)
        if problem:
            yield way, problem
        if isinstance(value, dict):
            waiting.extend(((*way, key), item) for key, item in reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend(((*way, place), item) for place, item in reversed(list(enumerate(value))))


def _flaw(value: Any) -> str | None:
    if value is None or isinstance(value, (bool, dict, list)):
        return None
    if isinstance(value, str):
        return "holds half of a surrogate pair, which is no character" if _SURROGATE.search(value) else None
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else f"is {TOO_LONG}"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"must be a finite number, not {value}"
    return f"is a {type(value).__name__}: put it in quotes"
