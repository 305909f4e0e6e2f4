"""JSON as bytes: one canonical form for hashing and comparing, one readable form for people."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

import orjson

from agent_core.frozen import NotData, freeze_data, thaw

_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical(value: object) -> bytes:
    """Encode *value* so that equal values give equal bytes.

    Values that are not JSON (an object in a configuration, an integer past 64 bits, a lone
    surrogate) still get bytes of their own; they take the slower standard library.
    """
    try:
        return orjson.dumps(value, _plain, orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except (orjson.JSONEncodeError, RecursionError):
        return json.dumps(_with_string_keys(thaw(value)), sort_keys=True, default=_describe).encode()


def readable(value: object) -> str:
    """Encode plain JSON data as indented text that `parse` reads back unchanged.

    The text can be written to any file: half a surrogate pair, which UTF-8 has no bytes for, is escaped.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if text.isascii() else _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def plain(value: object) -> Any:
    """Return *value* as plain JSON data that the caller may change.

    What a plugin left in its native items and JSON does not have, an object or NaN, becomes what integrity
    takes it for, so that a session can always be written, and is trusted when it is read.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _plain_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    to_list = getattr(value, "to_list", None)  # a History, which knows how to become a list
    return parse(canonical(value)) if to_list is None else plain(to_list())


def as_data(value: Any) -> Any:
    """Return *value* if it is JSON data, and otherwise what `plain` makes of it.

    Raises:
        NotData, RecursionError: If it is nested too deeply, or has no end.
    """
    try:
        freeze_data(value)
    except NotData:
        value = plain(value)
        freeze_data(value)
    return value


def _plain_key(key: object) -> str:
    [plain_key] = parse(canonical({key: None}))
    return str(plain_key)


def parse(text: str | bytes) -> Any:
    """Decode JSON text.

    Raises:
        ValueError: If it is not JSON; the message says where.
    """
    # Not orjson: it rounds integers past 64 bits to floats, and a session must come back as it was.
    return json.loads(text)


def _plain(value: object) -> object:
    to_list = getattr(value, "to_list", None)
    return _describe(value) if to_list is None else to_list()


def _with_string_keys(value: object) -> object:
    """Return plain data whose keys can be sorted, whatever they were."""
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else _describe(key): _with_string_keys(item)
            for key, item in value.items()
        }
    return [_with_string_keys(item) for item in value] if isinstance(value, list) else value


def _describe(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}:{value!r}"
