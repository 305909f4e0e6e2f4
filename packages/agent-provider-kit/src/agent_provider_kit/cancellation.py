"""Requests that are under way, so that each can be cancelled from any thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING

from agent_core import RequestCancelled, lazy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from agent_provider_kit.transport import HttpResponse

_EARLY = 2.0  # seconds for which a cancellation waits for its request
_MOST_EARLY = 256


class RunningRequests:
    """All requests of one provider that have an id.

    A request may be cancelled between its start and the moment in which it is known here, so
    cancellations of unknown requests are remembered for a little while.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, RunningRequest] = {}
        self._early: OrderedDict[str, float] = OrderedDict()

    def cancel(self, request_id: str) -> None:
        """End a request: close its connection, and let whoever waits for it go."""
        with self._lock:
            running = self._running.get(request_id)
            if running is None:
                self._early[request_id] = monotonic()
                if len(self._early) > _MOST_EARLY:
                    self._early.popitem(last=False)
        if running is not None:
            running.cancel()

    def watch(self, request_id: str | None) -> RunningRequest:
        """Return a request for a ``with`` statement; without an id nobody can cancel it."""
        return RunningRequest(self, request_id)

    def enter(self, request_id: str, running: RunningRequest) -> None:
        """Note that a request runs; it may have been cancelled already."""
        with self._lock:
            self._running[request_id] = running
            cancelled = self._early.pop(request_id, None)
        if cancelled is not None and monotonic() - cancelled < _EARLY:
            running.cancel()

    def leave(self, request_id: str, running: RunningRequest) -> None:
        """Note that a request has ended."""
        with self._lock:
            if self._running.get(request_id) is running:
                del self._running[request_id]


class RunningRequest:
    """One request, from the moment it is sent until its reply is read.

    Used in a ``with`` statement, at whose end the reply is closed. What a cancelled request fails
    with becomes `RequestCancelled`.
    """

    __slots__ = ("_all", "_cancelled", "_loop", "_request_id", "_response", "_scope")

    def __init__(self, running: RunningRequests, request_id: str | None) -> None:
        self._all = running
        self._request_id = request_id
        self._cancelled = False
        self._response: HttpResponse | None = None
        self._scope: asyncio.Timeout | None = None

    def __enter__(self) -> RunningRequest:  # noqa: PYI034 - nobody inherits it
        if self._request_id is not None:
            self._loop = lazy.asyncio.get_running_loop()
            self._all.enter(self._request_id, self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if self._request_id is not None:
            self._all.leave(self._request_id, self)
        if self._response is not None:
            self._response.close()
        if self._cancelled and kind is not None and issubclass(kind, Exception):
            raise RequestCancelled from None

    def cancel(self) -> None:
        """End the request, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    async def reach(self, sending: Awaitable[HttpResponse]) -> HttpResponse:
        """Wait until the reply begins."""
        if self._request_id is None:
            self._response = await sending
        else:
            # A cancellation ends the wait as a timeout that has come: the task is the caller's own.
            self._scope = lazy.asyncio.timeout(0 if self._cancelled else None)
            try:
                async with self._scope:
                    self._response = await sending
            finally:
                self._scope = None
        if self._cancelled:  # in the moment in which the reply began: the wait was over before it was ended
            raise RequestCancelled
        return self._response

    def _cancel(self) -> None:
        self._cancelled = True
        if self._response is not None:
            self._response.close()
        elif self._scope is not None and not self._scope.expired():
            self._scope.reschedule(self._loop.time())
