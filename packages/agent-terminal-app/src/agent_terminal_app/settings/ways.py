"""Dotted keys, as TOML writes them, and the values they lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_terminal_app.errors import CommandError, Exit

Way = tuple[str | int, ...]
"""The keys and numbers that lead from the top to a value."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def spell(way: Way) -> str:
    """Return a way as people write it; a key that holds a dot is put in quotes."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_quoted(step)}" for step in way)[1:]


def read_way(key: str) -> tuple[str, ...]:
    """Return the way that a dotted key takes.

    Raises:
        CommandError: If it is none.
    """
    import tomllib

    try:
        data: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        data = {}
    way: list[str] = []
    while isinstance(data, dict) and len(data) == 1:
        [(step, data)] = data.items()
        way.append(step)
    if data != 0 or "\n" in key:
        raise CommandError(
            f"{key!r} is no key of a setting",
            code=Exit.USAGE,
            hint="write it with dots, for example agents.helper.max_rounds",
        )
    return tuple(way)


def leaves(values: Mapping[str, Any], way: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Find every value that is no table, or an empty one."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*way, key))
        else:
            yield (*way, key), value


def every_way(value: Any, way: Way = ()) -> Iterator[Way]:
    """Find the way to everything in *value*, in its order, tables and items of lists among them."""
    yield way
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from every_way(item, (*way, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from every_way(item, (*way, place))


def value_at(values: Any, way: Way) -> Any:
    """Return what stands at the end of a way.

    Raises:
        LookupError: If nothing does.
    """
    for step in way:
        if not isinstance(values, Mapping) or step not in values:
            raise LookupError(spell(way))
        values = values[step]
    return values


def _quoted(step: str) -> str:
    import json

    return step if _BARE.fullmatch(step) else json.dumps(step, ensure_ascii=not step.isprintable())
