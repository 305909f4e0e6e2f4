"""The types that an input may have; exact, since a form that turns "3" into 3 hides mistakes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    """Whether *value* is of that type; True is no integer, an integer is a number, NaN is none."""
    return TYPES[wanted](value)


def type_name(value: object) -> str:
    """Name the type of *value* as an input would."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    names = (name for name, test in TYPES.items() if name != "any" and test(value))
    return "null" if value is None else next(names, type(value).__name__)


def same(value: object, allowed: Any) -> bool:
    """Whether two values are one answer; for Python True equals 1, for a form it does not."""
    return bool(value == allowed) and isinstance(value, bool) == isinstance(allowed, bool)


def hint(name: object, known: Iterable[str]) -> str:
    """End a sentence about an unknown *name* with the nearest known one, or all of them."""
    from difflib import get_close_matches  # slow to import, and only mistakes need it

    names = tuple(known)
    close = get_close_matches(str(name), names, n=1)
    if close:
        return f", did you mean {close[0]!r}?"
    return f"; known are {', '.join(map(repr, names))}" if names else "; none is known"
