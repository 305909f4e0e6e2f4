"""A tool call before it runs: read, matched with its tool, its arguments checked.

Arguments that do not fit are never repaired and run: the call is refused with a message for the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.clean_text import clean
from agent_core.context import complete_context
from agent_core.display import clean_tool_display
from agent_core.encoding import as_data
from agent_core.errors import AgentError, ToolError, closest
from agent_core.frozen import JsonObject, NotData, freeze
from agent_core.interop import unwrap_call
from agent_core.log import get_logger
from agent_core.pipeline.tool_messages import argument_problem, error_message
from agent_core.plugin.tool import ToolInvocation, default_preview

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.cancellation import Cancellation
    from agent_core.resolve import Resolution
    from agent_core.resolve.tools import ToolBinding, ToolTable
    from agent_core.values import ToolCall

_log = get_logger("tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHost:
    """What tool calls run with."""

    resolution: Resolution
    table: ToolTable
    core: object
    cancellation: Cancellation | None = None
    extra: Mapping[str, object] | None = None

    @property
    def is_cancelled(self) -> bool:
        """True once the caller has lost interest."""
        return self.cancellation is not None and self.cancellation.cancelled

    def context(self) -> Mapping[str, Any]:
        """Return the context of tools; layers above may have added to it already."""
        owned = {"core": self.core, "config": self.resolution.config, "trigger_source": "core"}
        return complete_context(owned, self.extra)


@dataclass(frozen=True, slots=True)
class ReadyCall:
    """A call whose tool is known and whose arguments fit."""

    call: ToolCall
    binding: ToolBinding

    @property
    def metadata(self) -> JsonObject:
        """What the tool message says about where it comes from."""
        return {
            **call_metadata(self.call),
            "tool_schema": self.binding.descriptor.schema,
            "tool_plugin": self.binding.plugin.name,
        }


class CallRefused(Exception):  # not an error of ours: the model reads the message
    """A call that is answered without running anything."""

    def __init__(self, message: JsonObject) -> None:
        super().__init__(message["content"])
        self.message = message


def ready_call(host: ToolHost, call: object) -> ReadyCall:
    """Find the tool and check the arguments.

    Raises:
        CallRefused: With the tool message that says why the call was not run.
    """
    inspected = inspect_call(host, call)
    binding = host.table.bindings.get(inspected.tool_name)
    if binding is None:
        text = str(ToolError(inspected.tool_name, _no_such_tool(inspected.tool_name, host.table)))
        raise CallRefused(error_message(call_metadata(inspected), "unknown_tool", text))
    inspected = _as_the_tool_wants(host, inspected, binding)
    problem = None
    # A tool may check its arguments itself: where it can read more than its schema says, or explains better.
    if getattr(binding.plugin.plugin, "checks_arguments", False) is not True or inspected.problem is not None:
        problem = argument_problem(host.table.interop, inspected, binding.descriptor.schema)
    if problem is not None:
        metadata = ReadyCall(inspected, binding).metadata
        raise CallRefused(error_message(metadata, problem.kind, f"the call was not run, {problem.text}"))
    return ReadyCall(inspected, binding)


def inspect_call(host: ToolHost, call: object) -> ToolCall:
    """Read a call in whatever format it came.

    Raises:
        CallRefused: If it is in none.
    """
    try:
        return host.table.interop.inspect_call(call)
    except AgentError as error:
        metadata = {"tool_call_id": _id_of(call), "tool_name": None}
        raise CallRefused(error_message(metadata, "unreadable_call", str(error))) from error


def invocation(host: ToolHost, ready: ReadyCall, cancellation: object = None) -> ToolInvocation:
    """Return everything that the tool gets to know about the call."""
    call, binding = ready.call, ready.binding
    return ToolInvocation(
        tool_name=call.tool_name,
        payload=call.payload,
        state=binding.state,
        payload_kind=call.payload_kind,
        payload_format=call.payload_format,
        payload_metadata=freeze(call.payload_metadata),
        tool_call=freeze(call.raw),
        cancellation=cancellation,
        context=host.context(),
        prepared=binding.descriptor.prepared,
    )


def call_metadata(call: ToolCall) -> JsonObject:
    """Return the ids that tie a tool message to its call."""
    return {"tool_call_id": call.call_id, "tool_name": call.tool_name}


def preview_call(host: ToolHost, call: object) -> JsonObject:
    """Return the call's id and one line about it; a call that nobody can run has an empty one."""
    try:
        inspected = inspect_call(host, call)
    except CallRefused:
        return {"id": None, "preview": ""}
    binding = host.table.bindings.get(inspected.tool_name)
    if binding is None:
        return {"id": inspected.call_id, "preview": ""}
    ready = ReadyCall(_as_the_tool_wants(host, inspected, binding), binding)
    return {"id": inspected.call_id, "preview": preview_ready(host, ready)}


def preview_ready(host: ToolHost, ready: ReadyCall) -> str:
    """Return one line about a call whose tool is known."""
    call = invocation(host, ready)
    try:
        # A hook expects arguments; a text that is none is better shown than explained.
        broken = ready.call.problem is not None
        line = default_preview(call) if broken else ready.binding.plugin.format_tool_call_preview(call)
    except AgentError as error:
        _log.warning("preview_failed", tool=ready.call.tool_name, error=str(error))
        line = ""
    # A person decides by this line, and most of it is what a model wrote.
    return clean(line)


def display_ready(host: ToolHost, ready: ReadyCall) -> JsonObject | None:
    """Return what a person sees of a call before it runs, apart from its line; the tool may read files."""
    if ready.call.problem is not None:
        return None
    try:
        shown = ready.binding.plugin.format_tool_call_display(invocation(host, ready))
        display: JsonObject | None = None if shown is None else as_data(clean_tool_display(shown))
    except (AgentError, NotData, RecursionError) as error:
        _log.warning("display_failed", tool=ready.call.tool_name, error=str(error))
        return None
    return display


def _as_the_tool_wants(host: ToolHost, call: ToolCall, binding: ToolBinding) -> ToolCall:
    """A text tool on a JSON-only wire is called with ``{"input": text}``; give it its text back."""
    wanted = host.table.interop.inspect_schema(binding.descriptor.schema).payload_kind
    if wanted == "text" and call.payload_kind == "json":
        return unwrap_call(call) or call
    return call


def _id_of(call: object) -> str | None:
    """Return the id of a call of which nothing else can be read: its provider waits for an answer."""
    if not isinstance(call, dict):
        return None
    found = call.get("call_id") or call.get("id")
    return found if found and isinstance(found, str) else None


def _no_such_tool(name: str, table: ToolTable) -> str:

    names = list(table.bindings)
    if (close := closest(name, names)) is not None:
        return f"there is no such tool; did you mean {close!r}?"
    return f"there is no such tool; known are {', '.join(names) or 'none'}"
