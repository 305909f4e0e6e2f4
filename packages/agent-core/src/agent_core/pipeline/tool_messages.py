"""What the model, and the person, read of a tool call."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core.display import clean_tool_display
from agent_core.encoding import as_data, canonical, parse
from agent_core.errors import AgentError
from agent_core.frozen import NotData
from agent_core.interop import CORE_TEXT_TOOL_RESULT_FORMAT_ID, TOOL_RESULT_FIELD
from agent_core.json_schema import compile_schema, schema_problem
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.frozen import JsonObject
    from agent_core.interop import ToolInteropRegistry
    from agent_core.pipeline.ready_call import ReadyCall, ToolHost
    from agent_core.values import ToolCall


# Whether a call's arguments fit the tool's schema.
#
# Both come from outside. A schema is read alone: what it refers to elsewhere is not fetched, neither
# from the network nor from a file.


_SHOWN = 5
_SHOWN_LENGTH = 300  # a message quotes the value that it complains of, and that may be a whole file


class Problem(NamedTuple):
    """Why a call cannot be run: a word for programs and a sentence for the model."""

    kind: str
    text: str


def argument_problem(
    interop: ToolInteropRegistry, call: ToolCall, schema: Mapping[str, object]
) -> Problem | None:
    """Return what is wrong with the arguments, in words that help the model, or None."""
    if call.problem is not None:
        return _unfit(call.problem)
    inspected = interop.inspect_schema(schema)
    if inspected.payload_kind != call.payload_kind:
        return _unfit(_MISMATCHES[inspected.payload_kind])
    return None if call.payload_kind == "text" else _schema_problem(inspected.parameters, call.payload)


def _schema_problem(schema: Mapping[str, object], payload: object) -> Problem | None:
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
    try:
        return compile_schema(parse(schema))
    except (ValueError, RecursionError) as error:  # its ValidationError is a ValueError, too
        reason = _cut(schema_problem(error))
        return Problem("invalid_schema", f"the tool's own schema is not valid: {reason}")


def _unfit(text: str) -> Problem:
    return Problem("invalid_arguments", f"its arguments do not fit: {text}")


def _describe(error: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"{path.lstrip('.') or 'arguments'}: {_cut(error.message)}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


_log = get_logger("tools")


def result_message(host: ToolHost, ready: ReadyCall, metadata: JsonObject, result: JsonObject) -> JsonObject:
    """Return the tool message for a call that gave one."""
    try:
        return _formatted(host, ready, metadata, result)
    except Exception as error:  # hooks, and data that says it is a dict, may raise anything
        why = "it is nested too deeply" if isinstance(error, RecursionError) else said(error)
        text = f"the tool ran, but its result cannot be read: {why}"
        return error_message(metadata, "unreadable_result", text)


def _formatted(host: ToolHost, ready: ReadyCall, metadata: JsonObject, result: JsonObject) -> JsonObject:
    interop = host.table.interop
    formatted = ready.binding.plugin.format_tool_result(result, ready.binding.state)
    shown = interop.inspect_result(formatted)
    failed = result.get("success") is False or shown.is_error
    if shown.format_id == CORE_TEXT_TOOL_RESULT_FORMAT_ID or not isinstance(formatted, dict):
        structured = interop.as_core_text(shown)
        if failed:  # a hook that turns a failure into text loses this mark, which providers pass on
            structured = {**structured, "is_error": True}
    else:
        structured = formatted  # in the format in which the tool gave it
    display = _display(ready, shown.text, result) or shown.display
    if display is not None:
        metadata["display"] = as_data(display)
    if isinstance(update := result.get("state_update"), dict):
        metadata["state_update"] = as_data(update)
    if failed:
        metadata["error"] = {"type": "tool_failed"}
    return {
        "role": "tool",
        "content": shown.text,
        "metadata": metadata,
        TOOL_RESULT_FIELD: as_data(structured),
    }


def _display(ready: ReadyCall, text: str, result: JsonObject) -> JsonObject | None:
    try:
        shown = ready.binding.plugin.to_display_format(text, result, ready.binding.state)
        return None if shown is None else as_data(clean_tool_display(shown))
    except (AgentError, NotData, RecursionError) as error:
        # What the person sees is a courtesy; the result itself is what counts.
        _log.warning("tool_display_failed", tool=ready.call.tool_name, error=str(error))
        return None


def error_message(metadata: JsonObject, kind: str, text: str) -> JsonObject:
    """Return the tool message for a call that gave no result; *kind* is a word for programs."""
    content = f"Error: {text}"
    return {
        "role": "tool",
        "content": content,
        "metadata": {**metadata, "error": {"type": kind}},
        TOOL_RESULT_FIELD: {"type": "tool_result", "text": content, "is_error": True},
    }


def said(error: BaseException) -> str:
    """Return an error in words; it comes from a plugin, so even that may fail."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        return name
    return text if isinstance(error, AgentError) else f"{name}: {text}" if text else name
