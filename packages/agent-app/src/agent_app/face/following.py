"""The event log, from any place and live."""

from __future__ import annotations

from agent_app.face.base import ApplicationBase
from agent_core import AsyncEventStream, EventStream
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, ask


class Following(ApplicationBase):
    """Following what happens in a session."""

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

    def _follow(self, session_id: str, after: int) -> Flow[None]:
        reader = yield from ask(OpenStream(self._services.hub.follow(session_id, after)))
        read = Read(reader)
        try:
            while (events := (yield read)) is not None:
                yield Emit(events)
        finally:
            yield CloseStream(reader)
