"""JSON of results and events, for programs that send them on: a web route, a queue, a file."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import PurePath
from typing import Any

import orjson

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_NON_STR_KEYS


def to_json(value: object) -> str:
    """Return a result, an event or anything in them as JSON text.

    What has a dict form of its own (sessions, messages, results) takes that one. Outputs may be dataclasses,
    pydantic models, msgspec structs, sets and whatever else has fields; numbers of type `Decimal` and paths
    become texts.

    Raises:
        TypeError: If something in it cannot be written as JSON; the message names its type.
    """
    return _dumped(value).decode()


def to_data(value: object) -> Any:
    """Return the same as plain dicts, lists, texts and numbers."""
    return orjson.loads(_dumped(value))


def _dumped(value: object) -> bytes:
    try:
        return orjson.dumps(value, _plain, _OPTIONS)
    except TypeError as error:  # it names the outermost value; the innermost one is to blame
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise TypeError(str(cause)) from error


def _plain(value: object) -> object:  # noqa: PLR0911 - one line for each kind of value
    for method in ("to_dict", "to_list", "_asdict"):
        if (convert := getattr(value, method, None)) is not None:
            return convert()
    if (dump := getattr(value, "model_dump", None)) is not None:
        return dump(mode="json")
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if (names := getattr(value, "__struct_fields__", None)) is not None:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, (str, int, float, Decimal, PurePath)):
        return next((kind(value) for kind in (int, float) if isinstance(value, kind)), str(value))
    if isinstance(value, BaseException):
        return {"type": type(value).__name__, "message": str(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
