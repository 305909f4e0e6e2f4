"""Requests, messages that arrive during one, and the event log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app import operations, run
from agent_app.events import read_cursor
from agent_app.run import Request
from agent_app.services import ApplicationBase, caller_context
from agent_core import ArgumentError, AsyncEventStream, EventStream
from agent_core.drivers import call, call_async
from agent_core.steps import CloseStream, Emit, OpenStream, Read, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_app.attachments import Attachments
    from agent_app.store.base import InputMode, Waiting
    from agent_core import AgentCore, Session
    from agent_core.steps import Flow
    from agent_runtime import Checkpoint


class Chat(ApplicationBase):
    """Saying something in a session, and following what happens there."""

    def send_request(
        self,
        core: AgentCore,
        session: Session,
        base_config: Mapping[str, Any],
        overrides: Mapping[str, Any] | None = None,
        *,
        stream: bool = True,
        context: Mapping[str, Any] | None = None,
    ) -> EventStream[Session]:
        """Run an agent on a session that the caller keeps, with what `update_agent` returned.

        The last event is `final` with `session` and `messages`, or `error`.
        """
        return EventStream(self._send(core, session, base_config, overrides, stream=stream, context=context))

    def send_request_async(
        self,
        core: AgentCore,
        session: Session,
        base_config: Mapping[str, Any],
        overrides: Mapping[str, Any] | None = None,
        *,
        stream: bool = True,
        context: Mapping[str, Any] | None = None,
    ) -> AsyncEventStream[Session]:
        """Do what `send_request` does, on the running event loop."""
        flow = self._send(core, session, base_config, overrides, stream=stream, context=context)
        return AsyncEventStream(flow)

    def chat(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Attachments = (),
        stream: bool = True,
        overrides: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        take_over: bool = False,
        run_id: str | None = None,
        kept: Callable[[Checkpoint], object] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> EventStream[Session]:
        """Say something in a stored session; yield what happens, and last `final` or `error`.

        Without a text it continues with what was decided or enqueued since. With *take_over* it takes the
        session from another process that has it, which cannot write it any more then. With a *run_id*
        another process can continue where this one stopped: it asks again, without a text, under the same id.
        *kept* is called with each checkpoint, once it is stored; an event `kept` follows, at which the run
        can be left without anything being half done. *limits* are the run's `timeout`, `token_budget` and
        `cost_budget`.

        Args:
            attachments: `File` objects, or content parts: ``{"type": "image", "mime_type": …, "data": …}``
                with the data as base64, or ``{"type": "asset", "asset_id": …}`` for what the session has as
                an asset.

        Raises:
            AssetRefused: If an attachment is larger than an asset may be, or of a type that is not taken.
            SessionBusy, SessionHeld: If the session is running, here or elsewhere; at the first event.
        """
        request = self._asked(text, attachments, stream, overrides, context, take_over, run_id, kept, limits)
        return EventStream(run.chat(self._services, session_id, request))

    def chat_async(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Attachments = (),
        stream: bool = True,
        overrides: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        take_over: bool = False,
        run_id: str | None = None,
        kept: Callable[[Checkpoint], object] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> AsyncEventStream[Session]:
        """Do what `chat` does, on the running event loop."""
        request = self._asked(text, attachments, stream, overrides, context, take_over, run_id, kept, limits)
        return AsyncEventStream(run.chat(self._services, session_id, request))

    def start_run(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Attachments = (),
        stream: bool = True,
        overrides: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        take_over: bool = False,
        run_id: str | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Do what `chat` does, in a thread that goes on when the caller is gone; return once it has begun.

        Returns:
            `session_id`, and `after`, for which `subscribe` yields all events of the run. `cancel` and
            `interrupt` stop it, and `close` does.

        Raises:
            SessionBusy, SessionHeld: If the session is running, here or elsewhere.
            ArgumentError: If there is nothing to say.
        """
        request = self._asked(text, attachments, stream, overrides, context, take_over, run_id, None, limits)
        first = self._services.detached.start(session_id, run.chat(self._services, session_id, request))
        after = self.last_event(session_id) if first is None else first - 1
        return {"session_id": session_id, "after": after}

    async def start_run_async(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Attachments = (),
        stream: bool = True,
        overrides: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        take_over: bool = False,
        run_id: str | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Do what `start_run` does, as a task of the running event loop."""
        request = self._asked(text, attachments, stream, overrides, context, take_over, run_id, None, limits)
        flow = run.chat(self._services, session_id, request)
        first = await self._services.detached.start_async(session_id, flow)
        after = await self.last_event_async(session_id) if first is None else first - 1
        return {"session_id": session_id, "after": after}

    def stop_runs(self) -> None:
        """Cancel all runs that `start_run` began, and wait for some seconds until they are stored."""
        self._services.detached.stop(self.cancel)

    async def stop_runs_async(self) -> None:
        """Do what `stop_runs` does, on the running event loop."""
        await self._services.detached.stop_async(self.cancel)

    def enqueue(
        self,
        session_id: str,
        text: str,
        mode: InputMode = "steer",
        *,
        attachments: Attachments = (),
        key: str | None = None,
    ) -> Waiting:
        """Say something while a run goes on: between two steps, after it, or in place of it.

        The message is safe when this returns. Without a run it waits for the next `chat`.

        Args:
            attachments: Content parts, as for `chat`.
            key: A name for this message: a second one under the same key is not kept, so a caller that lost
                the answer can ask again.
        """
        return call(operations.enqueue(self._services, session_id, text, mode, attachments, key))

    async def enqueue_async(
        self,
        session_id: str,
        text: str,
        mode: InputMode = "steer",
        *,
        attachments: Attachments = (),
        key: str | None = None,
    ) -> Waiting:
        """Do what `enqueue` does, on the running event loop."""
        return await call_async(operations.enqueue(self._services, session_id, text, mode, attachments, key))

    def input_under(self, session_id: str, key: str) -> dict[str, Any] | None:
        """Return the event of a message that was enqueued under a key, if the end of the log has it."""
        return call(operations.input_under(self._services, session_id, key))

    async def input_under_async(self, session_id: str, key: str) -> dict[str, Any] | None:
        """Do what `input_under` does, on the running event loop."""
        return await call_async(operations.input_under(self._services, session_id, key))

    def queued(self, session_id: str) -> Sequence[Waiting]:
        """Return the messages that wait to be delivered, in order."""
        return call(operations.queued(self._services, session_id))

    async def queued_async(self, session_id: str) -> Sequence[Waiting]:
        """Do what `queued` does, on the running event loop."""
        return await call_async(operations.queued(self._services, session_id))

    def edit_queued(
        self,
        session_id: str,
        seq: int,
        text: str,
        mode: InputMode | None = None,
        *,
        attachments: Attachments = (),
    ) -> Waiting | None:
        """Change a queued message, and when it is delivered; None if it was delivered already."""
        flow = operations.edit_queued(self._services, session_id, seq, text, mode, attachments)
        return call(flow)

    async def edit_queued_async(
        self,
        session_id: str,
        seq: int,
        text: str,
        mode: InputMode | None = None,
        *,
        attachments: Attachments = (),
    ) -> Waiting | None:
        """Do what `edit_queued` does, on the running event loop."""
        flow = operations.edit_queued(self._services, session_id, seq, text, mode, attachments)
        return await call_async(flow)

    def withdraw(self, session_id: str, seq: int) -> bool:
        """Take a queued message back; False if it was delivered already, or is being delivered."""
        return call(operations.withdraw(self._services, session_id, seq))

    async def withdraw_async(self, session_id: str, seq: int) -> bool:
        """Do what `withdraw` does, on the running event loop."""
        return await call_async(operations.withdraw(self._services, session_id, seq))

    def cancel(self, session_id: str) -> bool:
        """Stop the run of a session in this process; what it produced is kept. False if there is none."""
        active = self._services.active.get(session_id)
        if active is not None:
            active.cancellation.cancel()
        return active is not None

    def interrupt(self, session_id: str) -> bool:
        """Let the run of a session in this process answer now what waits; False if there is none.

        `enqueue` with "interrupt" does so by itself. This is for messages that another process has left.
        """
        active = self._services.active.get(session_id)
        if active is not None:
            active.interrupted = True
            active.cancellation.cancel()
        return active is not None

    async def interrupt_async(self, session_id: str) -> bool:
        """Do what `interrupt` does, which never waits."""
        return self.interrupt(session_id)

    async def cancel_async(self, session_id: str) -> bool:
        """Do what `cancel` does, which never waits."""
        return self.cancel(session_id)

    def events(self, session_id: str, after: int = 0, limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Return up to *limit* logged events of a session behind a number, each with its `seq`."""
        return call(operations.events(self._services, session_id, after, limit))

    async def events_async(
        self, session_id: str, after: int = 0, limit: int = 1000
    ) -> Sequence[dict[str, Any]]:
        """Do what `events` does, on the running event loop."""
        return await call_async(operations.events(self._services, session_id, after, limit))

    def last_event(self, session_id: str) -> int:
        """Return the number of a session's last event, 0 if it has none; `subscribe` goes on from there."""
        return call(operations.last_event(self._services, session_id))

    async def last_event_async(self, session_id: str) -> int:
        """Do what `last_event` does, on the running event loop."""
        return await call_async(operations.last_event(self._services, session_id))

    def subscribe(self, session_id: str, after: int = 0) -> EventStream[None]:
        """Yield the logged events of a session behind a number, then those to come, until it is closed.

        Raises:
            SessionNotFound: If there is no such session; if it is deleted later, the events end.
            ArgumentError: If its log has no event of that number.
        """
        return EventStream(self._follow(session_id, after))

    def subscribe_async(self, session_id: str, after: int = 0) -> AsyncEventStream[None]:
        """Do what `subscribe` does, on the running event loop."""
        return AsyncEventStream(self._follow(session_id, after))

    def all_events(self, after: str = "", limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Return up to *limit* logged events of all sessions behind a cursor, in the order of their writing.

        Each has a `cursor`, and a `session_id` with its `seq` there unless it is about no session.
        """
        return call(operations.feed(self._services, after, limit))

    async def all_events_async(self, after: str = "", limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Do what `all_events` does, on the running event loop."""
        return await call_async(operations.feed(self._services, after, limit))

    def last_cursor(self) -> str:
        """Return the cursor of the last event of all sessions; `subscribe_all` goes on from there."""
        return call(operations.feed_end(self._services))

    async def last_cursor_async(self) -> str:
        """Do what `last_cursor` does, on the running event loop."""
        return await call_async(operations.feed_end(self._services))

    def subscribe_all(self, after: str = "") -> EventStream[None]:
        """Yield the logged events of all sessions behind a cursor, then those to come, until it is closed.

        Raises:
            ArgumentError: If it is not a cursor of this store.
        """
        return EventStream(self._follow(None, read_cursor(after)))

    def subscribe_all_async(self, after: str = "") -> AsyncEventStream[None]:
        """Do what `subscribe_all` does, on the running event loop."""
        return AsyncEventStream(self._follow(None, read_cursor(after)))

    def _follow(self, session_id: str | None, after: int) -> Flow[None]:
        reader = yield from ask(OpenStream(self._services.hub.follow(session_id, after)))
        read = Read(reader)
        try:
            while (events := (yield read)) is not None:
                yield Emit(events)
        finally:
            yield CloseStream(reader)

    def _send(
        self,
        core: AgentCore,
        session: Session,
        base_config: Mapping[str, Any],
        overrides: Mapping[str, Any] | None,
        *,
        stream: bool,
        context: Mapping[str, Any] | None,
    ) -> Flow[Session]:
        if not hasattr(core, "append_messages"):
            raise ArgumentError("core must be the first thing that update_agent() returned")
        own = caller_context(self._services, context, is_request=True)
        request = Request(overrides=overrides or {}, stream=stream, context=own)
        return run.send(self._services, session, base_config, request)

    def _asked(
        self,
        text: str,
        attachments: Attachments,
        stream: bool,  # noqa: FBT001 - one of several that are passed on
        overrides: Mapping[str, Any] | None,
        context: Mapping[str, Any] | None,
        take_over: bool,  # noqa: FBT001
        run_id: str | None,
        kept: Callable[[Checkpoint], object] | None,
        limits: Mapping[str, Any] | None,
    ) -> Request:
        return Request(
            messages=operations.user_message(text, attachments),
            overrides=overrides or {},
            stream=stream,
            context=caller_context(self._services, context, is_request=True),
            take_over=take_over,
            run_id=run_id,
            kept=kept,
            limits=limits or {},
        )
