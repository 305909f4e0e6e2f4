"""A tool plugin as the pipeline sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agent_core.errors import RegistrationError
from agent_core.frozen import EMPTY, FrozenDict
from agent_core.plugin.base import COMMON_HOOKS, PluginWrapper
from agent_core.plugin.hooks import Adapter, HookSpec
from agent_core.steps import Work

_PAYLOAD = ("payload_kind", "payload_format", "payload_metadata", "tool_call")
_RUN = ("tool_name", "arguments", "state", *_PAYLOAD, "cancellation", "context", "prepared")
_ALIASES = (("payload", "arguments"), ("name", "tool_name"), ("args", "arguments"))
_PREVIEW_LENGTH = 120
_RUN_HOOKS = ("execute_tool", "stream_tool", "execute_tool_async", "stream_tool_async")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvocation:
    """Everything that a tool is told when it is called."""

    tool_name: str
    payload: Any
    state: dict[str, Any]
    payload_kind: str = "json"
    payload_format: str = "json_object"
    payload_metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    tool_call: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    cancellation: Any = None
    context: Mapping[str, Any] | None = None
    prepared: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    def arguments(self) -> tuple[Any, ...]:
        """Return the values in the order in which the hooks document them."""
        payload = (self.payload_kind, self.payload_format, self.payload_metadata, self.tool_call)
        return (
            self.tool_name, self.payload, self.state, *payload,
            self.cancellation, self.context, self.prepared,
        )  # fmt: skip


class ToolWrapper(PluginWrapper):
    """A plugin that runs tools for the model."""

    kind = "tool"
    hooks: ClassVar[tuple[HookSpec, ...]] = (
        *COMMON_HOOKS,
        HookSpec("init", ("config", "context"), 0),
        HookSpec("get_tool_schemas", ("state", "context"), 0),
        *(HookSpec(name, _RUN, 2, _ALIASES) for name in _RUN_HOOKS),
        HookSpec(
            "format_tool_call_preview",
            ("tool_name", "arguments", "state", *_PAYLOAD, "prepared"),
            2,
            _ALIASES,
        ),
        HookSpec("format_tool_result", ("result", "state"), 1),
        HookSpec("to_display_format", ("text", "result", "state"), 1),
        HookSpec("register_tool_formats", ("registry",), 1),
    )

    def __init__(self, plugin: Any) -> None:
        super().__init__(plugin)
        if not self.has("get_tool_schemas") or not any(self.has(name) for name in _RUN_HOOKS):
            raise RegistrationError(self.name, "a tool plugin needs get_tool_schemas and execute_tool")
        self._streams = getattr(plugin, "streams", True) is not False
        self._is_async = getattr(plugin, "is_async", False) is True or _is_async(self.plugin)

    def init(self, config: FrozenDict, context: Any = None) -> dict[str, Any]:
        """Return the state with which the plugin's tools run."""
        return self._state("init", {"config": config}, config, context)

    def get_tool_schemas(self, state: dict[str, Any], context: Any = None) -> list[dict[str, Any]]:
        """Return the schemas of the plugin's tools."""
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
        stream = self.hook("stream_tool") if self._streams else None
        blocking = stream or self.hook("execute_tool")
        awaitable = self.hook("stream_tool_async") or self.hook("execute_tool_async")
        if self._is_async and blocking is not None and awaitable is None:
            return Work(awaitable=lambda: _items_async(blocking, call))
        return Work(
            blocking=None if blocking is None else lambda: _items(blocking, call),
            awaitable=None if awaitable is None else lambda: _items_async(awaitable, call),
        )

    def format_tool_result(self, result: dict[str, Any], state: dict[str, Any]) -> Any:
        """Return what the model shall read of a result: text, or a structured result."""
        return self._call("format_tool_result", result, result, state)

    def to_display_format(
        self, text: str, result: dict[str, Any], state: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return what a person shall see of a result, or None to show the text."""
        answer = self._call("to_display_format", None, text, result, state)
        return answer if isinstance(answer, dict) else None

    def format_tool_call_preview(self, call: ToolInvocation) -> str:
        """Return one line that tells a person what the call will do."""
        if not self.has("format_tool_call_preview"):
            return _default_preview(call)
        *payload, _cancellation, _context, prepared = call.arguments()
        answer = self._call("format_tool_call_preview", "", *payload, prepared)
        return answer if isinstance(answer, str) else ""


def _is_async(plugin: Any) -> bool:
    import inspect

    functions = (getattr(plugin, name, None) for name in ("execute_tool", "stream_tool"))
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in functions)


def _items(function: Adapter, call: ToolInvocation) -> Iterator[Any]:
    answer = function(*call.arguments())
    return answer if hasattr(answer, "__next__") else iter([_as_result(answer)])


async def _items_async(function: Adapter, call: ToolInvocation) -> AsyncIterator[Any]:
    answer = function(*call.arguments())
    if hasattr(answer, "__aiter__"):
        async for item in answer:
            yield item
    elif hasattr(answer, "__await__"):
        yield _as_result(await answer)
    else:
        for item in answer if hasattr(answer, "__next__") else [_as_result(answer)]:
            yield item


def _as_result(answer: Any) -> Any:
    if isinstance(answer, dict) and "success" in answer:
        return answer
    return {"success": True, "result": answer}


def _default_preview(call: ToolInvocation) -> str:
    if not isinstance(call.payload, Mapping):
        text = str(call.payload)
    else:
        text = ", ".join(f"{key}={value!r}" for key, value in call.payload.items())
    line = f"{call.tool_name}({' '.join(text.split())})"
    return line if len(line) <= _PREVIEW_LENGTH else f"{line[: _PREVIEW_LENGTH - 3]}..."
