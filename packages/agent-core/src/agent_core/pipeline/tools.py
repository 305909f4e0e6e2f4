"""One tool call as a flow: partial output while it runs, one tool message at its end.

Whatever goes wrong becomes the result of that call, for the model to read; it never stops the request, and
arguments that do not fit are never repaired and run.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_core.cancellation import Cancellation, on_cancel
from agent_core.errors import RequestCancelled, ToolError, ToolSuspended
from agent_core.log import get_logger
from agent_core.pipeline.ready_call import (
    CallRefused,
    ReadyCall,
    ToolHost,
    call_metadata,
    inspect_call,
    invocation,
    ready_call,
)
from agent_core.pipeline.tool_messages import Problem, error_message, result_message, said
from agent_core.plugin.tool import ToolRaised
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Reader, Run, Whole, Work, ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.frozen import Dicts, JsonObject

INTERRUPTED = "interrupted"
SUSPENDED = "suspended"
_log = get_logger("tools")


def run_tool_calls(host: ToolHost, calls: Sequence[object]) -> Flow[Dicts]:
    """Run the calls one after the other; emit and return one tool message each.

    When the caller has lost interest, nothing more is run: the remaining calls are answered as such,
    since a call without an answer is a history that no provider takes.
    """
    messages: Dicts = []
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


def run_tool_call(host: ToolHost, call: object) -> Flow[JsonObject]:
    """Run one call: emit its partial output, and return its tool message."""
    if host.is_cancelled:
        return _not_run(host, call)
    try:
        ready = ready_call(host, call)
    except CallRefused as refused:
        return refused.message
    return (yield from _run(host, ready))


def run_ready_call(host: ToolHost, ready: ReadyCall) -> Flow[JsonObject]:
    """Do what `run_tool_call` does, with a call that was looked at before."""
    if host.is_cancelled:
        return _not_run(host, ready.call.raw)
    return (yield from _run(host, ready))


def stream_tool_items(host: ToolHost, call: object, *, only_streaming: bool = True) -> Flow[None]:
    """Emit what the tool itself yields, without making a message of it.

    Args:
        only_streaming: Whether a tool that does not stream is left alone; otherwise its result is emitted.

    Raises:
        ToolError: If the tool raised, or gave no result in time.
    """
    try:
        ready = ready_call(host, call)
    except CallRefused:
        return
    if only_streaming and not ready.binding.plugin.can_stream:
        return
    try:
        yield from _read_items(host, ready, _Collected(raw=True))
    except ToolRaised as raised:
        raise ToolError(ready.call.tool_name, f"it raised {said(raised.error)}") from raised.error
    except TimeoutError:
        raise ToolError(ready.call.tool_name, _too_late(host, ready)) from None


class _Collected:
    """What a tool has yielded so far."""

    def __init__(self, *, raw: bool = False) -> None:
        self.raw = raw
        self.result: JsonObject | None = None
        self.junk = 0

    def take(self, items: Sequence[object]) -> Dicts:
        """Remember results, count what is not a dict, and return what can be shown."""
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


def _run(host: ToolHost, ready: ReadyCall) -> Flow[JsonObject]:
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
    except Exception as error:  # a tool may raise anything; the model reads it
        raised = error.error if isinstance(error, ToolRaised) else error
        if isinstance(raised, ToolSuspended):
            return error_message({**metadata, SUSPENDED: raised.suspension}, SUSPENDED, said(raised))
        failure = Problem("exception", said(raised))
    if failure is not None:
        _log_failure(ready, failure)
    if collected.result is not None:  # given is given, whatever came after it
        return result_message(host, ready, metadata, collected.result)
    return error_message(metadata, *(failure or Problem("no_result", _nothing_usable(collected))))


def _log_failure(ready: ReadyCall, failure: Problem) -> None:
    tool, plugin = ready.call.tool_name, ready.binding.plugin.name
    if failure.kind == "exception":
        _log.error("iter_tool_messages_stream_error", tool_name=tool, plugin=plugin, error=failure.text)
    else:
        _log.warning("tool_failed", tool_name=tool, plugin=plugin, kind=failure.kind, text=failure.text)


def _read_items(host: ToolHost, ready: ReadyCall, collected: _Collected) -> Flow[None]:
    """Run the tool to its end; give it up when its time is over or the caller leaves."""
    plugin = ready.binding.plugin
    timeout = plugin.timeout(ready.call.tool_name, host.resolution.config)
    # The tool gets a token of its own, so that it also learns when only its time is over.
    own = Cancellation()
    outer = host.cancellation
    watched = None if outer is None else own
    work = plugin.work(invocation(host, ready, own))
    reader: Reader | None = None
    forget = None if outer is None else on_cancel(outer, partial(_tell, own))
    try:
        if work.awaitable is None and not plugin.can_stream:
            in_place = plugin.runs_in_place
            started = yield from ask(Run(work, timeout=timeout, cancellation=watched, in_place=in_place))
            if started.__class__ is Whole:  # all that nearly every tool has to say
                if shown := collected.take(started):
                    yield Emit(shown)
                return
            work = Work(blocking=lambda: started)
        reader = yield from ask(OpenStream(work, timeout, watched))
        while (items := (yield from ask(Read(reader)))) is not None:
            if shown := collected.take(items):
                yield Emit(shown)
            if own.cancelled:  # by the receiver of the part
                raise RequestCancelled  # noqa: TRY301 - to be tidied up like one thrown in
    except (RequestCancelled, TimeoutError):
        _tell(own)
        if reader is not None:
            yield from _let_go(reader)
        raise
    finally:
        if forget is not None:
            forget()
    yield from _let_go(reader)


def _tell(own: Cancellation) -> None:
    """Tell the tool that nobody waits for it any more."""
    try:
        own.cancel()
    except Exception as error:  # the tool's own callback
        _log.warning("tool_callback_failed", error=said(error))


def _let_go(reader: Reader) -> Flow[None]:
    """Close what a tool came from; how it takes that is of no interest any more."""
    try:
        yield CloseStream(reader)
    except Exception as error:  # a tool's `finally` may raise anything
        _log.warning("tool_not_closed", error=said(error))


def _not_run(host: ToolHost, call: object) -> JsonObject:
    """Answer a call to which it never came."""
    try:
        inspected = inspect_call(host, call)
    except CallRefused as refused:
        return refused.message
    binding = host.table.bindings.get(inspected.tool_name)
    metadata = call_metadata(inspected) if binding is None else ReadyCall(inspected, binding).metadata
    return error_message({**metadata, INTERRUPTED: True}, "cancelled", "it was cancelled before it ran")


def _too_late(host: ToolHost, ready: ReadyCall) -> str:
    limit = ready.binding.plugin.timeout(ready.call.tool_name, host.resolution.config)
    return f"it gave no result within {limit:g} seconds and was given up; it may have run in part"


def _nothing_usable(collected: _Collected) -> str:
    if collected.junk:
        return f"the tool yielded {collected.junk} items that are not dicts, and no result"
    return "the tool ended without a result"
