"""Runs that go on whether or not somebody watches.

A server on one machine runs them itself (`LocalRuns`); one of several on a shared database hands them to
workers (`agent_server.workers`). The routes do not see the difference.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_app.errors import SessionBusy, SessionHeld
from agent_core.log import get_logger
from agent_server.feed import Cursor
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_server.feed import Feed, Feeds

_GATHER_SECONDS, MOST_GATHER_SECONDS = 0.001, 0.05
"""How long the next words of an answer gather: so long for each answer being written, and at most."""
_FEW = 2
"""With so many answers at a time, each word is shown as it comes."""
_LAST_SECONDS = 10.0
_LOOKED_THROUGH = 2000
"""How many events of a log are looked through for a run that a client asks for again."""
_RECENT = 20
"""How many events may follow the end of a run before the next: titles, files, decisions."""
_BROKEN_OFF = {
    "type": "error",
    "error": {"type": "RunBrokenOff", "message": "the run broke off; what was produced before is stored"},
}
_log = get_logger("server")


class Run(ABC):
    """A run that was begun.

    Attributes:
        after: Where the session's events were before it began.
    """

    def __init__(self, session_id: str, after: Cursor) -> None:
        self.session_id = session_id
        self.after = after

    @abstractmethod
    async def end(self) -> Mapping[str, Any]:
        """Wait until it is over, and return its last event."""


class Runs(ABC):
    """Begins runs and stops them, wherever they are executed.

    Attributes:
        are_local: Whether this process executes them.
        is_stopping: Whether no more are begun, since the server stops.
    """

    are_local = True

    def __init__(self) -> None:
        self.is_stopping = False

    @abstractmethod
    async def start(self, session_id: str, text: str = "", **request: Any) -> Run:
        """Begin a run; it goes on if the caller leaves.

        Args:
            request: As of `AgentApplication.chat`. A run that was begun under its `run_id` is returned.

        Raises:
            AgentError: If it cannot begin: the session is running, there is nothing to say.
            Problem: If the server stops.
        """

    @abstractmethod
    async def until_free(self, session_id: str) -> None:
        """Wait for a run to let its session go, if somebody may have seen its end already."""

    @abstractmethod
    async def go_on(self, session_id: str, approval_id: str) -> None:
        """Have a session continue with a decision that is stored."""

    @abstractmethod
    async def cancel(self, session_id: str) -> bool:
        """Stop the run of a session; False if there is none."""

    async def clear(self, session_id: str) -> None:
        """Stop the run of a session that is to be deleted."""
        await self.cancel(session_id)

    @abstractmethod
    async def interrupt(self, session_id: str) -> bool:
        """Have the run of a session answer now what was queued for it; False if there is nothing to do."""

    async def will_go_on(self, session_id: str) -> bool:
        """Say whether a run of a session that broke off is continued by itself."""
        return False

    @abstractmethod
    async def count(self) -> Mapping[str, int]:
        """Return how many runs there are: those under way here, those that wait, and workers."""

    async def stop(self, seconds: float) -> None:
        """Begin no more runs, and give those of this process some seconds."""
        self.is_stopping = True

    def check_open(self) -> None:
        """Refuse a run if the server stops.

        Raises:
            Problem: If it does.
        """
        if self.is_stopping:
            raise Problem(503, "stopping", "The server stops", "Ask again.", headers={"retry-after": "1"})


class LocalRun(Run):
    """A run of this process.

    Attributes:
        final: Its last event; None while it goes on.
    """

    def __init__(self, session_id: str, after: Cursor) -> None:
        super().__init__(session_id, after)
        self.final: Mapping[str, Any] | None = None
        self.done = asyncio.Event()

    async def end(self) -> Mapping[str, Any]:
        await self.done.wait()
        return self.final or _BROKEN_OFF


class LocalRuns(Runs):
    """Runs of this process: each is a task that fills its session's feed."""

    def __init__(self, app: AgentApplication, feeds: Feeds) -> None:
        super().__init__()
        self._app = app
        self._feeds = feeds
        self._tasks: set[asyncio.Task[None]] = set()  # a task that nobody refers to may vanish
        self._runs: dict[str, LocalRun] = {}

    async def count(self) -> Mapping[str, int]:
        return {"running": len(self._runs)}

    async def cancel(self, session_id: str) -> bool:
        return self._app.cancel(session_id)

    async def interrupt(self, session_id: str) -> bool:
        return self._app.interrupt(session_id)

    async def until_free(self, session_id: str) -> None:
        run = self._runs.get(session_id)
        if run is not None and await self._has_ended(run):
            await run.done.wait()

    async def go_on(self, session_id: str, approval_id: str) -> None:
        with suppress(SessionBusy, SessionHeld):  # whoever has it continues with the decision
            await self.start(session_id)

    async def stop(self, seconds: float) -> None:
        """Let runs go on for some seconds, then cancel them; what they produced is kept."""
        await super().stop(seconds)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for session_id in list(self._runs):
            self._app.cancel(session_id)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_SECONDS)

    async def _has_ended(self, run: LocalRun) -> bool:
        """Say whether somebody can have seen the end of a run: readers may have it from the log before us."""
        if run.final is not None:
            return True
        last = await self._app.last_event_async(run.session_id)
        recent = await self._app.events_async(run.session_id, max(run.after.seq, last - _RECENT))
        return any(event["type"] in ("final", "error") for event in recent)

    async def _find(self, session_id: str, run_id: str) -> LocalRun | None:
        """Return a run that was begun under an id before, as the end of the session's log has it."""
        last = await self._app.last_event_async(session_id)
        after, begun = max(0, last - _LOOKED_THROUGH), None
        while events := await self._app.events_async(session_id, after):
            for event in events:
                if event["type"] == "run_start" and event["run_id"].startswith(f"{run_id}."):
                    begun = begun or LocalRun(session_id, Cursor(event["seq"] - 1))
                elif begun is not None and event["type"] in ("final", "error"):
                    begun.final = event
                    begun.done.set()
                    return begun
            after = events[-1]["seq"]
        return begun

    async def start(self, session_id: str, text: str = "", **request: Any) -> Run:
        run_id = request.get("run_id")
        request.pop("tenant", None)  # of the session: its store knows it
        request.pop("person", None)  # their settings are in the request
        found = None if run_id is None else await self._find(session_id, run_id)
        if found is not None and found.final is not None:
            return found
        self.check_open()
        await self.until_free(session_id)
        if found is not None:
            text = ""  # what was said is stored: a run that broke off goes on
        begun: asyncio.Future[LocalRun] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(session_id, text, request, begun))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(begun)

    async def _run(
        self, session_id: str, text: str, request: Mapping[str, Any], begun: asyncio.Future[LocalRun]
    ) -> None:
        try:
            await self._put_all(session_id, text, request, begun)
        except (Exception, asyncio.CancelledError) as error:
            if not begun.done():
                begun.set_exception(error)
                begun.exception()  # whoever waits for it may have left
                return
            _log.warning("run_failed", session=session_id, error=repr(error))
            raise

    async def _put_all(
        self, session_id: str, text: str, request: Mapping[str, Any], begun: asyncio.Future[LocalRun]
    ) -> None:
        run: LocalRun | None = None
        feed: Feed | None = None
        clock, asked_at = asyncio.get_running_loop().time, 0.0
        try:
            async with self._app.chat_async(session_id, text, **request) as events:
                async for event in events:
                    if run is None or feed is None:  # the first is logged, as the start of a run
                        feed = self._feeds.begin(session_id, event["seq"] - 1)
                        run = self._runs[session_id] = LocalRun(session_id, feed.cursor)
                        begun.set_result(run)
                    if event["type"] in ("final", "error"):
                        run.final = event  # first: whoever sees the end may begin the next run
                    if "seq" in event:
                        await feed.put(event)
                    else:
                        feed.put_piece(event)
                        # A piece costs the same whether it has one word or five. So the more answers are
                        # being written, the longer the words of each gather where they come in, unless
                        # they come more slowly anyway.
                        if len(self._runs) > _FEW:
                            pause = min(_GATHER_SECONDS * len(self._runs), MOST_GATHER_SECONDS)
                            if clock() - asked_at < pause:
                                await asyncio.sleep(pause)
                            asked_at = clock()
        finally:
            if run is not None and feed is not None:
                if run.final is None:  # the store is gone: readers must hear of an end
                    run.final = _BROKEN_OFF
                    feed.put_piece(_BROKEN_OFF)
                self._feeds.end(session_id, feed)
                del self._runs[session_id]
                run.done.set()
