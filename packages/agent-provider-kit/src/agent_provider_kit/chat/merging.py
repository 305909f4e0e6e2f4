"""Putting fields together of which nobody told us how."""

from __future__ import annotations

from typing import Any

_WHOLE = frozenset({"id", "type", "role", "name", "format", "index"})  # sent whole, however often


def merge(into: dict[str, Any], piece: dict[str, Any]) -> None:
    """Add a piece of an object: texts and lists grow, objects merge, the rest is replaced.

    Null adds nothing.
    """
    for key, value in piece.items():
        before: Any = into.get(key)
        if value is None:
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            merge(before, value)
        elif key not in _WHOLE and type(before) in (str, list) and type(before) is type(value):
            into[key] = before + value
        else:
            into[key] = dict(value) if isinstance(value, dict) else value
