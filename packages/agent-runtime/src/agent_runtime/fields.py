"""Declarations as frozen dataclasses: from a dict, to a dict, and what each field may hold.

The annotation of a field says all that is known of it: its type, and in `Annotated` the limits. `check`
enforces it when a declaration is made, and `agent_runtime.schema` writes it as JSON Schema, so that the two
cannot disagree::

    keep_recent: Count = 10                              # a whole number from 1 on
    compact_at: Annotated[float, Range(0.1, 1)] | None   # None is allowed where the annotation says so

A mistake is reported alike wherever it was made: the path of the field, what is wrong with it, and for a
misspelt one the nearest that exists. A declaration names its own fields only; `read` puts the path to the
declaration before them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from agent_core.errors import nearest
from agent_core.frozen import FrozenDict, FrozenList, freeze, thaw
from agent_runtime.errors import SpecError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Range:
    """Which numbers a field may hold.

    Attributes:
        least: The smallest.
        most: The largest; None for no limit.
        off: Whether false is read as None, for formats that have no null.
    """

    least: float = 0
    most: float | None = None
    off: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Which texts a field may hold.

    Attributes:
        pattern: A regular expression that must be found in it.
        problem: What to say of a text in which it is not.
    """

    pattern: str = r"\S"
    problem: str = "must not be empty"


Name = Annotated[str, Text()]
"""A text that is not empty."""
Count = Annotated[int, Range(1)]
"""A whole number from one on."""
Amount = Annotated[float, Range(0)]
"""A number from zero on."""


class Rule(NamedTuple):
    """What a field may hold, as its annotation says it.

    Attributes:
        kind: Its type, without None and without limits.
        limits: `Range`, `Text` or None.
        optional: Whether it may be None.
    """

    kind: Any
    limits: Range | Text | None
    optional: bool


_known_rules: dict[type, dict[str, Rule]] = {}


def rules(cls: type) -> dict[str, Rule]:
    """Return the rule of each field of a declaration."""
    if cls not in _known_rules:
        hints = get_type_hints(cls, include_extras=True)
        _known_rules[cls] = {field.name: _rule(hints[field.name]) for field in init_fields(cls)}
    return _known_rules[cls]


def _rule(hint: Any) -> Rule:
    optional = get_origin(hint) in {Union, UnionType} and NoneType in get_args(hint)
    kind = next(one for one in get_args(hint) if one is not NoneType) if optional else hint
    if get_origin(kind) is not Annotated:
        return Rule(kind, None, optional)
    kind, limits = get_args(kind)
    return Rule(kind, limits, optional)


def check(spec: object) -> None:
    """Check every field of a declaration, and freeze its lists and mappings.

    Fields that are declarations themselves are left alone.

    Raises:
        SpecError: If a field holds what it may not.
    """
    for name, rule in rules(type(spec)).items():
        value = getattr(spec, name)
        if value is False and isinstance(rule.limits, Range) and rule.limits.off:
            value = None
        if value is not None or not rule.optional:
            value = _checked(name, value, rule)
        object.__setattr__(spec, name, value)


def _checked(where: str, value: Any, rule: Rule) -> Any:
    kind, limits = rule.kind, rule.limits
    if kind is str:
        check_text(where, value, limits if isinstance(limits, Text) else None)
    elif kind is bool:
        check_flag(where, value)
    elif kind in (int, float):
        bounds = limits if isinstance(limits, Range) else Range()
        check_number(where, value, least=bounds.least, most=bounds.most, whole=kind is int)
    elif kind == tuple[str, ...]:
        return names(where, value)
    elif get_origin(kind) is Mapping:
        return mapping(where, value)
    return value


_ROUNDS = ("max_rounds", "it is called max_rounds")
_ELSEWHERE = {
    "tools": ("plugin_ids", "plugins belong to plugin_ids, and names of tools to allowed_tools"),
    "instructions": ("system_prompt", "it is called system_prompt"),
    "prompt": ("system_prompt", "it is called system_prompt"),
    "max_turns": _ROUNDS,
    "max_steps": _ROUNDS,
}
"""Fields of other programs: the field that is here in their place, and what to say."""


