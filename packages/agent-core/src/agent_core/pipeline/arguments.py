"""Whether a call's arguments fit the tool's schema."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.interop import InspectedCall, ToolInteropRegistry

_SHOWN = 5


def argument_problem(
    interop: ToolInteropRegistry, call: InspectedCall, schema: Mapping[str, Any]
) -> str | None:
    """Return what is wrong with the arguments, in words that help the model, or None."""
    inspected = interop.inspect_schema(schema)
    if inspected.payload_kind != call.payload_kind:
        return f"the tool takes {_NOUNS[inspected.payload_kind]}, not {_NOUNS[call.payload_kind]}"
    if call.payload_kind == "text":
        return None
    validator = _validator(canonical(inspected.parameters))
    if isinstance(validator, str):
        return validator
    problems = [_describe(error) for error in validator.iter_errors(call.payload)]
    return "; ".join(problems[:_SHOWN]) if problems else None


_NOUNS = {"json": "a JSON object", "text": "plain text"}


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> Any:
    """Return a validator, or a sentence if the schema itself is broken; made once per schema."""
    import jsonschema_rs

    from agent_core.encoding import parse

    try:
        return jsonschema_rs.validator_for(parse(schema))
    except (ValueError, jsonschema_rs.ValidationError) as error:
        return f"the tool's own schema is not valid: {error}"


def _describe(error: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"{path.lstrip('.') or 'arguments'}: {error.message}"
