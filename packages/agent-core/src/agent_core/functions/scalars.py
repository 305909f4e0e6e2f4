"""Annotations whose JSON form is a single value: plain types, text with a format, choices."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, LiteralString

from agent_core.functions.shapes import ANYTHING, Shape, UnsupportedAnnotationError, refused
from agent_core.functions.values import NotJsonError, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from enum import Enum


def _only(kind: type, wanted: str) -> Callable[[Any], Any]:
    def load(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise refused(value, wanted)

    return load


def _load_int(value: Any) -> int:
    # To JSON Schema 3.0 is an integer, and models do write it so.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise refused(value, "an integer")


def _load_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refused(value, "a number")
    try:
        return float(value)
    except OverflowError as error:
        raise refused(value, "a number that Python can hold as a float") from error


_TEXT = Shape({"type": "string"}, _only(str, "a string"))

PLAIN: dict[Any, Shape] = {
    str: _TEXT,
    LiteralString: _TEXT,
    int: Shape({"type": "integer"}, _load_int),
    float: Shape({"type": "number"}, _load_float),
    bool: Shape({"type": "boolean"}, _only(bool, "true or false")),
    NoneType: Shape({"type": "null"}, _only(NoneType, "null")),
    None: Shape({"type": "null"}, _only(NoneType, "null")),
    Any: ANYTHING,
    object: ANYTHING,
}

# By name, so that describing a tool imports none of these modules.
_FORMATS = {
    "datetime.datetime": "date-time",
    "datetime.date": "date",
    "datetime.time": "time",
    "uuid.UUID": "uuid",
    "decimal.Decimal": "decimal",
}


def formatted_text(kind: type) -> Shape | None:
    """Return the shape of a type that is written as a string (dates, UUID, Decimal, paths), if it is one."""
    name = _FORMATS.get(f"{kind.__module__}.{kind.__qualname__}")
    if kind.__module__.partition(".")[0] == "pathlib":
        name = "path"
    if name is None:
        return None
    return Shape({"type": "string", "format": name}, _parser(kind, f"a {name}"))


def _parser(kind: type, wanted: str) -> Callable[[Any], Any]:
    parse: Callable[[str], Any] = getattr(kind, "fromisoformat", kind)

    def load(value: Any) -> Any:
        if not isinstance(value, str):
            raise refused(value, f"{wanted} in a string")
        try:
            return parse(value)
        except (ValueError, ArithmeticError) as error:  # Decimal's complaint is arithmetic
            raise refused(value, wanted) from error

    return load


def enum_member(kind: type[Enum]) -> Shape:
    """Return the shape of an Enum: its values for the model, its members for the function."""
    return choice([(member.value, member) for member in kind], kind.__qualname__)


def choice(options: Iterable[tuple[Any, Any]], owner: str) -> Shape:
    """Return the shape of a closed list of (value as it is written, value for the function)."""
    try:
        options = [(encode(value), chosen) for value, chosen in options]
    except NotJsonError as error:
        raise UnsupportedAnnotationError(
            f"a choice of {owner} is not JSON ({error}): use str or int values"
        ) from error
    written = [value for value, _ in options]
    schema: dict[str, Any] = {"enum": written}
    kinds = {type(value) for value in written}
    if len(kinds) == 1 and (plain := PLAIN.get(kinds.pop())):
        schema = {**plain.schema, **schema}

    def load(value: Any) -> Any:
        for option, chosen in options:
            if _same(option, value):
                return chosen
        raise refused(value, f"one of {', '.join(map(repr, written))}")

    return Shape(schema, load)


def _same(left: Any, right: Any) -> bool:
    # True == 1 in Python and not in JSON.
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)