def read(cls: type[T], data: object, *, where: str, outermost: bool = False) -> T:
    """Return the declaration that *data* holds, or *data* itself if it is one already.

    Args:
        cls: Which declaration.
        data: A mapping with its fields.
        where: The path to it; of an outermost declaration, what it is called.
        outermost: Whether it stands in no other, so that its fields are paths already.

    Raises:
        SpecError: If it is not a mapping, or a field is missing, unknown or wrong.
    """
    if isinstance(data, cls):
        return data
    if not isinstance(data, Mapping):
        raise SpecError(f"{where} must be a mapping, not {type(data).__name__}", field=where)
    known = [field.name for field in init_fields(cls)]
    for key in data:
        if key not in known:
            name, hint = _ELSEWHERE.get(str(key), ("", ""))
            hint = hint if name in known else nearest(key, known)
            raise SpecError(f"{where} has no field {key!r}: {hint}", field=f"{where}.{key}")
    for field in init_fields(cls):
        if field.name not in data and field.default is MISSING and field.default_factory is MISSING:
            raise SpecError(f"{where} needs the field {field.name!r}", field=f"{where}.{field.name}")
    try:
        return cls(**data)
    except SpecError as error:
        if outermost or _leads_from(where, error.field or ""):
            raise
        raise _placed(error, where) from error


def _leads_from(where: str, field: str) -> bool:
    return field == where or field.startswith((f"{where}.", f"{where}["))


def _placed(error: SpecError, where: str) -> SpecError:
    """Return an error that names the path to the declaration before the field."""
    message = str(error)
    if not error.field:
        return SpecError(f"{where}: {message}", field=where)
    joint = "." if message.startswith(error.field) else ": "
    return SpecError(f"{where}{joint}{message}", field=f"{where}.{error.field}")


def write(spec: object) -> dict[str, Any]:
    """Return a declaration as plain data, without what is as it is by default."""
    written: dict[str, Any] = {}
    for field in init_fields(type(spec)):
        value = getattr(spec, field.name)
        if not _is_default(field, value):
            written[field.name] = _plain(value)
    return written


def init_fields(cls: Any) -> list[Field[Any]]:
    """Return the fields that a declaration is made from."""
    return [field for field in fields(cls) if field.init]


def _is_default(field: Field[Any], value: Any) -> bool:
    if field.default is not MISSING:
        return bool(value == field.default) and type(value) is type(field.default)
    return field.default_factory is not MISSING and bool(value == field.default_factory())


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, FrozenList):
        return [_plain(item) for item in value]
    return thaw(value)


def check_text(where: str, value: object, limits: Text | None = None) -> None:
    """Refuse what is not a string, or one that does not fit the limits."""
    if not isinstance(value, str):
        raise SpecError(f"{where} must be a string, not {type(value).__name__}", field=where)
    if limits is not None and not re.search(limits.pattern, value):
        shown = f", not {value!r}" if value.strip() else ""
        raise SpecError(f"{where} {limits.problem}{shown}", field=where)


def check_number(
    where: str,
    value: object,
    *,
    least: float = 0,
    most: float | None = None,
    whole: bool = False,
) -> None:
    """Refuse what is not a number, one that is not finite, or one outside the limits."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        kind = "a whole number" if whole else "a number"
        raise SpecError(f"{where} must be {kind}, not {value!r}", field=where)
    if not abs(value) <= sys.float_info.max:  # this way round, because NaN is not above it either
        raise SpecError(f"{where} must be a number, finite and no larger than a float can be", field=where)
    if value < least or (most is not None and value > most):
        limit = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
        raise SpecError(f"{where} must be {limit}, not {value!r}", field=where)


def check_flag(where: str, value: object) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool):
        raise SpecError(f"{where} must be true or false, not {value!r}", field=where)


def names(where: str, value: object) -> tuple[str, ...]:
    """Return a list of names as a tuple.

    Raises:
        SpecError: If it is not a list of strings.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise SpecError(f"{where} must be a list of names, not {type(value).__name__}", field=where)
    for place, name in enumerate(value):
        check_text(f"{where}[{place}]", name, Text())
    return tuple(value)


def mapping(where: str, value: object) -> FrozenDict:
    """Return a mapping with string keys, frozen all the way down."""
    if not isinstance(value, Mapping):
        raise SpecError(f"{where} must be a mapping, not {type(value).__name__}", field=where)
    for key in value:
        check_text(f"{where}[{key!r}]", key, Text())
    frozen: FrozenDict = freeze(dict(value))
    return frozen


def each(where: str, value: object, read_one: Callable[[str, Any], T]) -> tuple[T, ...]:
    """Return a list with every item read by *read_one*, which is given the path to it."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise SpecError(f"{where} must be a list, not {type(value).__name__}", field=where)
    return tuple(read_one(f"{where}[{place}]", item) for place, item in enumerate(value))
