"""Reading declarations: dicts become frozen dataclasses, and what does not fit is named.

Every spec is read by the same few rules, so that a mistake is reported alike wherever it was made:
the path of the field, what is wrong with it, and for a misspelt one the nearest that exists. A declaration
names its own fields only; `read` puts the path to the declaration before them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from typing import Any, TypeVar

from agent_core.frozen import FrozenDict, FrozenList, freeze, thaw
from agent_runtime.errors import SpecError, nearest

T = TypeVar("T")


def read(cls: type[T], data: Any, *, where: str, outermost: bool = False) -> T:
    """Return the declaration that *data* holds, or *data* itself if it is one already.

    Args:
        cls: Which declaration.
        data: A mapping with its fields.
        where: The path to it; of an outermost declaration, what it is called.
        outermost: Whether it stands in no other, so that its fields are paths already.

    Raises:
        SpecError: If it is no mapping, or a field is missing, unknown or wrong.
    """
    if isinstance(data, cls):
        return data
    if not isinstance(data, Mapping):
        raise SpecError(f"{where} must be a mapping, not {type(data).__name__}", field=where)
    known = [field.name for field in _init_fields(cls)]
    for key in data:
        if key not in known:
            raise SpecError(f"{where} has no field {key!r}: {nearest(key, known)}", field=f"{where}.{key}")
    for field in _init_fields(cls):
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


def write(spec: Any) -> dict[str, Any]:
    """Return a declaration as plain data, without what is as it is by default."""
    written: dict[str, Any] = {}
    for field in _init_fields(type(spec)):
        value = getattr(spec, field.name)
        if not _is_default(field, value):
            written[field.name] = _plain(value)
    return written


def _init_fields(cls: Any) -> list[Field[Any]]:
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


def check_text(where: str, value: Any, *, empty: bool = True) -> None:
    """Refuse what is no string, or an empty one where that says nothing."""
    if not isinstance(value, str):
        raise SpecError(f"{where} must be a string, not {type(value).__name__}", field=where)
    if not empty and not value.strip():
        raise SpecError(f"{where} must not be empty", field=where)


def check_number(
    where: str,
    value: Any,
    *,
    least: float = 0,
    most: float | None = None,
    whole: bool = False,
    optional: bool = False,
) -> None:
    """Refuse what is no number, one that is not finite, or one outside the limits."""
    if value is None and optional:
        return
    kinds: Any = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        kind = "a whole number" if whole else "a number"
        raise SpecError(f"{where} must be {kind}, not {value!r}", field=where)
    if not abs(value) <= sys.float_info.max:  # this way round, because NaN is not above it either
        raise SpecError(f"{where} must be a number, finite and no larger than a float can be", field=where)
    if value < least or (most is not None and value > most):
        limit = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
        raise SpecError(f"{where} must be {limit}, not {value!r}", field=where)


def check_flag(where: str, value: Any) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool):
        raise SpecError(f"{where} must be true or false, not {value!r}", field=where)


def names(where: str, value: Any) -> tuple[str, ...]:
    """Return a list of names as a tuple.

    Raises:
        SpecError: If it is no list of strings.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise SpecError(f"{where} must be a list of names, not {type(value).__name__}", field=where)
    for place, name in enumerate(value):
        check_text(f"{where}[{place}]", name, empty=False)
    return tuple(value)


def mapping(where: str, value: Any) -> FrozenDict:
    """Return a mapping with string keys, frozen all the way down."""
    if not isinstance(value, Mapping):
        raise SpecError(f"{where} must be a mapping, not {type(value).__name__}", field=where)
    for key in value:
        check_text(f"{where}[{key!r}]", key, empty=False)
    frozen: FrozenDict = freeze(dict(value))
    return frozen


def each(where: str, value: Any, read_one: Callable[[str, Any], T]) -> tuple[T, ...]:
    """Return a list with every item read by *read_one*, which is told where it stands."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise SpecError(f"{where} must be a list, not {type(value).__name__}", field=where)
    return tuple(read_one(f"{where}[{place}]", item) for place, item in enumerate(value))
