"""Runs that go on whether or not somebody watches: each is a task that fills its session's feed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_server.feed import Cursor, Feed, Feeds

_log = get_logger("server")


@dataclass(slots=True, eq=False)
class Run:
    """A run of this process.

    Attributes:
        after: Where the session's events were before it began.
        end: The number that the frame behind its last one has; None while it goes on.
        final: Its last event; None while it goes on, and if it had none.
    """

    session_id: str
    after: Cursor
    end: int | None = None
    final: Mapping[str, Any] | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def is_over(self, number: int) -> bool:
        """Say whether the frame of a number comes after it."""
        return self.end is not None and number >= self.end


class Runs:
    """The runs of this process."""

    def __init__(self, app: AgentApplication, feeds: Feeds) -> None:
        self._app = app
        self._feeds = feeds
        self._tasks: set[asyncio.Task[None]] = set()  # a task that nobody refers to may vanish
        self._runs: dict[str, Run] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def running(self, session_id: str) -> Run | None:
        """Return the run of a session that goes on here."""
        return self._runs.get(session_id)

    async def start(self, session_id: str, text: str = "", **request: Any) -> Run:
        """Begin a run, and return when its first event is there; it goes on if the caller leaves.

        Args:
            request: As of `AgentApplication.chat`.

        Raises:
            AgentError: If it cannot begin: the session is running, there is nothing to say.
        """
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
                feed.local = False
                del self._runs[session_id]
                run.end = feed.end
                run.done.set()
                feed.wake()
