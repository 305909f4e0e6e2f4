"""Reading one field of a stranger's dict: the value if it is usable, else None and a warning.

Types are exact. A subclass may run code of its own when it is compared or printed, and nothing that
a plugin sends may do so here; only our own frozen containers count as dict and list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, TypeGuard

from agent_core.display.text import clean
from agent_core.frozen import FrozenDict, FrozenList

Warn = Callable[[str, str], None]
"""Called with the name of a field and what was dropped or changed there."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KINDS = {
    type(None): "missing or null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    FrozenList: "an array",
    dict: "an object",
    FrozenDict: "an object",
}
_UNKNOWN_NAMED = 8  # a payload may have a million keys; the log shall not


def kind_of(value: object) -> str:
    """Name the JSON type of *value* for a warning."""
    return _KINDS.get(type(value), "something that is not JSON")


def is_object(value: object) -> TypeGuard[dict[Any, Any]]:
    """Whether *value* is a JSON object."""
    return type(value) in (dict, FrozenDict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether *value* is a JSON array."""
    return type(value) in (list, FrozenList)


def known_fields(given: dict[Any, Any], known: Collection[str], where: str, warn: Warn) -> dict[str, Any]:
    """Return the fields of *given* that are *known*; the others are named in warnings."""
    unknown = [key for key in given if type(key) is not str or key not in known]
    for key in unknown[:_UNKNOWN_NAMED]:
        warn(_name(where, key), "unknown field dropped")
    if len(unknown) > _UNKNOWN_NAMED:
        warn(_name(where, "*"), f"{len(unknown) - _UNKNOWN_NAMED} more unknown fields dropped")
    return {key: given[key] for key in known if key in given}


def choice(value: object, field: str, allowed: Collection[str], warn: Warn) -> str | None:
    """Return *value* if it is one of the *allowed* words."""
    if type(value) is str and value in allowed:
        return value
    warn(field, f"dropped, since it is none of {', '.join(allowed)}")
    return None


def boolean(value: object, field: str, warn: Warn) -> bool | None:
    """Return *value* if it is true or false."""
    if type(value) is bool:
        return value
    warn(field, f"dropped, since it is {kind_of(value)} and no boolean")
    return None


def identifier(value: object, field: str, warn: Warn) -> str | None:
    """Return *value* if it can name a plugin, an action or a display."""
    if type(value) is str and _ID.fullmatch(value):
        return value
    warn(field, f"dropped, since it is no id ({_ID.pattern})")
    return None


def string(value: object, field: str, warn: Warn) -> str | None:
    """Return *value* without unseen characters if it is a string that then still says something."""
    if type(value) is not str:
        warn(field, f"dropped, since it is {kind_of(value)} and no string")
        return None
    text = clean(value)
    if text != value:
        warn(field, "control characters or direction marks removed")
    if not text.strip():
        warn(field, "dropped, since it is empty")
        return None
    return text


def line(value: object, field: str, limit: int, warn: Warn) -> str | None:
    """Return *value* as one line of at most *limit* characters."""
    text = string(value, field, warn)
    if text is None:
        return None
    joined = " ".join(text.split())
    if joined != text:
        warn(field, "white space collapsed to single spaces")
    if len(joined) <= limit:
        return joined
    warn(field, f"shortened to {limit} characters")
    return joined[: limit - 1].rstrip() + "…"


def _name(where: str, key: object) -> str:
    # A key is a stranger's text too, and it goes to a log.
    if type(key) is not str:
        return f"{where}<{kind_of(key)}>"
    return where + (clean(" ".join(key[:200].split()))[:40] or "<empty>")
