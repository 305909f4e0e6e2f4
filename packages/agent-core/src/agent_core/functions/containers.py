"""Shapes made of other shapes: arrays, objects with any names, and alternatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.functions.shapes import MismatchError, Shape, load_at, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def array(collect: Callable[[Any], Any], item: Shape) -> Shape:
    """Return the shape of items of one kind, gathered by *collect* (`list`, `set` ...)."""
    schema: dict[str, Any] = {"type": "array", "items": item.schema}
    if collect in (set, frozenset):
        schema["uniqueItems"] = True

    def load(value: Any) -> Any:
        if not isinstance(value, list):
            raise refused(value, "an array")
        items = [load_at(i, item.load, part) for i, part in enumerate(value)]
        try:
            return collect(items)
        except TypeError as error:
            raise MismatchError(f"its items cannot be kept in a set ({error})") from error

    return Shape(schema, load)


def fixed_tuple(members: Sequence[Shape]) -> Shape:
    """Return the shape of an array where every position has a shape of its own."""
    count = len(members)
    schema: dict[str, Any] = {"type": "array", "minItems": count, "maxItems": count}
    if members:
        schema = {**schema, "prefixItems": [member.schema for member in members], "items": False}

    def load(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != count:
            raise refused(value, f"an array of {count} items")
        pairs = enumerate(zip(members, value, strict=True))
        return tuple(load_at(i, member.load, part) for i, (member, part) in pairs)

    return Shape(schema, load)


def mapping(keys: Shape, values: Shape) -> Shape:
    """Return the shape of an object whose names are not known beforehand."""
    schema: dict[str, Any] = {"type": "object", "additionalProperties": values.schema or True}
    if keys.schema != {"type": "string"}:
        schema["propertyNames"] = keys.schema

    def load(value: Any) -> Any:
        if not isinstance(value, dict):
            raise refused(value, "an object")
        return {load_at(k, keys.load, k): load_at(k, values.load, item) for k, item in value.items()}

    return Shape(schema, load)


def union(members: Sequence[Shape]) -> Shape:
    """Return the shape of alternatives; the first that takes a value has it, in the order written."""

    def load(value: Any) -> Any:
        problems = []
        for member in members:
            try:
                return member.load(value)
            except MismatchError as error:
                problems.append(error)
        raise _best(problems)

    return Shape({"anyOf": [member.schema for member in members]}, load)


def _best(problems: list[MismatchError]) -> MismatchError:
    """Return the complaint of the member that came furthest, or all of them if none came far."""
    deepest = max(problems, key=lambda problem: len(problem.path))
    if deepest.path or len(problems) == 1:
        return deepest
    return MismatchError("; ".join(problem.problem for problem in problems))
