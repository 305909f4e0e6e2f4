"""Threads that are kept for the next piece of work: starting one costs more than most tools do."""

from __future__ import annotations

import os
import threading
from collections import deque
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
