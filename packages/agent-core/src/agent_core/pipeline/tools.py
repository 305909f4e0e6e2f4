"""One tool call as a flow: partial output while it runs, one tool message at its end.

Whatever goes wrong is told to the model as the result of that call; it never stops the request, and
arguments that do not fit are never repaired and run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.cancellation import Cancellation
from agent_core.context import complete_context
from agent_core.errors import AgentError, RequestCancelled, ToolError
from agent_core.frozen import thaw
from agent_core.interop import (
    CORE_TEXT_TOOL_RESULT_FORMAT_ID,
    TOOL_RESULT_FIELD,
    InspectedCall,
    ToolInteropTarget,
    unwrap_call,
)
from agent_core.log import get_logger
from agent_core.pipeline.arguments import argument_problem
from agent_core.plugin.tool import ToolInvocation
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.resolve import Resolution
    from agent_core.resolve.tools import ToolBinding, ToolTable

_log = get_logger("tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHost:
    """What tool calls run with."""

    resolution: Resolution
    table: ToolTable
    core: Any
    cancellation: Any = None
    extra: Mapping[str, Any] | None = None

    def context(self) -> Mapping[str, Any]:
        """Return what tools are told; layers above may have said more already."""
        owned = {"core": self.core, "config": self.resolution.config, "trigger_source": "core"}
        return complete_context(owned, self.extra)


@dataclass(frozen=True, slots=True)
class ReadyCall:
    """A call whose tool is known and whose arguments fit."""

    call: InspectedCall
    binding: ToolBinding

    @property
    def metadata(self) -> dict[str, Any]:
        """What the tool message says about where it comes from."""
        return {
            **call_metadata(self.call),
            "tool_schema": thaw(self.binding.descriptor.schema),
            "tool_plugin": self.binding.plugin.name,
        }


def run_tool_calls(host: ToolHost, calls: Sequence[Any]) -> Flow[list[dict[str, Any]]]:
    """Run the calls one after the other and return their tool messages."""
    messages: list[dict[str, Any]] = []
    for call in calls:
        messages += [(yield from run_tool_call(host, call))]
    return messages


def run_tool_call(host: ToolHost, call: Any) -> Flow[dict[str, Any]]:
    """Run one call: emit its partial output and then its tool message, which is also returned."""
    try:
        ready = ready_call(host, call)
    except CallRefused as refused:
        message = refused.message
    else:
        message = yield from _run(host, ready)
    yield Emit([message])
    return message


def stream_tool_items(host: ToolHost, call: Any) -> Flow[None]:
    """Emit what the tool itself yields, without making a message of it."""
    try:
        ready = ready_call(host, call)
    except CallRefused:
        return
    yield from _read_items(host, ready, _Collected(raw=True))


class CallRefused(Exception):  # noqa: N818  # not an error of ours: the model reads the message
    """A call that is answered without running anything."""

    def __init__(self, message: dict[str, Any]) -> None:
        super().__init__(message["content"])
        self.message = message


def ready_call(host: ToolHost, call: Any) -> ReadyCall:
    """Find the tool and check the arguments.

    Raises:
        CallRefused: With the tool message that says why the call was not run.
    """
    inspected = inspect_call(host, call)
    binding = host.table.bindings.get(inspected.tool_name)
    if binding is None:
        text = str(ToolError(inspected.tool_name, _no_such_tool(inspected.tool_name, host.table)))
        raise CallRefused(_error_message(call_metadata(inspected), "unknown_tool", text))
    inspected = _as_the_tool_wants(host, inspected, binding)
    problem = inspected.problem or argument_problem(host.table.interop, inspected, binding.descriptor.schema)
    if problem is not None:
        text = f"the call was not run, its arguments do not fit: {problem}"
        metadata = ReadyCall(inspected, binding).metadata
        raise CallRefused(_error_message(metadata, "invalid_arguments", text))
    return ReadyCall(inspected, binding)


def inspect_call(host: ToolHost, call: Any) -> InspectedCall:
    """Read a call in whatever format it came.

    Raises:
        CallRefused: If it is in none.
    """
    try:
        return host.table.interop.inspect_call(call)
    except AgentError as error:
        metadata = {"tool_call_id": None, "tool_name": None}
        raise CallRefused(_error_message(metadata, "unreadable_call", str(error))) from error


def invocation(host: ToolHost, ready: ReadyCall, cancellation: Any = None) -> ToolInvocation:
    """Return everything that the tool is told about the call."""
    call, binding = ready.call, ready.binding
    return ToolInvocation(
        tool_name=call.tool_name,
        payload=call.payload,
        state=binding.state,
        payload_kind=call.payload_kind,
        payload_format=call.payload_format,
        payload_metadata=call.payload_metadata,
        tool_call=call.raw,
        cancellation=cancellation,
        context=host.context(),
        prepared=binding.descriptor.prepared,
    )


def call_metadata(call: InspectedCall) -> dict[str, Any]:
    """Return the ids that tie a tool message to its call."""
    return {"tool_call_id": call.call_id, "tool_name": call.tool_name}


class _Collected:
    """What a tool has yielded so far."""

    def __init__(self, *, raw: bool = False) -> None:
        self.raw = raw
        self.result: dict[str, Any] | None = None
        self.junk = 0

    def take(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """Remember results, count what is no dict, and return what can be shown."""
        shown = []
        for item in items:
            if not isinstance(item, dict):
                self.junk += 1
            elif "success" in item:
                self.result = item
                shown += [item] if self.raw else []
            else:
                shown.append(item if self.raw or "part" in item else {"part": item})
        return shown


def _run(host: ToolHost, ready: ReadyCall) -> Flow[dict[str, Any]]:
    collected = _Collected()
    try:
        yield from _read_items(host, ready, collected)
    except RequestCancelled:
        return _error_message(
            {**ready.metadata, "interrupted": True}, "cancelled", "it was cancelled; it may have run in part"
        )
    except TimeoutError:
        limit = ready.binding.plugin.timeout(ready.call.tool_name, host.resolution.config)
        text = f"it gave no result within {limit:g} seconds and was given up; it may have run in part"
        return _error_message(ready.metadata, "timeout", text)
    except Exception as error:  # noqa: BLE001  # a stranger's tool may raise anything; the model is told
        _log.warning(
            "tool_failed", tool=ready.call.tool_name, plugin=ready.binding.plugin.name, error=repr(error)
        )
        return _error_message(ready.metadata, "exception", f"{type(error).__name__}: {error}")
    if collected.result is None:
        return _error_message(ready.metadata, "no_result", _nothing_usable(collected))
    return _result_message(host, ready, collected.result)


def _read_items(host: ToolHost, ready: ReadyCall, collected: _Collected) -> Flow[None]:
    """Run the tool to its end; give it up when its time is over or the caller cancels."""
    plugin = ready.binding.plugin
    timeout = plugin.timeout(ready.call.tool_name, host.resolution.config)
    # The tool gets a token of its own, so that it is also told when only its time is over.
    own = Cancellation() if host.cancellation is not None or timeout is not None else None
    passing_on = (
        None if host.cancellation is None or own is None else host.cancellation.add_callback(own.cancel)
    )
    work = plugin.work(invocation(host, ready, own))
    try:
        reader = yield from ask(OpenStream(work, timeout=timeout, cancellation=own))
        while (items := (yield from ask(Read(reader)))) is not None:
            if shown := collected.take(items):
                yield Emit(shown)
        yield CloseStream(reader)
    except TimeoutError:
        if own is not None:
            own.cancel()
        raise
    finally:
        if passing_on is not None:
            host.cancellation.remove_callback(passing_on)


def _result_message(host: ToolHost, ready: ReadyCall, result: dict[str, Any]) -> dict[str, Any]:
    plugin, state, interop = ready.binding.plugin, ready.binding.state, host.table.interop
    try:
        formatted = plugin.format_tool_result(result, state)
        inspected = interop.inspect_result(formatted)
    except AgentError as error:
        return _error_message(ready.metadata, "unreadable_result", str(error))
    structured = _structured(host, ready, formatted, inspected.format_id)
    metadata = ready.metadata
    display = _display(ready, inspected.text, result) or interop.inspect_result(structured).display
    if display is not None:
        metadata["display"] = display
    if result.get("success") is False:
        metadata["error"] = {"type": "tool_failed"}
    content = interop.inspect_result(structured).text
    return {"role": "tool", "content": content, "metadata": metadata, TOOL_RESULT_FIELD: structured}


def _structured(host: ToolHost, ready: ReadyCall, formatted: Any, format_id: str) -> dict[str, Any]:
    """Return the result in the format in which the tool gave it, or else as the core's text."""
    if isinstance(formatted, dict) and format_id not in ("", CORE_TEXT_TOOL_RESULT_FORMAT_ID):
        return formatted
    target = ToolInteropTarget("core.tool_result", ready.call)
    return host.table.interop.convert_tool_result(
        formatted, target=target, target_formats=[CORE_TEXT_TOOL_RESULT_FORMAT_ID]
    )


