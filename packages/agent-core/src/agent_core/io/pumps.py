"""Advancing an iterator somewhere else, so that whoever waits for it can stop waiting."""

from __future__ import annotations

import threading
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from agent_core.io.background import background
from agent_core.io.items import (
    CANCELLED,
    ENDED,
    PATIENCE,
    close_async,
    close_iterator,
    next_item,
    not_closed,
    start_async,
)
from agent_core.io.workers import run_in_worker

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterator

    from agent_core.steps import Work


class Pump(Protocol):
    """Advances an iterator elsewhere, one item each time one is wanted."""

    def want(self) -> None:
        """Ask for one item more."""

    def stop(self) -> None:
        """Ask for no more, and let go."""


def make_pump(work: Work[Any], deliver: Callable[[Any], None]) -> Pump:
    """Return the pump that suits the work; it calls *deliver* with each item or exception."""
    return LoopPump(work, deliver) if work.blocking is None else ThreadPump(work.blocking, deliver)


class ThreadPump:
    """Advances a blocking iterator in a thread of its own; one that hangs is left behind when stopped."""

    def __init__(self, start: Callable[[], Any], deliver: Callable[[Any], None]) -> None:
        self._start = start
        self._deliver = deliver
        self._wanted = threading.Semaphore(0)
        self._stopped = False
        run = copy_context().run  # the thread sees the caller's context variables
        run_in_worker(partial(run, self._work))

    def want(self) -> None:
        """Ask for one item more."""
        self._wanted.release()

    def stop(self) -> None:
        """Ask for no more; the thread closes the iterator."""
        self._stopped = True
        self._wanted.release()

    def _work(self) -> None:
        iterator: Iterator[Any] | None = None
        while self._wanted.acquire() and not self._stopped:
            try:
                if iterator is None:
                    iterator = iter(self._start())
                self._deliver((next(iterator, ENDED),))
            except BaseException as error:  # noqa: BLE001 - raised again where it is read
                self._deliver(error)
        try:
            close_iterator(iterator)
        except Exception as error:  # noqa: BLE001 - nobody reads it any more
            not_closed(error)


class LoopPump:
    """Advances an async iterator in one task on the background loop."""

    def __init__(self, work: Work[Any], deliver: Callable[[Any], None]) -> None:
        import asyncio

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
        import asyncio

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
                except BaseException as error:  # noqa: BLE001 - raised again where it is read
                    self._deliver(error)
        finally:
            await close_async(iterator)
