"""For tests of agents and of what uses them.

`ManualClock` moves only when a test says so. Sleepers and alarms are kept by the moment at which they are
due; `advance` goes there from one to the next, so that each finds the clock at its own moment. With
*auto_advance* nobody has to do that: a sleep moves the clock itself and returns at once, and an hour of
retries takes no time.

`assert_steady` runs many turns and checks that the process uses no more afterwards than before.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import sys
import threading
from collections.abc import Awaitable, Callable
from itertools import count
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_core.errors import ArgumentError
from agent_runtime.clock import tell

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


Wake = Callable[[Callable[[], None]], Callable[[], None]]
_PATIENCE = 60.0
_KEPT_THREADS = 16  # that wait for the next tool, however many there are so far


class ManualClock:
    """A `Clock` for tests; it may be used from several threads and event loops.

    Args:
        start: What the clock shows at first.
        auto_advance: Whether a sleep moves the clock by its own length and returns at once. One without
            an end still waits until it is woken.

    Attributes:
        slept: The length of every sleep so far, in the order in which they began.
    """

    def __init__(self, start: float = 0.0, *, auto_advance: bool = False) -> None:
        self.slept: list[float] = []
        self._now = start
        self._auto_advance = auto_advance
        self._changed = threading.Condition()
        self._sleeping = 0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock; sleepers and alarms whose time comes are woken and called, earliest first.

        Alarms are called in this thread. What one of them raises comes out here, and the clock stands
        at that alarm's moment then.
        """
        if not 0 <= seconds < inf:
            raise ArgumentError(f"a clock advances by 0 seconds or more, and not by {seconds!r}")
        end = self._now + seconds
        while (callback := self._next_until(end)) is not None:
            callback()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call *callback* when the clock has advanced so far; return how to take it back."""
        with self._changed:
            entry = (self._now + seconds, next(self._numbers), callback)
            heapq.heappush(self._due, entry)
        return lambda: self._forget(entry)

    def sleep(self, seconds: float, wake: Wake) -> None:
        """Wait in this thread until the clock has advanced so far or somebody wakes us."""
        woken = threading.Event()
        forget = wake(woken.set)
        try:
            if not self._passes(seconds, woken):
                take_back = self._begin(seconds, woken.set)
                try:
                    woken.wait()
                finally:
                    self._end(take_back)
        finally:
            forget()

    async def sleep_async(self, seconds: float, wake: Wake) -> None:
        """Wait on the event loop until the clock has advanced so far or somebody wakes us."""
        woken = threading.Event()  # set in whatever thread wakes us; the loop's own event follows
        bell = _Bell(asyncio.get_running_loop(), woken)
        forget = wake(bell.ring)
        try:
            if not self._passes(seconds, woken):
                take_back = self._begin(seconds, bell.ring)
                try:
                    await bell.heard.wait()
                finally:
                    self._end(take_back)
        finally:
            forget()

    def wait_for_sleepers(self, number: int = 1) -> None:
        """Wait until so many sleep, for a test whose sleepers are in other threads.

        Raises:
            TimeoutError: If that does not happen in a minute of real time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._sleeping >= number, _PATIENCE):
                raise TimeoutError(f"{self._sleeping} sleep by this clock, waited for {number}")

    def _passes(self, seconds: float, woken: threading.Event) -> bool:
        """Note a sleep, and say whether it is over before it began."""
        self.slept.append(seconds)
        if woken.is_set():
            return True
        if not self._auto_advance or not isfinite(seconds):
            return seconds <= 0
        self.advance(max(0.0, seconds))
        return True

    def _begin(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        take_back = self.call_later(seconds, ring)
        with self._changed:
            self._sleeping += 1
            self._changed.notify_all()
        return take_back

    def _end(self, take_back: Callable[[], None]) -> None:
        take_back()
        with self._changed:
            self._sleeping -= 1

    def _next_until(self, end: float) -> Callable[[], None] | None:
        """Move to the next moment at which something is due, or to the end."""
        with self._changed:
            if self._due and self._due[0][0] <= end:
                when, _number, callback = heapq.heappop(self._due)
                self._now = max(self._now, when)
                return callback
            self._now = max(self._now, end)
            return None

    def _forget(self, entry: tuple[float, int, Callable[[], None]]) -> None:
        with self._changed:
            if entry in self._due:
                self._due.remove(entry)
                heapq.heapify(self._due)


class _Bell:
    """Wakes a coroutine from any thread."""

    def __init__(self, loop: AbstractEventLoop, woken: threading.Event) -> None:
        self.heard = asyncio.Event()
        self._loop = loop
        self._woken = woken

    def ring(self) -> None:
        self._woken.set()
        tell(self._loop, self.heard.set)


class Resources(NamedTuple):
    """What a process uses at one moment."""

    blocks: int
    descriptors: int
    threads: int
    tasks: int

    @classmethod
    def now(cls) -> Resources:
        """Count, after collecting garbage; needs a running event loop and `/dev/fd`."""
        gc.collect()
        return cls(
            blocks=sys.getallocatedblocks(),
            descriptors=len(list(Path("/dev/fd").iterdir())),
            threads=threading.active_count(),
            tasks=len(asyncio.all_tasks()),
        )


def assert_steady(turn: Callable[[int], Awaitable[object]], *, warm_up: int, turns: int, blocks: int) -> None:
    """Check that many turns leave nothing behind: memory, descriptors, threads and tasks stay as they were.

    Args:
        turn: Does one turn, on an event loop; it is given the number of the turn.
        warm_up: How many turns fill the caches before anything is counted.
        turns: How many turns are measured.
        blocks: How many blocks of memory may be left over; less than one per turn shows a leak.

    Raises:
        AssertionError: If the process uses more afterwards.
    """

    async def take(count: int) -> Resources:
        for number in range(count):
            await turn(number)
        return Resources.now()

    async def measure() -> tuple[Resources, Resources]:
        return await take(warm_up), await take(turns)

    before, after = asyncio.run(measure())
    steady = (
        after.blocks - before.blocks < blocks
        and (after.descriptors, after.tasks) == (before.descriptors, before.tasks)
        and after.threads <= before.threads + _KEPT_THREADS
    )
    if not steady:
        raise AssertionError(f"{turns} turns left something behind: {before} became {after}")
