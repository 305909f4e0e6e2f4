"""What an annotation becomes: a JSON Schema for the model, and a reader for what the model sends.

Both are made together, so that they cannot disagree. A reader is given JSON that the platform has
checked against the schema. It refuses what it cannot use all the same: a union finds its member by
asking each one in turn, and an invalid date passes every schema, since ``format`` is a hint.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, LiteralString

from agent_core.functions.values import NotJsonError, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from enum import Enum

    from agent_core.frozen import JsonObject


class UnsupportedAnnotationError(TypeError):
    """An annotation has no JSON Schema; the message says which, and what to write instead."""


class MismatchError(ValueError):
    """A JSON value is not what the annotation asks for; `path` leads to it from the argument."""

    def __init__(self, problem: str, path: tuple[str | int, ...] = ()) -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{_place(path)}: {problem}" if path else problem)

    def within(self, key: str | int) -> MismatchError:
        """Return the same complaint as seen from one container further out."""
        return MismatchError(self.problem, (key, *self.path))


@dataclass(frozen=True, slots=True)
class Shape:
    """One annotation: `schema` describes its JSON form, `load` makes the Python value from it."""

    schema: JsonObject
    load: Callable[[Any], Any]

    def extended(self, keywords: Mapping[str, object]) -> Shape:
        """Return the shape with *keywords* added to its schema."""
        return Shape({**self.schema, **keywords}, self.load)

    def defaulting_to(self, value: object) -> Shape:
        """Return the shape with its default written down, if JSON can say it and the reader takes it."""
        try:
            default = encode(value)
            self.load(default)
        except (NotJsonError, MismatchError):
            return self
        return self.extended({"default": default})


ANYTHING = Shape({}, lambda value: value)


def resolving_hint(error: Exception) -> str:
    """Return what to do about an annotation that *error* keeps from being evaluated."""
    if isinstance(error, NameError):
        return "import or define the name at the top of the module, not only for type checkers"
    if "unhashable" in str(error):  # typing cannot compare the members of such a union
        return "put Annotated around the whole union, Annotated[int | None, {...}]"
    return "write it as a type"


def load_at(key: str | int, load: Callable[[object], object], value: object) -> object:
    """Read one item of a container; an error names the path to it."""
    try:
        return load(value)
    except MismatchError as error:
        raise error.within(key) from error.__cause__


def refused(value: object, wanted: str) -> MismatchError:
    """Return the complaint that *value* is not *wanted*."""
    return MismatchError(f"{reprlib.repr(value)} is not {wanted}")


def _place(path: tuple[str | int, ...]) -> str:
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(steps).removeprefix(".")


# Annotations whose JSON form is a single value: plain types, text with a format, choices.


def _only(kind: type, wanted: str) -> Callable[[object], object]:
    def load(value: object) -> object:
        if isinstance(value, kind):
            return value
        raise refused(value, wanted)

    return load


def _load_int(value: object) -> int:
    # To JSON Schema 3.0 is an integer, and models do write it so.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise refused(value, "an integer")


def _load_float(value: object) -> float:
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


def _parser(kind: type, wanted: str) -> Callable[[object], object]:
    parse: Callable[[str], Any] = getattr(kind, "fromisoformat", kind)

    def load(value: object) -> object:
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


def choice(options: Iterable[tuple[object, object]], owner: str) -> Shape:
    """Return the shape of a closed list of (value as it is written, value for the function)."""
    try:
        options = [(encode(value), chosen) for value, chosen in options]
    except NotJsonError as error:
        raise UnsupportedAnnotationError(
            f"a choice of {owner} is not JSON ({error}): use str or int values"
        ) from error
    written = [value for value, _ in options]
    schema: JsonObject = {"enum": written}
    kinds = {type(value) for value in written}
    if len(kinds) == 1 and (plain := PLAIN.get(kinds.pop())):
        schema = {**plain.schema, **schema}

    def load(value: object) -> object:
        for option, chosen in options:
            if _same(option, value):
                return chosen
        raise refused(value, f"one of {', '.join(map(repr, written))}")

    return Shape(schema, load)


def _same(left: object, right: object) -> bool:
    # True == 1 in Python and not in JSON.
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


# Shapes made of other shapes: arrays, objects with any names, and alternatives.


def array(collect: Callable[[list[object]], object], item: Shape) -> Shape:
    """Return the shape of items of one kind, gathered by *collect* (`list`, `set` ...)."""
    schema: JsonObject = {"type": "array", "items": item.schema}
    if collect in (set, frozenset):
        schema["uniqueItems"] = True

    def load(value: object) -> object:
        if not isinstance(value, list):
            raise refused(value, "an array")
        items = [load_at(i, item.load, part) for i, part in enumerate(value)]
        try:
            return collect(items)
        except TypeError as error:
            raise MismatchError(f"its items cannot be kept in a set ({error})") from error

    return Shape(schema, load)


def fixed_tuple(members: Sequence[Shape]) -> Shape:
    """Return the shape of an array where every position has a shape of its own."""
    count = len(members)
    schema: JsonObject = {"type": "array", "minItems": count, "maxItems": count}
    if members:
        schema = {**schema, "prefixItems": [member.schema for member in members], "items": False}

    def load(value: object) -> object:
        if not isinstance(value, list) or len(value) != count:
            raise refused(value, f"an array of {count} items")
        pairs = enumerate(zip(members, value, strict=True))
        return tuple(load_at(i, member.load, part) for i, (member, part) in pairs)

    return Shape(schema, load)


def mapping(keys: Shape, values: Shape) -> Shape:
    """Return the shape of an object whose names are not known beforehand."""
    schema: JsonObject = {"type": "object", "additionalProperties": values.schema or True}
    if keys.schema != {"type": "string"}:
        schema["propertyNames"] = keys.schema

    def load(value: object) -> object:
        if not isinstance(value, dict):
            raise refused(value, "an object")
        return {load_at(k, keys.load, k): load_at(k, values.load, item) for k, item in value.items()}

    return Shape(schema, load)


def union(members: Sequence[Shape]) -> Shape:
    """Return the shape of alternatives; the first that takes a value has it, in the order written."""

    def load(value: object) -> object:
        problems = []
        for member in members:
            try:
                return member.load(value)
            except MismatchError as error:
                problems.append(error)
        raise _best(problems)

    return Shape({"anyOf": [member.schema for member in members]}, load)


def _best(problems: list[MismatchError]) -> MismatchError:
    """Return the complaint of the member that came furthest, or all of them if none came far."""
    deepest = max(problems, key=lambda problem: len(problem.path))
    if deepest.path or len(problems) == 1:
        return deepest
    return MismatchError("; ".join(problem.problem for problem in problems))


# What `Annotated` may say of a value, in the words of annotated-types, pydantic and msgspec, which are
# known by their attributes: none of the three is needed.

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "gt": ("exclusiveMinimum", lambda value, limit: value > limit, "above"),
    "ge": ("minimum", lambda value, limit: value >= limit, "at least"),
    "lt": ("exclusiveMaximum", lambda value, limit: value < limit, "below"),
    "le": ("maximum", lambda value, limit: value <= limit, "at most"),
    "multiple_of": ("multipleOf", lambda value, limit: value % limit == 0, "a multiple of"),
}
_LENGTHS: dict[str, tuple[str, Callable[[int, int], bool], str]] = {
    "min_length": ("min", lambda length, limit: length >= limit, "at least"),
    "max_length": ("max", lambda length, limit: length <= limit, "at most"),
}
_SIZED = {"string": "Length", "array": "Items", "object": "Properties"}


def constrained(shape: Shape, item: object) -> Shape:
    """Return the shape within the limits that *item* sets; what it says beyond that is not ours to read."""
    for inner in getattr(item, "metadata", None) or ():  # pydantic's Field keeps its limits in a list
        shape = constrained(shape, inner)
    about = getattr(item, "description", None)
    if isinstance(about, str):
        shape = shape.extended({"description": about})
    for name, (keyword, fits, words) in _BOUNDS.items():
        if (limit := getattr(item, name, None)) is not None:
            shape = _checked(shape, {keyword: limit}, partial(_bound, fits, limit), f"{words} {limit}")
    for name, (end, fits, words) in _LENGTHS.items():
        limit = getattr(item, name, None)
        kind = _SIZED.get(str(shape.schema.get("type")))
        if isinstance(limit, int) and kind is not None and not (end == "min" and limit == 0):
            check = partial(_length, fits, limit)
            shape = _checked(shape, {f"{end}{kind}": limit}, check, f"of a length of {words} {limit}")
    pattern = getattr(item, "pattern", None)
    if isinstance(pattern, str):
        found = re.compile(pattern).search
        shape = _checked(shape, {"pattern": pattern}, partial(_found, found), f"text that fits {pattern!r}")
    return shape


def _bound(fits: Callable[[Any, Any], bool], limit: object, value: object) -> bool:
    return fits(value, limit)


def _length(fits: Callable[[int, int], bool], limit: int, value: Any) -> bool:
    return fits(len(value), limit)


def _found(search: Callable[[str], object], value: object) -> bool:
    return isinstance(value, str) and search(value) is not None


def _checked(
    shape: Shape, keywords: Mapping[str, object], fits: Callable[[object], bool], wanted: str
) -> Shape:
    def load(value: object) -> object:
        read = shape.load(value)
        if read is not None and not fits(read):  # None is there where the limit is around an optional value
            raise refused(value, wanted)
        return read

    return Shape({**shape.schema, **keywords}, load)
