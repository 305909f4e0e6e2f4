"""Dotted keys, as TOML writes them, and the values they lead to."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from agent_core.errors import nearest
from agent_terminal_app.errors import CommandError, Exit

Way = tuple[str | int, ...]
"""The keys and numbers that lead from the top to a value."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def spell(way: Way) -> str:
    """Return a key as users write it, with dots; a step that has a dot in it is put in quotes."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_quoted(step)}" for step in way)[1:]


def read_way(key: str) -> tuple[str, ...]:
    """Return the steps of a dotted key.

    Raises:
        CommandError: If it is not a key.
    """
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
            f"{key!r} is not the key of a setting",
            code=Exit.USAGE,
            hint="write it with dots, for example agents.helper.max_rounds",
        )
    return tuple(way)


def leaves(values: Mapping[str, Any], way: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Find every value that is not a table, and every empty table."""
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


def find_value(values: Mapping[str, Any], way: tuple[str, ...]) -> Any:
    """Return the setting at the end of a way.

    Raises:
        CommandError: If it is not set; the hint names the nearest key.
    """
    try:
        return value_at(values, way)
    except LookupError:
        known = [spell(leaf) for leaf, _ in leaves(values)]
        raise CommandError(f"{spell(way)} is not set", hint=nearest(spell(way), known)) from None


def readings(text: str) -> Iterator[Any]:
    """Return what a word on the command line can mean: a TOML value, a JSON value, itself."""
    try:
        found = tomllib.loads(f"value = {text}")
        if len(found) == 1:  # not if a line break smuggled in more
            yield found["value"]
    except tomllib.TOMLDecodeError:
        pass
    if text.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):
            yield json.loads(text)
    yield text


def literal(value: Any) -> str:
    """Return a value as TOML writes it, in one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=not value.isprintable())
    if isinstance(value, Mapping):
        inside = ", ".join(f"{spell((str(key),))} = {literal(item)}" for key, item in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


def _quoted(step: str) -> str:
    return step if _BARE.fullmatch(step) else json.dumps(step, ensure_ascii=not step.isprintable())
