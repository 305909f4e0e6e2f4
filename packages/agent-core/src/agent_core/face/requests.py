"""Asking the model: one flow, four ways to run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.drivers import AsyncEventStream, EventStream, call, call_async
from agent_core.face.base import CoreBase
from agent_core.face.checks import check_context, check_session
from agent_core.pipeline.request import Request
from agent_core.pipeline.turn import request_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_core.messages import Message
    from agent_core.pipeline.finish import TurnResult
    from agent_core.session import Session
    from agent_core.steps import Flow

Dicts = list[dict[str, Any]]


class Requests(CoreBase):
    """One question to the model, as a call or as a stream."""

    def send_request(
        self,
        session: Session,
        config: dict[str, Any],
        *,
        request_id: str | None = None,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
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
        config: dict[str, Any],
        *,
        request_id: str | None = None,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
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

    async def send_request_async(
        self,
        session: Session,
        config: dict[str, Any],
        *,
        request_id: str | None = None,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
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
        config: dict[str, Any],
        *,
        request_id: str | None = None,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
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
        config: dict[str, Any],
        *,
        stream: bool,
        request_id: str | None = None,
        cancellation: Any | None = None,
        context: dict[str, Any] | None = None,
        transform: Callable[[Sequence[Message]], Sequence[Message]] | None = None,
    ) -> Flow[TurnResult]:
        """Return one question to the model as a flow, for layers that drive flows of their own.

        Args:
            transform: Gets the session's messages and returns those to send, others among them if
                need be. The session keeps all of its own and none of the others.
        """
        check_session(session)
        resolution = yield from self._resolving(config)
        request = Request(
            core=self,
            resolution=resolution,
            session=session,
            operation="send_request",
            request_id=request_id or (None if cancellation is None else _new_request_id()),
            stream=stream,
            cancellation=cancellation,
            extra=check_context(context),
            transform=transform,
        )
        return (yield from request_turn(request))


def _new_request_id() -> str:
    from uuid import uuid4

    return uuid4().hex
