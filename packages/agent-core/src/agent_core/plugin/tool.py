"""A tool plugin as the pipeline sees it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from agent_core.errors import RegistrationError, RequestCancelled, ToolError
from agent_core.frozen import EMPTY, Dicts, FrozenDict, JsonObject, State
from agent_core.plugin.base import COMMON_HOOKS, PluginWrapper
from agent_core.plugin.hooks import Adapter, HookSpec
from agent_core.steps import Whole, Work

if TYPE_CHECKING:
    from types import TracebackType

    from agent_core.models import ToolDescriptor

_PAYLOAD = ("payload_kind", "payload_format", "payload_metadata", "tool_call")
_RUN = ("tool_name", "arguments", "state", *_PAYLOAD, "cancellation", "context", "prepared")
_ALIASES = (("payload", "arguments"), ("name", "tool_name"), ("args", "arguments"))
_PREVIEW_LENGTH = 120
RUN_HOOKS = ("execute_tool", "stream_tool", "execute_tool_async", "stream_tool_async")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvocation:
    """Everything that a tool gets when it is called."""

    tool_name: str
    payload: object
    state: State
    payload_kind: str = "json"
    payload_format: str = "json_object"
    payload_metadata: Mapping[str, object] = field(default_factory=lambda: EMPTY)
    tool_call: Mapping[str, object] = field(default_factory=lambda: EMPTY)
    cancellation: object = None
    context: Mapping[str, object] | None = None
    prepared: Mapping[str, object] = field(default_factory=lambda: EMPTY)

    def arguments(self) -> tuple[object, ...]:
        """Return the values in the order in which the hooks document them."""
        payload = (self.payload_kind, self.payload_format, self.payload_metadata, self.tool_call)
        return (
            self.tool_name, self.payload, self.state, *payload,
            self.cancellation, self.context, self.prepared,
        )  # fmt: skip


class ToolWrapper(PluginWrapper):
    """A plugin that runs tools for the model.

    Attributes:
        stateless: True if it needs no state and always offers the same, so that it is asked only once.
        offer: What a stateless one answered, with its state. It is kept here, and not in a table of all
            plugins, so that it goes when the plugin does.
    """

    kind = "tool"
    hooks: ClassVar[tuple[HookSpec, ...]] = (
        *COMMON_HOOKS,
        HookSpec("init", ("config", "context"), 0),
        HookSpec("get_tool_schemas", ("state", "context"), 0),
        *(HookSpec(name, _RUN, 2, _ALIASES) for name in RUN_HOOKS),
        HookSpec(
            "format_tool_call_preview",
            ("tool_name", "arguments", "state", *_PAYLOAD, "prepared"),
            2,
            _ALIASES,
        ),
        HookSpec(
            "format_tool_call_display",
            ("tool_name", "arguments", "state", *_PAYLOAD, "context", "prepared"),
            2,
            _ALIASES,
        ),
        HookSpec("format_tool_result", ("result", "state"), 1),
        HookSpec("to_display_format", ("text", "result", "state"), 1),
        HookSpec("register_tool_formats", ("registry",), 1),
    )

    def __init__(self, plugin: object) -> None:
        super().__init__(plugin)
        if not self.has("get_tool_schemas") or not any(self.has(name) for name in RUN_HOOKS):
            raise RegistrationError(self.name, "a tool plugin needs get_tool_schemas and execute_tool")
        self.stateless = getattr(self.plugin, "stateless", False) is True
        self.offer: tuple[tuple[ToolDescriptor, ...], JsonObject] | None = None
        self._streams = getattr(self.plugin, "streams", True) is not False
        self._blocks = getattr(self.plugin, "blocking", True) is not False
        self._is_async = getattr(self.plugin, "is_async", False) is True or self._is_written_async()
        _check_timeout(self.name, getattr(self.plugin, "timeout", None))

    @property
    def can_stream(self) -> bool:
        """True if its tools yield items of their own while they run."""
        return self._streams and (self.has("stream_tool") or self.has("stream_tool_async"))

    @property
    def runs_in_place(self) -> bool:
        """True if its tools take no time to speak of, so that an event loop calls them itself."""
        return not self._blocks and not self._is_async

    def init(self, config: FrozenDict, context: object = None) -> JsonObject:
        """Return the state with which the plugin's tools run."""
        own = self.own_config(config)
        return self._state("init", {"config": own}, own, context)

    def get_tool_schemas(self, state: State, context: object = None) -> Dicts:
        return self._dicts("get_tool_schemas", state, context)

    def timeout(self, tool_name: str, config: Mapping[str, Any]) -> float | None:
        """Return after how many seconds the tool is given up: the configuration's word, then its own."""
        configured = config.get("tool_timeouts") or {}
        own = getattr(self.plugin, "timeout", None)
        if isinstance(own, Mapping):
            own = own.get(tool_name)
        default = config.get("tool_timeout") if own is None else own
        return configured.get(tool_name, default) if isinstance(configured, Mapping) else default

    def work(self, call: ToolInvocation) -> Work[Any]:
        """Return the tool's run as a stream of items, in the forms that the plugin offers."""
        blocking = self._run_hook("stream_tool", "execute_tool")
        awaitable = self._run_hook("stream_tool_async", "execute_tool_async")
        if self._is_async:
            blocking, awaitable = None, awaitable or blocking
        return Work(
            blocking=None if blocking is None else lambda: _run_blocking(blocking, call),
            awaitable=None if awaitable is None else lambda: _items_async(awaitable, call),
        )

    def _is_written_async(self) -> bool:

        chosen = "stream_tool" if self._streams and self.has("stream_tool") else "execute_tool"
        function = getattr(self.plugin, chosen, None)
        return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)

    def _run_hook(self, stream: str, execute: str) -> Adapter | None:
        streaming = self.hook(stream) if self._streams else None
        if streaming is None:
            return self.hook(execute)
        return lambda *values: _as_stream(streaming(*values))

    def format_tool_result(self, result: JsonObject, state: State) -> object:
        """Return a result as the model reads it: text, or a structured result."""
        return self._call("format_tool_result", result, result, state)

    def to_display_format(self, text: str, result: JsonObject, state: State) -> JsonObject | None:
        """Return a result as a person sees it, or None to show the text."""
        answer = self._call("to_display_format", None, text, result, state)
        return answer if isinstance(answer, dict) else None

    def format_tool_call_preview(self, call: ToolInvocation) -> str:
        """Return one line that tells a person what the call will do."""
        if not self.has("format_tool_call_preview"):
            return default_preview(call)
        *payload, _cancellation, _context, prepared = call.arguments()
        answer = self._call("format_tool_call_preview", "", *payload, prepared)
        return answer if isinstance(answer, str) else ""

    def format_tool_call_display(self, call: ToolInvocation) -> JsonObject | None:
        """Return what a person sees of a call before it runs, for instance a diff; None for nothing."""
        if not self.has("format_tool_call_display"):
            return None
        *payload, _cancellation, context, prepared = call.arguments()
        answer = self._call("format_tool_call_display", None, *payload, context, prepared)
        return answer if isinstance(answer, dict) else None


