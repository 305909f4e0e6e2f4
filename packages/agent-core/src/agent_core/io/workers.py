"""Work in other threads, so that whoever waits for it can stop waiting.

Threads are kept for the next piece of work: starting one costs more than most tools do. A pump advances an
iterator in one of them, or on the event loop in the background.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from agent_core.io.items import (
    ENDED,
    close_iterator,
    not_closed,
)
from agent_core.steps import Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_core.steps import Work

_KEPT = 64  # threads that may wait for work; more are started when needed and end afterwards


class _Worker:
    """A thread that does one piece of work at a time. One that hangs is simply never idle again."""

    def __init__(self) -> None:
        self.work: SimpleQueue[Callable[[], object]] = SimpleQueue()
        threading.Thread(target=self._live, name="agent-core-worker", daemon=True).start()

    def _live(self) -> None:
        while True:
            self.work.get()()
            with _lock:
                if len(_idle) >= _KEPT:
                    return
                _idle.append(self)


_lock = threading.Lock()
_idle: list[_Worker] = []


def run_in_worker(work: Callable[[], object]) -> None:
    """Start *work*, which must not raise, in a thread that nothing else uses until it is done."""
    with _lock:
        worker = _idle.pop() if _idle else None
    (worker or _Worker()).work.put(work)


class NarrowLane:
    """Does pieces of work in their order, so many at a time as it is wide.

    For work that has to wait for the same thing anyway, such as a database: threads that only wait for it,
    and for the interpreter, cost more than the work itself once there are hundreds.
    """

    def __init__(self, width: int) -> None:
        self._free = width
        self._waiting: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()

    def run(self, work: Callable[[], object]) -> None:
        """Have *work*, which must not raise, done in a thread."""
        with self._lock:
            if not self._free:
                self._waiting.append(work)
                return
            self._free -= 1
        run_in_worker(partial(self._live, work))

    def _live(self, work: Callable[[], object]) -> None:
        while True:
            work()
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                work = self._waiting.popleft()


# A child process has none of its parent's threads.
os.register_at_fork(after_in_child=_idle.clear)


class Pump(Protocol):
    """Advances an iterator elsewhere, one item each time one is wanted."""

    def want(self) -> None:
        """Ask for one item more."""

    def stop(self) -> None:
        """Ask for no more, and let go."""


def make_pump(work: Work[Any], deliver: Callable[[Any], None]) -> Pump:
    """Return the pump that suits the work; it calls *deliver* with each item or exception."""
    if work.blocking is not None:
        return ThreadPump(work.blocking, deliver)
    from agent_core.io.background import LoopPump  # an event loop takes a while to load

    return LoopPump(work, deliver)


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
                    started = self._start()
                    if started.__class__ is Whole:
                        self._deliver((started,))
                        return
                    iterator = iter(started)
                self._deliver((next(iterator, ENDED),))
            except BaseException as error:  # raised again where it is read
                self._deliver(error)
        try:
            close_iterator(iterator)
        except Exception as error:  # nobody reads it any more
            not_closed(error)
