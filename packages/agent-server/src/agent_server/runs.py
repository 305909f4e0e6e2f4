"""Runs that go on whether or not somebody watches: each is a task that fills its session's feed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core.log import get_logger
from agent_server.feed import Cursor
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_server.feed import Feed, Feeds

_LAST_SECONDS = 10.0
_LOOKED_THROUGH = 2000
"""How many events of a log are looked through for a run that a client asks for again."""
_BROKEN_OFF = {
    "type": "error",
    "error": {"type": "RunBrokenOff", "message": "the run broke off; what was produced before is stored"},
}
_log = get_logger("server")


@dataclass(slots=True, eq=False)
class Run:
    """A run of this process.

    Attributes:
        after: Where the session's events were before it began.
        final: Its last event; None while it goes on.
    """

    session_id: str
    after: Cursor
    final: Mapping[str, Any] | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Runs:
    """The runs of this process.

    Attributes:
        is_stopping: Whether no more are begun, since the server stops.
    """

    def __init__(self, app: AgentApplication, feeds: Feeds) -> None:
        self._app = app
        self._feeds = feeds
        self._tasks: set[asyncio.Task[None]] = set()  # a task that nobody refers to may vanish
        self._runs: dict[str, Run] = {}
        self.is_stopping = False

    def __len__(self) -> int:
        return len(self._runs)

    def running(self, session_id: str) -> Run | None:
        """Return the run of a session that goes on here."""
        return self._runs.get(session_id)

    async def stop(self, seconds: float) -> None:
        """Let runs go on for some seconds, then cancel them; what they produced is kept."""
        self.is_stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for session_id in list(self._runs):
            self._app.cancel(session_id)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_SECONDS)

    async def find(self, session_id: str, run_id: str) -> Run | None:
        """Return a run that was begun under an id before, as the end of the session's log has it."""
        last = await self._app.last_event_async(session_id)
        after, begun = max(0, last - _LOOKED_THROUGH), None
        while events := await self._app.events_async(session_id, after):
            for event in events:
                if event["type"] == "run_start" and event["run_id"].startswith(f"{run_id}."):
                    begun = begun or Run(session_id, Cursor(event["seq"] - 1))
                elif begun is not None and event["type"] in ("final", "error"):
                    begun.final = event
                    begun.done.set()
                    return begun
            after = events[-1]["seq"]
        return begun

    async def start(self, session_id: str, text: str = "", **request: Any) -> Run:
        """Begin a run, and return when its first event is there; it goes on if the caller leaves.

        Args:
            request: As of `AgentApplication.chat`.

        Raises:
            AgentError: If it cannot begin: the session is running, there is nothing to say.
            Problem: If the server stops.
        """
        if self.is_stopping:
            raise Problem(503, "stopping", "The server stops", "Ask again.", headers={"retry-after": "1"})
        begun: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(session_id, text, request, begun))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(begun)

    async def _run(
        self, session_id: str, text: str, request: Mapping[str, Any], begun: asyncio.Future[Run]
    ) -> None:
        try:
            async with self._feeds.writing(session_id) as feed:
                await self._put_all(feed, session_id, text, request, begun)
        except (Exception, asyncio.CancelledError) as error:
            if not begun.done():
                begun.set_exception(error)
                begun.exception()  # whoever waits for it may have left
                return
            _log.warning("run_failed", session=session_id, error=repr(error))
            raise

    async def _put_all(
        self,
        feed: Feed,
        session_id: str,
        text: str,
        request: Mapping[str, Any],
        begun: asyncio.Future[Run],
    ) -> None:
        run: Run | None = None
        try:
            async with self._app.chat_async(session_id, text, **request) as events:
                async for event in events:
                    if run is None:
                        run = self._runs[session_id] = Run(session_id, feed.cursor)
                        feed.local = True
                        begun.set_result(run)
                    if "seq" in event:
                        await feed.put(event)
                    else:
                        feed.put_piece(event)
                    if event["type"] in ("final", "error"):
                        run.final = event
        finally:
            if run is not None:
                if run.final is None:  # the store is gone: readers must hear of an end
                    run.final = _BROKEN_OFF
                    feed.put_piece(_BROKEN_OFF)
                feed.local = False
                del self._runs[session_id]
                run.done.set()
