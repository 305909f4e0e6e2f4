"""JSON Schema: the one validator for arguments of tools, settings, decisions and answers.

The engine takes 20 ms to load, so the first schema loads it. It is bounded on hostile schemas, which is why
schemas that come from elsewhere may be compiled at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


def compile_schema(schema: Any, *, fetches: bool = False) -> Any:
    """Return a validator with `iter_errors` and `is_valid`.

    Args:
        fetches: Whether schemas that this one refers to may be fetched, be it from the network.

    Raises:
        ValueError: If the schema is not valid.
    """
    import jsonschema_rs

    if fetches:
        return jsonschema_rs.validator_for(schema)
    return jsonschema_rs.validator_for(schema, retriever=_fetch_nothing)


def first_misfit(schema: Any, value: Any, *, fetches: bool = False) -> ValidationError | None:
    """Return why a value does not fit, with its `message` and `instance_path`; None if it fits.

    Raises:
        ValueError: If the schema is not valid.
    """
    return next(iter(compile_schema(schema, fetches=fetches).iter_errors(value)), None)


def schema_problem(error: Exception) -> str:
    """Return what is wrong with a schema, in the engine's words without its list of places."""
    return getattr(error, "message", None) or str(error)


def _fetch_nothing(_uri: str) -> NoReturn:
    raise ValueError("schemas elsewhere are not fetched")
