"""Python values as JSON data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set as AbstractSet
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

_BINARY = (bytes, bytearray, memoryview)


class NotJsonError(TypeError):
    """A value has no JSON form of its own."""


def to_json(value: Any, unknown: Callable[[Any], Any] | None = None) -> Any:
    """Return *value* as JSON data; *unknown* is asked about what JSON cannot say (else: its text)."""
    unknown = unknown or _describe
    if isinstance(value, Enum):  # first, since a StrEnum member is a str, too
        return to_json(value.value, unknown)
    if value is None or isinstance(value, (str, int, float)):
        return _plain(value, unknown)
    if (fields := _fields(value)) is not None:
        return to_json(fields, unknown)
    if isinstance(value, Collection) and not isinstance(value, _BINARY):
        return _collection(value, unknown)
    return _text(value, unknown)


def encode(value: Any) -> Any:
    """Return *value* as JSON data that says the same.

    Raises:
        NotJsonError: If something in it could only be described.
    """
    return to_json(value, _refuse)


def _plain(value: Any, unknown: Callable[[Any], Any]) -> Any:
    """Return *value* as exactly str, int, float, bool or None, which every JSON encoder knows."""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isfinite(value) else unknown(value)


def _fields(value: Any) -> Any:
    """Return an object's own idea of its contents, if its class has one."""
    kind = type(value)
    for method in ("to_dict", "model_dump", "_asdict"):
        if callable(getattr(kind, method, None)):
            return getattr(value, method)()
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    from dataclasses import fields

    return {field.name: getattr(value, field.name) for field in fields(value)}


def _collection(value: Collection[Any], unknown: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {_key(key): to_json(item, unknown) for key, item in value.items()}
    items = [to_json(item, unknown) for item in value]
    return _in_order(items) if isinstance(value, AbstractSet) else items


def _key(key: Any) -> str:
    key = to_json(key)
    return key if isinstance(key, str) else str(key)


def _in_order(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=canonical)  # no natural order, but the same one every time


def _text(value: Any, unknown: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if callable(getattr(kind, "isoformat", None)):  # dates and times
        return value.isoformat()
    if kind.__module__ in {"uuid", "decimal"} or hasattr(kind, "__fspath__"):
        return str(value)
    return unknown(value)


def _describe(value: Any) -> Any:
    if not isinstance(value, _BINARY):
        return str(value)
    from base64 import b64encode

    return {"encoding": "base64", "data": b64encode(value).decode()}


def _refuse(value: Any) -> Any:
    raise NotJsonError(f"{value!r} has no JSON form")
