"""Time as a parameter: runs wait and measure by a clock that tests can replace.

Nothing in this package asks the computer what time it is, except `SystemClock`. A pause is a step of a
flow like any other, so that it blocks a thread or waits on an event loop, whichever its driver does, and
ends at once when the run is cancelled. `agent_runtime.testing.ManualClock` is the clock for tests.
"""

from __future__ import annotations

import heapq
import threading
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from agent_core import lazy
from agent_core.errors import RequestCancelled
from agent_core.log import Logger
from agent_core.steps import Flow, Run, Work, ask

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from agent_core import Cancellation

_log = Logger("agent_runtime.clock")
_IDLE = 5.0  # seconds that the thread of the alarms waits for the next one before it ends
_FEW = 64  # so many alarms that were taken back are not worth tidying up


class Clock(Protocol):
    """What runs need of time."""

    def now(self) -> float:
        """Return seconds since some moment; never goes back."""

    def sleep(self, seconds: float, wake: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
        """Wait, in this thread; *wake* takes what wakes us early and returns how to take that back."""

    async def sleep_async(
        self, seconds: float, wake: Callable[[Callable[[], None]], Callable[[], None]]
    ) -> None:
        """Wait, on the running event loop."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call *callback* after that time, in any thread; return how to take it back.

        All alarms may share one thread, so a callback must not take long: it sets a flag or cancels
        something. One that is taken back at the very moment it is due may be called nevertheless.
        """


class SystemClock:
    """The computer's own clock."""

    def __init__(self) -> None:
        self._alarms = _Alarms()

    def now(self) -> float:
        """Return seconds of the monotonic clock, which no change of the wall clock moves."""
        return time.monotonic()

    def sleep(self, seconds: float, wake: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
        """Wait in this thread until the time is over or somebody wakes us."""
        woken = threading.Event()
        forget = wake(woken.set)
        try:
            woken.wait(min(seconds, threading.TIMEOUT_MAX))
        finally:
            forget()

    async def sleep_async(
        self, seconds: float, wake: Callable[[Callable[[], None]], Callable[[], None]]
    ) -> None:
        """Wait on the event loop until the time is over or somebody wakes us."""
        loop, woken = lazy.asyncio.get_running_loop(), lazy.asyncio.Event()
        forget = wake(lambda: tell(loop, woken.set))
        try:
            async with lazy.asyncio.timeout(seconds):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            forget()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call *callback* after that time, in the thread that watches all alarms."""
        return self._alarms.set(time.monotonic() + seconds, callback)


def tell(loop: AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Call *callback* on an event loop, from any thread; a loop that is over needs to know nothing."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


class _Alarm:
    """One callback and its moment; forgetting it drops the callback and leaves the rest for later."""

    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback


class _Alarms:
    """All alarms of a clock in one thread, which begins with the first and ends some time after the last."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, _Alarm]] = []
        self._forgotten = 0
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def set(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        alarm = _Alarm(when, callback)
        with self._changed:
            heapq.heappush(self._due, (when, next(self._numbers), alarm))
            # Not a flag of ours: a process that was forked off has no threads, and is_alive() knows it.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="agent-runtime-alarms", daemon=True)
                self._thread.start()
            elif self._due[0][2] is alarm:  # the thread sleeps until a later one
                self._changed.notify()
        return lambda: self._forget(alarm)

    def _forget(self, alarm: _Alarm) -> None:
        with self._changed:
            if alarm.callback is None:
                return
            alarm.callback = None
            self._forgotten += 1
            if self._forgotten > _FEW and self._forgotten * 2 > len(self._due):
                self._due = [entry for entry in self._due if entry[2].callback is not None]
                heapq.heapify(self._due)
                self._forgotten = 0

    def _watch(self) -> None:
        while True:
            with self._changed:
                callback = self._next()
                if callback is None and not self._due:
                    self._thread = None
                    return
            if callback is not None:
                _ring(callback)

    def _next(self) -> Callable[[], None] | None:
        """Return a callback that is due, or None after waiting for what may come."""
        while self._due and self._due[0][2].callback is None:
            heapq.heappop(self._due)
            self._forgotten -= 1
        wait = self._due[0][0] - time.monotonic() if self._due else _IDLE
        if wait > 0:
            self._changed.wait(min(wait, threading.TIMEOUT_MAX))
            return None
        alarm = heapq.heappop(self._due)[2]
        callback, alarm.callback = alarm.callback, None  # so that taking it back later counts nothing
        return callback


def _ring(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception as error:  # the thread belongs to all alarms, and must live on
        _log.error("alarm_failed", error=repr(error))


SYSTEM_CLOCK = SystemClock()


def pause(clock: Clock, seconds: float, cancellation: Cancellation | None) -> Flow[None]:
    """Wait as part of a flow.

    Raises:
        RequestCancelled: As soon as the token is cancelled, if there is one.
    """

    def wake(callback: Callable[[], None]) -> Callable[[], None]:
        if cancellation is None:
            return lambda: None
        key = cancellation.add_callback(callback)
        return lambda: cancellation.remove_callback(key)

    work: Work[Any] = Work(
        blocking=lambda: clock.sleep(seconds, wake), awaitable=lambda: clock.sleep_async(seconds, wake)
    )
    yield from ask(Run(work))
    if cancellation is not None and cancellation.cancelled:
        raise RequestCancelled
