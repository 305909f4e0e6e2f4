"""Asking the model, and running the tools that it calls: each is one flow with four ways to run it.

What runs tools is imported when the first one is asked for, since many requests have none.
"""

from __future__ import annotations

from os import urandom
from typing import TYPE_CHECKING, Any

from agent_core import pipeline
from agent_core.cancellation import following
from agent_core.core.plugins import CoreBase, check_context, check_list, check_session
from agent_core.drivers import AsyncEventStream, EventStream, call, call_async
from agent_core.frozen import Dicts, JsonObject, thaw
from agent_core.log import get_logger
from agent_core.pipeline.turn import request_turn
from agent_core.resolve.tools import gather_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_core.cancellation import Cancellation, CancellationToken
    from agent_core.messages import Message
    from agent_core.models import ToolDescriptor
    from agent_core.pipeline.finish import TurnResult
    from agent_core.resolve import Resolution
    from agent_core.session import Session
    from agent_core.steps import Flow


_log = get_logger("core")
_NOT_RUN = ("unreadable_call", "unknown_tool", "invalid_arguments", "invalid_schema")


class Requests(CoreBase):
    """One question to the model, as a call or as a stream."""

    def send_request(
        self,
        session: Session,
        config: JsonObject,
        *,
        request_id: str | None = None,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
    ) -> tuple[Session, Dicts]:
        """Ask the model and return the new session and the messages that were added.

        Raises:
            NoProviderError: If no provider is registered.
            ResolveError: If the configuration names something that is not there.
            ProviderError: If the provider failed.
            PluginError: If another plugin did.
        """
        result = call(
            self.request_flow(
                session,
                config,
                stream=False,
                request_id=request_id,
                cancellation=cancellation,
                context=context,
            )
        )
        return result.session, result.messages

    def send_request_stream(
        self,
        session: Session,
        config: JsonObject,
        *,
        request_id: str | None = None,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
    ) -> EventStream[TurnResult]:
        """Ask the model and yield events: `partial` with a message, and last `final` with the session.

        The stream may be closed at any time; its `result` then has what was produced up to there.
        Raises what `send_request` raises, at the first event or later.
        """
        return EventStream(
            self.request_flow(
                session,
                config,
                stream=True,
                request_id=request_id,
                cancellation=cancellation,
                context=context,
            )
        )

    stream_request = send_request_stream
    """The name that plugins know it by."""

    async def send_request_async(
        self,
        session: Session,
        config: JsonObject,
        *,
        request_id: str | None = None,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
    ) -> tuple[Session, Dicts]:
        """Do what `send_request` does, on the running event loop."""
        flow = self.request_flow(
            session, config, stream=False, request_id=request_id, cancellation=cancellation, context=context
        )
        result = await call_async(flow)
        return result.session, result.messages

    def send_request_stream_async(
        self,
        session: Session,
        config: JsonObject,
        *,
        request_id: str | None = None,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
    ) -> AsyncEventStream[TurnResult]:
        """Do what `send_request_stream` does, on the running event loop."""
        return AsyncEventStream(
            self.request_flow(
                session,
                config,
                stream=True,
                request_id=request_id,
                cancellation=cancellation,
                context=context,
            )
        )

    def request_flow(
        self,
        session: Session,
        config: JsonObject,
        *,
        stream: bool,
        request_id: str | None = None,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
        transform: Callable[[Sequence[Message]], Sequence[Message]] | None = None,
    ) -> Flow[TurnResult]:
        """Return one question to the model as a flow, for layers that drive flows of their own.

        Args:
            transform: Gets the session's messages and returns those to send, others among them if
                need be. The session keeps all of its own and none of the others.
        """
        check_session(session)
        resolution = yield from self._resolving(config)
        if _log.is_enabled("debug"):
            _log_plugins(resolution)
        request = self._request(
            "send_request",
            session,
            resolution,
            context,
            request_id=request_id or (None if cancellation is None else urandom(16).hex()),
            stream=stream,
            cancellation=cancellation,
            transform=transform,
        )
        return (yield from request_turn(request))