def _check_timeout(name: str, timeout: Any) -> None:
    for seconds in timeout.values() if isinstance(timeout, Mapping) else (timeout,):
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and seconds > 0):
            raise RegistrationError(name, f"its timeout must be seconds above 0, not {seconds!r}")


def _run_blocking(function: Adapter, call: ToolInvocation) -> Whole | Iterator[object]:
    with _naming_the_tool(call):
        answer = function(*call.arguments())
        if hasattr(answer, "__next__"):
            return _items(answer, call)
        if hasattr(answer, "__await__") or hasattr(answer, "__aiter__"):
            raise _not_awaited(call, answer)
        return Whole([_as_result(answer)])


def _items(answer: Iterator[object], call: ToolInvocation) -> Iterator[object]:
    with _naming_the_tool(call):
        yield from answer


async def _items_async(function: Adapter, call: ToolInvocation) -> AsyncIterator[object]:
    with _naming_the_tool(call):
        answer = function(*call.arguments())
        if hasattr(answer, "__await__"):
            answer = await answer
        if not hasattr(answer, "__aiter__"):
            for item in _read(answer):
                yield item
            return
        try:
            async for item in answer:
                yield item
        finally:  # else what the tool holds would be let go whenever garbage is collected
            if hasattr(answer, "aclose"):
                await answer.aclose()


class ToolRaised(Exception):  # says what happened
    """A tool raised `error`: kept apart, since its `TimeoutError` or `SystemExit` is not the platform's."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)
        self.error = error


class _naming_the_tool:  # noqa: N801  # reads as a statement
    """Turn whatever the tool raises into `ToolRaised`, except what tells it to stop."""

    def __init__(self, call: ToolInvocation) -> None:
        self._call = call

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not _is_signal(error, self._call.cancellation):
            raise ToolRaised(error) from error


def _is_signal(error: BaseException, cancellation: Any) -> bool:
    if isinstance(error, RequestCancelled):
        return cancellation is not None and cancellation.cancelled
    return isinstance(error, (KeyboardInterrupt, GeneratorExit)) or _is_task_cancelled(error)


def _is_task_cancelled(error: BaseException) -> bool:
    asyncio = sys.modules.get("asyncio")  # whoever raised its error has imported it
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread, so there is nobody to cancel anything
        return False
    return task is not None and task.cancelling() > 0


def _not_awaited(call: ToolInvocation, answer: object) -> ToolError:
    if hasattr(answer, "close"):
        answer.close()
    return ToolError(
        call.tool_name, f"it is not async but returned a {type(answer).__name__}: make it an `async def`"
    )


def _as_stream(answer: Any) -> object:
    """Return what `stream_tool` returned as something to iterate, where it is not a result itself."""
    if answer is None:
        return iter(())
    is_plural = isinstance(answer, Iterable) and not isinstance(answer, (Mapping, str, bytes))
    return iter(answer) if is_plural else answer


def _read(answer: Any) -> Iterator[object]:
    return answer if hasattr(answer, "__next__") else iter([_as_result(answer)])


def _as_result(answer: object) -> object:
    if isinstance(answer, dict) and "success" in answer:
        return answer
    return {"success": True, "result": answer}


def default_preview(call: ToolInvocation) -> str:
    """Return a line about a call whose plugin has none to say."""
    if not isinstance(call.payload, Mapping):
        text = str(call.payload)
    else:
        text = ", ".join(f"{key}={value!r}" for key, value in call.payload.items())
    line = f"{call.tool_name}({' '.join(text.split())})"
    return line if len(line) <= _PREVIEW_LENGTH else f"{line[: _PREVIEW_LENGTH - 3]}..."
