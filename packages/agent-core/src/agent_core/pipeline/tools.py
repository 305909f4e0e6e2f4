"""One tool call as a flow: partial output while it runs, one tool message at its end.

Whatever goes wrong is told to the model as the result of that call; it never stops the request, and
arguments that do not fit are never repaired and run.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.cancellation import Cancellation
from agent_core.errors import RequestCancelled, ToolError, ToolSuspended
from agent_core.log import get_logger
from agent_core.pipeline.arguments import Problem
from agent_core.pipeline.tool_calls import (
    CallRefused,
    ReadyCall,
    ToolHost,
    call_metadata,
    inspect_call,
    invocation,
    ready_call,
)
from agent_core.pipeline.tool_messages import error_message, result_message, said
from agent_core.plugin.tool import ToolRaised
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Reader, ask

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = "interrupted"
SUSPENDED = "suspended"
_log = get_logger("tools")


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


def run_ready_call(host: ToolHost, ready: ReadyCall) -> Flow[dict[str, Any]]:
    """Do what `run_tool_call` does, with a call that was looked at before."""
    if host.is_cancelled:
        return _not_run(host, ready.call.raw)
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
        raise ToolError(ready.call.tool_name, f"it raised {said(raised.error)}") from raised.error
    except TimeoutError:
        raise ToolError(ready.call.tool_name, _too_late(host, ready)) from None


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
        raised = error.error if isinstance(error, ToolRaised) else error
        if isinstance(raised, ToolSuspended):
            return error_message({**metadata, SUSPENDED: raised.suspension}, SUSPENDED, said(raised))
        failure = Problem("exception", said(raised))
    if failure is not None:
        _log.warning(
            "tool_failed", tool=ready.call.tool_name, plugin=ready.binding.plugin.name, **failure._asdict()
        )
    if collected.result is not None:  # given is given, whatever came after it
        return result_message(host, ready, metadata, collected.result)
    return error_message(metadata, *(failure or Problem("no_result", _nothing_usable(collected))))


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
        _log.warning("tool_callback_failed", error=said(error))


def _let_go(reader: Reader) -> Flow[None]:
    """Close what a tool came from; how it takes that is of no interest any more."""
    try:
        yield CloseStream(reader)
    except Exception as error:  # noqa: BLE001  # a stranger's `finally` may raise anything
        _log.warning("tool_not_closed", error=said(error))


def _not_run(host: ToolHost, call: Any) -> dict[str, Any]:
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
