"""The steps of a conversion: leave it alone, or build the best version that a wanted format takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from agent_core.errors import ToolError
from agent_core.frozen import thaw
from agent_core.interop.parts import text_only
from agent_core.interop.table import F, ask
from agent_core.interop.text_tools import unwrap_call, unwrap_schema, wrap_call, wrap_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_core.interop.values import InspectedCall, InspectedResult, InspectedSchema, ToolInteropTarget

V = TypeVar("V", bound="InspectedCall | InspectedSchema | InspectedResult")


def signed(inspected: V, format_id: str) -> V:
    """Return *inspected* as read by that format, even if the format borrowed another's reader."""
    return inspected if inspected.format_id == format_id else replace(inspected, format_id=format_id)


def addressed(call: InspectedCall, target: ToolInteropTarget) -> InspectedCall:
    """Return *call* under the id and tool name of the target's call."""
    known = target.call
    if known is None:
        return call
    return replace(call, call_id=known.call_id or call.call_id, tool_name=known.tool_name)


def answering(result: InspectedResult, target: ToolInteropTarget) -> InspectedResult:
    """Return *result* as the answer to the target's call."""
    if target.call is None or target.call.call_id is None:
        return result
    return replace(result, call_id=target.call.call_id)


def call_versions(call: InspectedCall) -> list[InspectedCall]:
    """Return *call*, and then the call with its text wrapped in JSON, or unwrapped from it."""
    other = wrap_call(call) if call.payload_kind == "text" else unwrap_call(call)
    return [call] if other is None else [call, other]


def schema_versions(schema: InspectedSchema) -> list[InspectedSchema]:
    """Return *schema*, and then the tool with its text wrapped in JSON, or unwrapped from it."""
    other = wrap_schema(schema) if schema.payload_kind == "text" else unwrap_schema(schema)
    return [schema] if other is None else [schema, other]


def result_versions(result: InspectedResult) -> list[InspectedResult]:
    """Return *result*, and then the result with notes in the place of what is not text."""
    if not result.parts:
        return [result]
    return [result, replace(result, text=text_only(result.parts), parts=())]


def own_format(wanted: Iterable[F], inspected: V) -> F | None:
    """Return the wanted format that the value is in already."""
    return next((each for each in wanted if each.id == inspected.format_id), None)


def sendable(own: Any, inspected: V) -> dict[str, Any]:
    """Return a value that is in its own format: the same object, unless it has to be put right."""
    raw: Any = inspected.raw
    tidy: Any = raw if own.tidy is None else ask(own.id, own.tidy, inspected)
    sent: dict[str, Any] = raw if tidy is raw else thaw(dict(tidy))
    return sent


def first_built(
    wanted: Iterable[Any], versions: Iterable[V], *more: Any, tool: str | None, target: ToolInteropTarget
) -> dict[str, Any]:
    """Return the first version that a wanted format can build, in the first format that can.

    Args:
        wanted: The formats, the best first.
        versions: The value, the best first.
        more: What `build` takes beside the value.
        tool: The tool in question, for the message.
        target: Whom it is for, for the message.

    Raises:
        ToolError: If none can; the message has everyone's reason.
    """
    problems: dict[str, None] = {}
    for version in versions:
        for each in wanted:
            try:
                return dict(thaw(ask(each.id, each.build or _refuse, version, *more)))
            except ToolError as error:
                problems[f"{each.id}: {error.problem}"] = None
    raise ToolError(tool, f"cannot be converted for {target.name!r}; {'; '.join(problems)}")


def _refuse(*_values: Any) -> dict[str, Any]:
    raise ToolError(None, "this format can only be read")
