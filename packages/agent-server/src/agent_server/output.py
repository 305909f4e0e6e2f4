"""Answers that must fit a JSON Schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no schema, or would have us fetch something.

    Raises:
        Problem: If so.
    """
    try:
        jsonschema_rs.validator_for(dict(schema), retriever=_fetch_nothing)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise Problem(422, "invalid-schema", "output_schema is no JSON Schema", str(error)[:500]) from error


def read_output(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value that an answer is.

    Raises:
        Problem: If it does not fit the schema.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _misfit(f"it is no JSON: {error}") from error
    validator = jsonschema_rs.validator_for(dict(schema), retriever=_fetch_nothing)
    problem = next(iter(validator.iter_errors(value)), None)
    if problem is not None:
        raise _misfit(problem.message)
    return value


def _misfit(why: str) -> Problem:
    return Problem(
        502, "output-misfit", "The answer does not fit the schema",
        f"The session has it; {why[:500]}",
    )  # fmt: skip


def _fetch_nothing(uri: str) -> Any:
    raise ValueError(f"a schema must be whole: {uri} is not fetched")
