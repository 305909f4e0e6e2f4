"""Whether the schema of a tool may be shown to a model.

It comes from a stranger and goes to a provider, and arguments are checked against it. So it must be small,
flat enough, complete in itself, and valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from agent_core.encoding import canonical

LARGEST: Final = 64_000
DEEPEST: Final = 32
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return why a tool with this schema is not offered, or None if it can be."""
    deepest, remote = _survey(schema)
    if deepest > DEEPEST:
        return f"its schema is nested more than {DEEPEST} levels deep"
    size = len(canonical(schema))
    if size > LARGEST:
        return f"its schema has {size} bytes, more than {LARGEST}"
    if remote is not None:
        return f"its schema refers to {remote!r:.100}, and nothing elsewhere is fetched"
    if schema.get("type") != "object":
        return "its schema does not describe an object"
    return _invalid(schema)


def _survey(schema: Any) -> tuple[int, str | None]:
    """Return how deep a schema is, and a reference to elsewhere; not recursive, since strangers write it."""
    deepest, remote = 0, None
    for depth, node in _nodes(schema):
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
        if isinstance(node, Mapping):
            remote = remote or next(filter(None, (_elsewhere(node, key) for key in _REFERENCES)), None)
    return deepest, remote


def _nodes(schema: Any) -> Iterator[tuple[int, Any]]:
    waiting = [(1, schema)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        inner = (
            node.values() if isinstance(node, Mapping) else node if isinstance(node, (list, tuple)) else ()
        )
        waiting += [(depth + 1, one) for one in inner]


def _elsewhere(node: Mapping[str, Any], key: str) -> str | None:
    target = node.get(key)
    return target if isinstance(target, str) and not target.startswith("#") else None


def _invalid(schema: Mapping[str, Any]) -> str | None:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(dict(schema), retriever=_fetch_nothing)
    except (ValueError, RecursionError) as error:  # its ValidationError is a ValueError, too
        return f"its schema is not valid: {getattr(error, 'message', None) or error!s:.200}"
    return None


def _fetch_nothing(_uri: str) -> NoReturn:
    raise ValueError("schemas elsewhere are not fetched")