def _display(ready: ReadyCall, text: str, result: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return ready.binding.plugin.to_display_format(text, result, ready.binding.state)
    except AgentError as error:
        # What the person sees is a courtesy; the result itself is what counts.
        _log.warning("tool_display_failed", tool=ready.call.tool_name, error=str(error))
        return None


def _error_message(metadata: dict[str, Any], kind: str, text: str) -> dict[str, Any]:
    content = f"Error: {text}"
    return {
        "role": "tool",
        "content": content,
        "metadata": {**metadata, "error": {"type": kind}},
        TOOL_RESULT_FIELD: {"type": "tool_result", "text": content, "is_error": True},
    }


def _as_the_tool_wants(host: ToolHost, call: InspectedCall, binding: ToolBinding) -> InspectedCall:
    """A text tool on a JSON-only wire is called with ``{"input": text}``; give it its text back."""
    wanted = host.table.interop.inspect_schema(binding.descriptor.schema).payload_kind
    if wanted == "text" and call.payload_kind == "json":
        return unwrap_call(call) or call
    return call


def _no_such_tool(name: str, table: ToolTable) -> str:
    from difflib import get_close_matches

    names = list(table.bindings)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"there is no such tool, did you mean {close[0]!r}?"
    return f"there is no such tool, there are {', '.join(names) or 'none'}"


def _nothing_usable(collected: _Collected) -> str:
    if collected.junk:
        return f"the tool yielded {collected.junk} items that are not dicts, and no result"
    return "the tool ended without a result"
