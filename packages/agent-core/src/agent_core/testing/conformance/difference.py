"""Where two values differ, in words."""

from __future__ import annotations

from typing import Any

_LONGEST = 80


def difference(one: Any, other: Any, path: str) -> str | None:
    """Return the first place where *one* and *other* differ and what stands there, or None."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}, key=str):
            if key not in one or key not in other:
                has, lacks = (one, "second") if key in one else (other, "first")
                return f"{path}.{key} is {shown(has[key])}, and not there in the {lacks}"
            if (told := difference(one[key], other[key], f"{path}.{key}")) is not None:
                return told
        return None
    if isinstance(one, list) and isinstance(other, list):
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            if (told := difference(left, right, f"{path}[{index}]")) is not None:
                return told
        return None if len(one) == len(other) else f"{path} has {len(one)} items, and then {len(other)}"
    return None if one == other else f"{path} is {shown(one)}, and then {shown(other)}"


def shown(value: Any) -> str:
    """Return a value as it is written in a problem, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
