"""Ways through data: the keys and numbers that lead from the top to a value.

Specs name fields by a path, `stop_conditions[0].seconds`. A key may itself contain dots or brackets, so a
path is not taken apart: it is followed through the data, along the keys that are there.
"""

from __future__ import annotations

import re
from typing import Any

Way = tuple[str | int, ...]
"""The keys and numbers to a value."""
Places = dict[Way, int]
"""Where everything in a text begins."""


def spell(way: Way) -> str:
    """Return a way as errors write it: `agents.helper.stop_conditions[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way).removeprefix(".")


def join(outer: str, field: str) -> str:
    """Return the path of a field of something, or of the thing itself if *field* is empty."""
    return f"{outer}.{field}".rstrip(".") if not field.startswith("[") else outer + field


def inside(value: Any, way: Way) -> Any:
    """Return what stands at the end of a way."""
    for step in way:
        value = value[step]
    return value


def follow(value: Any, field: str) -> Way:
    """Return the way that a field's path takes through *value*, as far as it goes."""
    if isinstance(value, dict):
        return _follow_key(value, field)
    number = re.match(r"\[(\d+)\]\.?", field) if isinstance(value, list) else None
    if number is None or int(number[1]) >= len(value):
        return ()
    return (int(number[1]), *follow(value[int(number[1])], field[number.end() :]))


def _follow_key(value: dict[str, Any], field: str) -> Way:
    for key in sorted(value, key=len, reverse=True):  # a key may contain a dot, so longer ones go first
        for spelt in (key, f"[{key!r}]"):
            rest = field.removeprefix(spelt)
            if len(rest) < len(field) and rest[:1] in {"", ".", "["}:
                return (key, *follow(value[key], rest.removeprefix(".")))
    return ()
