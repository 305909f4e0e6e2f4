"""Tools: what there is, and running what a model asked for.

What runs tools is imported when the first one is asked for, since many requests have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.drivers import AsyncEventStream, EventStream, call, call_async
from agent_core.errors import ArgumentTypeError
from agent_core.face.base import CoreBase
from agent_core.face.checks import check_context, check_list
from agent_core.frozen import thaw
from agent_core.resolve.tools import gather_tools

if TYPE_CHECKING:
    from agent_core.models import ToolDescriptor
    from agent_core.pipeline.tool_calls import ToolHost
    from agent_core.resolve import Resolution
    from agent_core.steps import Flow

Dicts = list[dict[str, Any]]


class ToolCalls(CoreBase):
    """Tools and tool calls."""

    def get_available_tools(self, config: dict[str, Any]) -> list[ToolDescriptor]:
        """Return every tool that the enabled tool plugins offer."""
        return list(gather_tools(self._resolve(config, provider_optional=True)).available)

    def get_tool_schemas(self, config: dict[str, Any]) -> Dicts:
        """Return the schemas that the model is shown: after allow and exclude lists and features."""
        schemas: Dicts = thaw(gather_tools(self._resolve(config, provider_optional=True)).schemas())
        return schemas

    def execute_tool_calls(
        self, tool_calls: Dicts, config: dict[str, Any], *, context: dict[str, Any] | None = None
    ) -> Dicts:
        """Run the calls that a model asked for and return one tool message each.

        What goes wrong with a call (no such tool, arguments that do not fit, an exception) is told in
        its message, for the model to read.
        """
        return call(self.tool_calls_flow(tool_calls, config, context=context))

    def iter_tool_messages(
        self,
        tool_calls: Dicts,
        config: dict[str, Any],
        *,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
    ) -> EventStream[Any]:
        """Run the calls and yield partial output (dicts with `part`) and each call's tool message."""
        flow = self.tool_calls_flow(tool_calls, config, cancellation=cancellation, context=context)
        return EventStream(flow)

    def stream_tool_call(
        self, tool_call: dict[str, Any], config: dict[str, Any], *, context: dict[str, Any] | None = None
    ) -> EventStream[Any]:
        """Run one call and yield what the tool itself yields, its result included.

        A call that cannot be run yields nothing: `iter_tool_messages` tells why.

        Raises:
            ToolError: If the tool raised or took too long, at the point where it did.
        """
        return EventStream(self._tool_items_flow(tool_call, config, context))

    async def execute_tool_calls_async(
        self, tool_calls: Dicts, config: dict[str, Any], *, context: dict[str, Any] | None = None
    ) -> Dicts:
        """Do what `execute_tool_calls` does, on the running event loop."""
        return await call_async(self.tool_calls_flow(tool_calls, config, context=context))

    def iter_tool_messages_async(
        self,
        tool_calls: Dicts,
        config: dict[str, Any],
        *,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
    ) -> AsyncEventStream[Any]:
        """Do what `iter_tool_messages` does, on the running event loop."""
        flow = self.tool_calls_flow(tool_calls, config, cancellation=cancellation, context=context)
        return AsyncEventStream(flow)

    def stream_tool_call_async(
        self, tool_call: dict[str, Any], config: dict[str, Any], *, context: dict[str, Any] | None = None
    ) -> AsyncEventStream[Any]:
        """Do what `stream_tool_call` does, on the running event loop."""
        return AsyncEventStream(self._tool_items_flow(tool_call, config, context))

    def tool_calls_flow(
        self,
        tool_calls: Dicts,
        config: dict[str, Any],
        *,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
    ) -> Flow[Dicts]:
        """Return the running of tool calls as a flow, for layers that drive flows of their own."""
        if not tool_calls:
            return []
        check_list("tool_calls", tool_calls)
        resolution = yield from self._resolving(config, provider_optional=True)
        host = self._tool_host(resolution, context, cancellation)
        from agent_core.pipeline.tools import run_tool_calls

        return (yield from run_tool_calls(host, tool_calls))

    def tool_host(self, config: dict[str, Any]) -> Flow[ToolHost]:
        """Return, as a flow, what a batch of calls runs with, for layers that run calls one by one.

        See `agent_core.pipeline.tools.run_tool_call`. Tools get their state once for all calls of it.
        """
        resolution = yield from self._resolving(config, provider_optional=True)
        return self._tool_host(resolution, None, None)

    def format_tool_call_preview(self, tool_call: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        """Return the call's id and one line that tells a person what it will do."""
        host = self._tool_host(self._resolve(config, provider_optional=True), None, None)
        from agent_core.pipeline.tool_calls import preview_call

        return preview_call(host, tool_call)

    def format_tool_call_previews(self, tool_calls: Dicts, config: dict[str, Any]) -> Dicts:
        """Return a preview of each call."""
        host = self._tool_host(self._resolve(config, provider_optional=True), None, None)
        from agent_core.pipeline.tool_calls import preview_call

        return [preview_call(host, tool_call) for tool_call in tool_calls if isinstance(tool_call, dict)]

    def extract_tool_calls_from_messages(self, messages: Dicts) -> Dicts:
        """Return the tool calls that assistant messages carry in their metadata."""
        found: Dicts = []
        for message in messages:
            if isinstance(message, dict) and message.get("role") == "assistant":
                metadata = message.get("metadata")
                calls = metadata.get("tool_calls") if isinstance(metadata, dict) else None
                found += [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []
        return found

    def _tool_host(
        self, resolution: Resolution, context: dict[str, Any] | None, cancellation: Any
    ) -> ToolHost:
        from agent_core.pipeline.tool_calls import ToolHost

        if cancellation is not None and not hasattr(cancellation, "add_callback"):
            raise ArgumentTypeError(f"cancellation must be a token, not {type(cancellation).__name__}")
        return ToolHost(
            resolution=resolution,
            table=gather_tools(resolution),
            core=self,
            cancellation=cancellation,
            extra=check_context(context),
        )

    def _tool_items_flow(
        self, tool_call: dict[str, Any], config: dict[str, Any], context: dict[str, Any] | None
    ) -> Flow[None]:
        resolution = yield from self._resolving(config, provider_optional=True)
        from agent_core.pipeline.tools import stream_tool_items

        yield from stream_tool_items(self._tool_host(resolution, context, None), tool_call)