class ToolCalls(CoreBase):
    """Tools and tool calls."""

    def get_available_tools(self, config: JsonObject) -> list[ToolDescriptor]:
        """Return every tool that the enabled tool plugins offer."""
        return list(gather_tools(self._resolve(config, provider_optional=True)).available)

    def get_tool_schemas(self, config: JsonObject) -> Dicts:
        """Return the schemas that the model is shown: after allow and exclude lists and features."""
        schemas: Dicts = thaw(gather_tools(self._resolve(config, provider_optional=True)).schemas())
        return schemas

    def execute_tool_calls(
        self, tool_calls: Dicts, config: JsonObject, *, context: JsonObject | None = None
    ) -> Dicts:
        """Run the calls that a model asked for and return one tool message each.

        What goes wrong with a call (no such tool, arguments that do not fit, an exception) is in its
        message, for the model to read.
        """
        return call(self._execute_flow(tool_calls, config, context))

    def iter_tool_messages(
        self,
        tool_calls: Dicts,
        config: JsonObject,
        *,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
    ) -> EventStream[Any]:
        """Run the calls and yield partial output (dicts with `part`) and each call's tool message."""
        flow = self.tool_calls_flow(tool_calls, config, cancellation=cancellation, context=context)
        return EventStream(flow)

    def stream_tool_call(
        self, tool_call: JsonObject, config: JsonObject, *, context: JsonObject | None = None
    ) -> EventStream[Any]:
        """Run one call of a tool that streams and yield what the tool itself yields, its result included.

        A tool that does not stream is not run, and nothing is yielded; nor is for a call that cannot be
        run: `iter_tool_messages` runs any tool and says what is wrong with a call.

        Raises:
            ToolError: If the tool raised or took too long, at the point where it did.
        """
        return EventStream(self._tool_items_flow(tool_call, config, context))

    async def execute_tool_calls_async(
        self, tool_calls: Dicts, config: JsonObject, *, context: JsonObject | None = None
    ) -> Dicts:
        """Do what `execute_tool_calls` does, on the running event loop."""
        return await call_async(self._execute_flow(tool_calls, config, context))

    def iter_tool_messages_async(
        self,
        tool_calls: Dicts,
        config: JsonObject,
        *,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
    ) -> AsyncEventStream[Any]:
        """Do what `iter_tool_messages` does, on the running event loop."""
        flow = self.tool_calls_flow(tool_calls, config, cancellation=cancellation, context=context)
        return AsyncEventStream(flow)

    def stream_tool_call_async(
        self, tool_call: JsonObject, config: JsonObject, *, context: JsonObject | None = None
    ) -> AsyncEventStream[Any]:
        """Do what `stream_tool_call` does, on the running event loop."""
        return AsyncEventStream(self._tool_items_flow(tool_call, config, context))

    def tool_calls_flow(
        self,
        tool_calls: Dicts,
        config: JsonObject,
        *,
        cancellation: CancellationToken | None = None,
        context: JsonObject | None = None,
    ) -> Flow[Dicts]:
        """Return the running of tool calls as a flow, for layers that drive flows of their own."""
        if not tool_calls:
            return []
        check_list("tool_calls", tool_calls)
        _log.debug("iter_tool_messages_start", count=len(tool_calls))
        resolution = yield from self._resolving(config, provider_optional=True)
        with following(cancellation) as followed:
            host = self._tool_host(resolution, context, followed)
            return (yield from pipeline.run_tool_calls(host, tool_calls))

    def tool_host(self, config: JsonObject, context: JsonObject | None = None) -> Flow[pipeline.ToolHost]:
        """Return, as a flow, what a batch of calls runs with, for layers that run calls one by one.

        See `agent_core.pipeline.tools.run_tool_call`. Tools get their state once for all calls of it.
        """
        resolution = yield from self._resolving(config, provider_optional=True)
        return self._tool_host(resolution, context, None)

    def format_tool_call_preview(self, tool_call: JsonObject, config: JsonObject) -> JsonObject:
        """Return the call's id and one line that tells a person what it will do."""
        host = self._tool_host(self._resolve(config, provider_optional=True), None, None)
        return pipeline.preview_call(host, tool_call)

    def format_tool_call_previews(self, tool_calls: Dicts, config: JsonObject) -> Dicts:
        """Return a preview of each call."""
        host = self._tool_host(self._resolve(config, provider_optional=True), None, None)
        return [
            pipeline.preview_call(host, tool_call) for tool_call in tool_calls if isinstance(tool_call, dict)
        ]

    def extract_tool_calls_from_messages(self, messages: Sequence[JsonObject]) -> Dicts:
        """Return the tool calls that assistant messages carry in their metadata."""
        found: Dicts = []
        for message in messages:
            if isinstance(message, dict) and message.get("role") == "assistant":
                metadata = message.get("metadata")
                calls = metadata.get("tool_calls") if isinstance(metadata, dict) else None
                found += [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []
        return found

    def _tool_host(
        self, resolution: Resolution, context: JsonObject | None, cancellation: Cancellation | None
    ) -> pipeline.ToolHost:
        return pipeline.ToolHost(
            resolution=resolution,
            table=gather_tools(resolution, context),
            core=self,
            cancellation=cancellation,
            extra=check_context(context),
        )

    def _execute_flow(self, tool_calls: Dicts, config: JsonObject, context: JsonObject | None) -> Flow[Dicts]:
        if tool_calls and isinstance(tool_calls, list):
            _log.debug("execute_tool_calls_start", count=len(tool_calls))
        messages = yield from self.tool_calls_flow(tool_calls, config, context=context)
        for message in messages:
            _log_tool_message(message["metadata"])
        return messages

    def _tool_items_flow(
        self, tool_call: JsonObject, config: JsonObject, context: JsonObject | None
    ) -> Flow[None]:
        resolution = yield from self._resolving(config, provider_optional=True)
        yield from pipeline.stream_tool_items(self._tool_host(resolution, context, None), tool_call)


def _log_plugins(resolution: Resolution) -> None:
    named = {
        "extensions": resolution.provider.extensions,
        "features": resolution.features,
        "tools": resolution.tools,
    }
    _log.debug(
        "plugins_resolved_for_config",
        provider=resolution.provider.name,
        **{kind: [plugin.name for plugin in plugins] for kind, plugins in named.items()},
        tags=list(resolution.tags),
    )


def _log_tool_message(metadata: JsonObject) -> None:
    executed = metadata.get("error", {}).get("type") not in _NOT_RUN
    _log.debug("execute_tool_call_complete", tool_name=str(metadata["tool_name"]), executed=executed)
