"""Whether a call's arguments fit the tool's schema.

Both come from strangers. A schema is read alone: what it refers to elsewhere is not fetched, neither
from the network nor from a file.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from agent_core.encoding import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.interop import InspectedCall, ToolInteropRegistry

_SHOWN = 5
_SHOWN_LENGTH = 300  # a message quotes the value that it complains of, and that may be a whole file


class Problem(NamedTuple):
    """Why a call cannot be run: a word for programs and a sentence for the model."""

    kind: str
    text: str


def argument_problem(
    interop: ToolInteropRegistry, call: InspectedCall, schema: Mapping[str, Any]
) -> Problem | None:
    """Return what is wrong with the arguments, in words that help the model, or None."""
    if call.problem is not None:
        return _unfit(call.problem)
    inspected = interop.inspect_schema(schema)
    if inspected.payload_kind != call.payload_kind:
        return _unfit(_MISMATCHES[inspected.payload_kind])
    return None if call.payload_kind == "text" else _schema_problem(inspected.parameters, call.payload)


def _schema_problem(schema: Mapping[str, Any], payload: Any) -> Problem | None:
    try:
        validator = _validator(canonical(schema))
        if isinstance(validator, Problem):
            return validator
        if validator.is_valid(payload):
            return None
        return _unfit("; ".join(_explain(validator, schema, payload)))
    except (ValueError, TypeError, RecursionError) as error:  # half a surrogate pair, an object
        return _unfit(f"they cannot be checked: {_cut(str(error))}")


def _explain(validator: Any, schema: Mapping[str, Any], payload: Any) -> list[str]:
    """Return what is wrong, in detail where that is cheap.

    Where a schema has both references and alternatives, listing every way in which a value fails can
    take for ever, while saying that it does is quick.
    """
    encoded = canonical(schema)
    if b'"$ref"' in encoded and any(word in encoded for word in (b'"anyOf"', b'"oneOf"', b'"allOf"')):
        names = ", ".join(sorted(str(name) for name in payload)) or "nothing"
        return [f"the schema does not allow these values of {names} together"]
    return [_describe(error) for error in islice(validator.iter_errors(payload), _SHOWN)]


_MISMATCHES = {
    "json": "the tool takes a JSON object, not plain text",
    "text": 'the tool takes plain text, as text or as {"input": "…"}, and nothing else',
}


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> Any:
    """Return a validator, or a problem if the schema itself is broken; made once per schema."""
    import jsonschema_rs

    from agent_core.encoding import parse

    try:
        return jsonschema_rs.validator_for(parse(schema), retriever=_fetch_nothing)
    except (ValueError, RecursionError) as error:  # its ValidationError is a ValueError, too
        reason = _cut(getattr(error, "message", None) or str(error))
        return Problem("invalid_schema", f"the tool's own schema is not valid: {reason}")


def _fetch_nothing(_uri: str) -> NoReturn:
    raise ValueError("schemas elsewhere are not fetched")


def _unfit(text: str) -> Problem:
    return Problem("invalid_arguments", f"its arguments do not fit: {text}")


def _describe(error: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"{path.lstrip('.') or 'arguments'}: {_cut(error.message)}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"
