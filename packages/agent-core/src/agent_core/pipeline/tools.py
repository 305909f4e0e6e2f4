"""One tool call as a flow: partial output while it runs, one tool message at its end.

Whatever goes wrong is told to the model as the result of that call; it never stops the request, and
arguments that do not fit are never repaired and run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.cancellation import Cancellation
from agent_core.context import complete_context
from agent_core.display.text import clean
from agent_core.errors import AgentError, RequestCancelled, ToolError
from agent_core.frozen import freeze, thaw
from agent_core.interop import (
    CORE_TEXT_TOOL_RESULT_FORMAT_ID,
    TOOL_RESULT_FIELD,
    InspectedCall,
    ToolInteropTarget,
    unwrap_call,
)
from agent_core.log import get_logger
from agent_core.pipeline.arguments import Problem, argument_problem
from agent_core.plugin.tool import ToolInvocation, ToolRaised, default_preview
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Reader, ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.resolve import Resolution
    from agent_core.resolve.tools import ToolBinding, ToolTable

INTERRUPTED = "interrupted"
_log = get_logger("tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHost:
    """What tool calls run with."""

    resolution: Resolution
    table: ToolTable
    core: Any
    cancellation: Any = None
    extra: Mapping[str, Any] | None = None

    @property
    def is_cancelled(self) -> bool:
        """True once the caller has lost interest."""
        return self.cancellation is not None and self.cancellation.cancelled

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
    """Run the calls one after the other; emit and return one tool message each.

    When the caller has lost interest, nothing more is run: the remaining calls are answered as such,
    since a call without an answer is a history that no provider takes.
    """
    messages: list[dict[str, Any]] = []
    left = False
    for call in calls:
        message = _not_run(host, call) if left else (yield from run_tool_call(host, call))
        messages.append(message)
        left = left or INTERRUPTED in message["metadata"]
        try:
            yield Emit([message])
        except RequestCancelled:
            left = True
    return messages


def run_tool_call(host: ToolHost, call: Any) -> Flow[dict[str, Any]]:
    """Run one call: emit its partial output, and return its tool message."""
    if host.is_cancelled:
        return _not_run(host, call)
    try:
        ready = ready_call(host, call)
    except CallRefused as refused:
        return refused.message
    return (yield from _run(host, ready))


def stream_tool_items(host: ToolHost, call: Any) -> Flow[None]:
    """Emit what the tool itself yields, without making a message of it.

    Raises:
        ToolError: If the tool raised, or gave no result in time.
    """
    try:
        ready = ready_call(host, call)
    except CallRefused:
        return
    try:
        yield from _read_items(host, ready, _Collected(raw=True))
    except ToolRaised as raised:
        raise ToolError(ready.call.tool_name, f"it raised {_said(raised.error)}") from raised.error
    except TimeoutError:
        raise ToolError(ready.call.tool_name, _too_late(host, ready)) from None


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
    problem = argument_problem(host.table.interop, inspected, binding.descriptor.schema)
    if problem is not None:
        metadata = ReadyCall(inspected, binding).metadata
        raise CallRefused(_error_message(metadata, problem.kind, f"the call was not run, {problem.text}"))
    return ReadyCall(inspected, binding)


def inspect_call(host: ToolHost, call: Any) -> InspectedCall:
    """Read a call in whatever format it came.

    Raises:
        CallRefused: If it is in none.
    """
    try:
        return host.table.interop.inspect_call(call)
    except AgentError as error:
        metadata = {"tool_call_id": _id_of(call), "tool_name": None}
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
        payload_metadata=freeze(call.payload_metadata),
        tool_call=freeze(call.raw),
        cancellation=cancellation,
        context=host.context(),
        prepared=binding.descriptor.prepared,
    )


def call_metadata(call: InspectedCall) -> dict[str, Any]:
    """Return the ids that tie a tool message to its call."""
    return {"tool_call_id": call.call_id, "tool_name": call.tool_name}


def preview_call(host: ToolHost, call: Any) -> dict[str, Any]:
    """Return the call's id and one line about it; a call that nobody can run has an empty one."""
    try:
        inspected = inspect_call(host, call)
    except CallRefused:
        return {"id": None, "preview": ""}
    binding = host.table.bindings.get(inspected.tool_name)
    if binding is None:
        return {"id": inspected.call_id, "preview": ""}
    told = invocation(host, ReadyCall(_as_the_tool_wants(host, inspected, binding), binding))
    try:
        # A hook expects arguments; a text that is none is better shown than explained.
        broken = inspected.problem is not None
        line = default_preview(told) if broken else binding.plugin.format_tool_call_preview(told)
    except AgentError as error:
        _log.warning("preview_failed", tool=inspected.tool_name, error=str(error))
        line = ""
    # A person decides by this line, and most of it is what a model wrote.
    return {"id": inspected.call_id, "preview": clean(line)}


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
    metadata = ready.metadata
    failure: Problem | None = None
    try:
        yield from _read_items(host, ready, collected)
    except RequestCancelled:
        metadata[INTERRUPTED] = True
        failure = Problem("cancelled", "it was cancelled; it may have run in part")
    except TimeoutError:
        failure = Problem("timeout", _too_late(host, ready))
    except Exception as error:  # noqa: BLE001  # a stranger's tool may raise anything; the model is told
        failure = Problem("exception", _said(error.error if isinstance(error, ToolRaised) else error))
    if failure is not None:
        _log.warning(
            "tool_failed", tool=ready.call.tool_name, plugin=ready.binding.plugin.name, **failure._asdict()
        )
    if collected.result is not None:  # given is given, whatever came after it
        return _result_message(host, ready, metadata, collected.result)
    return _error_message(metadata, *(failure or Problem("no_result", _nothing_usable(collected))))


