"""Runs that nobody waits for: started by one caller, followed by any, ended by themselves or by `cancel`.

A run's events are in the session's log like those of any other, so `subscribe` finds it again. A caller that
waits has its run in a thread of its own; one on an event loop has it there, as a task.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from agent_core import AsyncEventStream, EventStream, lazy
from agent_core.log import get_logger

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable

    from agent_core import Session
    from agent_core.steps import Flow

PATIENCE = 10.0
"""How many seconds runs have to store what they produced when the application is closed."""
_log = get_logger("app")


class DetachedRuns:
    """The detached runs of one application, by session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By run and not by session: one that is refused, since its session is busy, must not hide the other.
        self._threads: dict[threading.Thread, str] = {}
        self._tasks: dict[Task[None], str] = {}

    def start(self, session_id: str, flow: Flow[Session]) -> int | None:
        """Run a request in a thread; return the number of its first logged event once it has begun.

        Raises:
            AgentError: If it could not begin.
        """
        begun: Future[int | None] = Future()

        def work() -> None:
            try:
                for event in EventStream(flow):
                    if not begun.done():
                        begun.set_result(event.get("seq"))
            except BaseException as error:  # the caller hears of it, or the log
                _failed(session_id, begun, error)
            finally:
                self._forget(self._threads, threading.current_thread())
                _done(begun)

        thread = threading.Thread(target=work, name=f"agent-run-{session_id[:8]}", daemon=True)
        with self._lock:
            self._threads[thread] = session_id
        thread.start()
        return begun.result()

    async def start_async(self, session_id: str, flow: Flow[Session]) -> int | None:
        """Run a request as a task of the running event loop; return the number of its first logged event."""
        begun: Future[int | None] = Future()

        async def work() -> None:
            try:
                async for event in AsyncEventStream(flow):
                    if not begun.done():
                        begun.set_result(event.get("seq"))
            except BaseException as error:
                _failed(session_id, begun, error)
                if not isinstance(error, Exception):
                    raise
            finally:
                self._forget(self._tasks, lazy.asyncio.current_task())
                _done(begun)

        task = lazy.asyncio.create_task(work(), name=f"agent-run-{session_id[:8]}")
        with self._lock:
            self._tasks[task] = session_id
        # A caller that is cancelled here leaves the run alone.
        return await lazy.asyncio.shield(lazy.asyncio.wrap_future(begun))

    def is_running(self, session_id: str) -> bool:
        """Say whether a session has a detached run."""
        with self._lock:
            return session_id in (*self._threads.values(), *self._tasks.values())

    def stop(self, cancel: Callable[[str], object]) -> None:
        """Cancel all runs in threads, and wait until what they produced is stored."""
        with self._lock:
            threads = dict(self._threads)
            running = {*threads.values(), *self._tasks.values()}
        for session_id in running:
            cancel(session_id)
        for thread in threads:
            thread.join(PATIENCE)

    async def stop_async(self, cancel: Callable[[str], object]) -> None:
        """Cancel all runs, and wait until what they produced is stored."""
        with self._lock:
            tasks = dict(self._tasks)
        for session_id in tasks.values():
            cancel(session_id)
        if tasks:
            await lazy.asyncio.wait(tasks, timeout=PATIENCE)
        await lazy.asyncio.to_thread(self.stop, cancel)

    def _forget(self, runs: dict[Any, str], run: object) -> None:
        with self._lock:
            runs.pop(run, None)


def _failed(session_id: str, begun: Future[int | None], error: BaseException) -> None:
    if begun.done():  # mostly the log has it; if the store is gone, this is all there is
        _log.warning("detached_run_failed", session=session_id, error=str(error))
    else:
        begun.set_exception(error)


def _done(begun: Future[int | None]) -> None:
    if not begun.done():
        begun.set_result(None)
