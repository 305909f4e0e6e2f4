"""The event loop on which callers without one run awaitable work; loaded by the first that does."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from agent_core.errors import RequestCancelled
from agent_core.io.items import CANCELLED, PATIENCE, close_async, next_item, not_closed, start_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from agent_core.steps import Work


def run_in_background(work: Work[Any]) -> Any:
    """Do awaitable work on the background loop and return its result, waiting for it in this thread."""
    loop = background.get()  # first: it may refuse, and a coroutine that is made must be awaited
    future = asyncio.run_coroutine_threadsafe(_await(work), loop)
    try:
        return future.result()
    except CancelledError:
        raise RequestCancelled from None
    finally:
        future.cancel()  # does nothing to one that has ended by itself


async def _await(work: Work[Any]) -> Any:
    return await cast("Callable[[], Any]", work.awaitable)()


class _BackgroundLoop:
    """The loop on which synchronous callers run awaitable work; started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inherited: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_live, args=(self._loop,), name="agent-core-loop", daemon=True
                )
                thread.start()
                atexit.register(_end, self._loop, thread)
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - get_running_loop would raise
            raise RuntimeError(
                "a plugin that runs on the background loop must not wait for it: "
                "await the async method instead of calling the blocking one"
            )
        return self._loop

    def begin_anew(self) -> None:
        """Forget the loop in a child process, which has none of its parent's threads."""
        self._lock = threading.Lock()
        # Kept, since what it watches the parent watches with the same selector: closing it would end that.
        self._inherited, self._loop = self._loop, None
        atexit.unregister(_end)


def _live(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Close what lives on the loop, such as pools of connections, and the loop, before the process ends."""
    closing = asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop)
    with suppress(Exception):
        closing.result(PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)


background = _BackgroundLoop()
os.register_at_fork(after_in_child=background.begin_anew)


class LoopPump:
    """Advances an async iterator in one task on the background loop."""

    def __init__(self, work: Work[Any], deliver: Callable[[Any], None]) -> None:
        self._started_by = work
        self._deliver = deliver
        self._wanted = asyncio.Semaphore(0)
        self._stopped = False
        self._ended = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop = background.get()
        self._loop.call_soon_threadsafe(self._begin)

    def want(self) -> None:
        """Ask for one item more."""
        self._loop.call_soon_threadsafe(self._wanted.release)

    def stop(self) -> None:
        """Ask for no more, and wait a moment for the iterator to close."""
        self._stopped = True
        self._loop.call_soon_threadsafe(self._cancel)
        self._ended.wait(PATIENCE)

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work())
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            not_closed(error)
        self._ended.set()

    async def _work(self) -> None:
        iterator: AsyncIterator[Any] | None = None
        try:
            while not self._stopped:
                await self._wanted.acquire()
                try:
                    if iterator is None:
                        iterator = start_async(self._started_by)
                    self._deliver((await next_item(iterator),))
                except asyncio.CancelledError:  # ours if we stop; otherwise the stream cancelled itself
                    self._deliver(CANCELLED)
                except BaseException as error:  # raised again where it is read
                    self._deliver(error)
        finally:
            await close_async(iterator)