def _read_items(host: ToolHost, ready: ReadyCall, collected: _Collected) -> Flow[None]:
    """Run the tool to its end; give it up when its time is over or the caller leaves."""
    plugin = ready.binding.plugin
    timeout = plugin.timeout(ready.call.tool_name, host.resolution.config)
    # The tool gets a token of its own, so that it is also told when only its time is over.
    own = Cancellation()
    watched = own if host.cancellation is not None else None
    reader = yield from ask(OpenStream(plugin.work(invocation(host, ready, own)), timeout, watched))
    passing_on = None if watched is None else host.cancellation.add_callback(partial(_tell, own))
    try:
        while (items := (yield from ask(Read(reader)))) is not None:
            if shown := collected.take(items):
                yield Emit(shown)
            if own.cancelled:  # meanwhile, by whom the part was shown to
                raise RequestCancelled  # noqa: TRY301 - to be tidied up like one thrown in
    except (RequestCancelled, TimeoutError):
        _tell(own)
        yield from _let_go(reader)
        raise
    finally:
        if passing_on is not None:
            host.cancellation.remove_callback(passing_on)
    yield from _let_go(reader)


def _tell(own: Cancellation) -> None:
    """Tell the tool that nobody waits for it any more."""
    try:
        own.cancel()
    except Exception as error:  # noqa: BLE001  # the tool's own callback
        _log.warning("tool_callback_failed", error=_said(error))


def _let_go(reader: Reader) -> Flow[None]:
    """Close what a tool came from; how it takes that is of no interest any more."""
    try:
        yield CloseStream(reader)
    except Exception as error:  # noqa: BLE001  # a stranger's `finally` may raise anything
        _log.warning("tool_not_closed", error=_said(error))


def _result_message(
    host: ToolHost, ready: ReadyCall, metadata: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    try:
        return _formatted(host, ready, metadata, result)
    except Exception as error:  # noqa: BLE001  # hooks, and data that says it is a dict, are a stranger's
        text = f"the tool ran, but its result cannot be read: {_said(error)}"
        return _error_message(metadata, "unreadable_result", text)


def _formatted(
    host: ToolHost, ready: ReadyCall, metadata: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    interop = host.table.interop
    formatted = ready.binding.plugin.format_tool_result(result, ready.binding.state)
    inspected = interop.inspect_result(formatted)
    failed = result.get("success") is False or inspected.is_error
    structured = _structured(host, ready, formatted, inspected.format_id, failed=failed)
    told = interop.inspect_result(structured)
    display = _display(ready, inspected.text, result) or told.display
    if display is not None:
        metadata["display"] = display
    if failed:
        metadata["error"] = {"type": "tool_failed"}
    return {"role": "tool", "content": told.text, "metadata": metadata, TOOL_RESULT_FIELD: structured}


def _structured(
    host: ToolHost, ready: ReadyCall, formatted: Any, format_id: str, *, failed: bool
) -> dict[str, Any]:
    """Return the result in the format in which the tool gave it, or else as the core's text."""
    if isinstance(formatted, dict) and format_id not in ("", CORE_TEXT_TOOL_RESULT_FORMAT_ID):
        return formatted
    target = ToolInteropTarget("core.tool_result", ready.call)
    structured = host.table.interop.convert_tool_result(
        formatted, target=target, target_formats=[CORE_TEXT_TOOL_RESULT_FORMAT_ID]
    )
    # A hook that makes text of a failure has lost the mark, and providers are told by it.
    return {**structured, "is_error": True} if failed else structured


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


def _not_run(host: ToolHost, call: Any) -> dict[str, Any]:
    """Answer a call to which it never came."""
    try:
        inspected = inspect_call(host, call)
    except CallRefused as refused:
        return refused.message
    binding = host.table.bindings.get(inspected.tool_name)
    metadata = call_metadata(inspected) if binding is None else ReadyCall(inspected, binding).metadata
    return _error_message({**metadata, INTERRUPTED: True}, "cancelled", "it was cancelled before it ran")


def _too_late(host: ToolHost, ready: ReadyCall) -> str:
    limit = ready.binding.plugin.timeout(ready.call.tool_name, host.resolution.config)
    return f"it gave no result within {limit:g} seconds and was given up; it may have run in part"


def _said(error: BaseException) -> str:
    """Return an error in words; it is a stranger's, so even that may fail."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001
        return name
    return text if isinstance(error, AgentError) else f"{name}: {text}" if text else name


def _as_the_tool_wants(host: ToolHost, call: InspectedCall, binding: ToolBinding) -> InspectedCall:
    """A text tool on a JSON-only wire is called with ``{"input": text}``; give it its text back."""
    wanted = host.table.interop.inspect_schema(binding.descriptor.schema).payload_kind
    if wanted == "text" and call.payload_kind == "json":
        return unwrap_call(call) or call
    return call


def _id_of(call: Any) -> str | None:
    """Return the id of a call of which nothing else can be read: its provider waits for an answer."""
    if not isinstance(call, dict):
        return None
    found = call.get("call_id") or call.get("id")
    return found if found and isinstance(found, str) else None


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
