"""Clocks: waiting, being woken, alarms; by the computer's time and by a test's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core import Cancellation
from agent_core.drivers import call, call_async
from agent_core.errors import ArgumentError, RequestCancelled
from agent_runtime.clock import SYSTEM_CLOCK, Clock, SystemClock, pause
from agent_runtime.testing import ManualClock

Drive = Callable[[Any], Any]
DRIVERS: list[Drive] = [call, lambda flow: asyncio.run(call_async(flow))]
PATIENCE = 60.0


@pytest.fixture(params=DRIVERS, ids=["call", "call_async"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """Runs a flow to its end, in this thread or on an event loop."""
    driver: Drive = request.param
    return driver


def never(_callback: Callable[[], None]) -> Callable[[], None]:
    """Nobody wakes the sleeper."""
    return lambda: None


class Sleeping:
    """A pause in a thread of its own, so that a test can do something meanwhile."""

    def __init__(self, drive: Drive, clock: Clock, seconds: float, token: Cancellation | None = None) -> None:
        self.outcome: Any = None
        self._flow = pause(clock, seconds, token)
        self._drive = drive
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.outcome = self._drive(self._flow) or "slept"
        except RequestCancelled:
            self.outcome = "cancelled"

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> Any:
        self._thread.join(PATIENCE)
        assert self.is_over
        return self.outcome


def test_a_pause_ends_when_the_clock_has_advanced_so_far(drive: Drive) -> None:
    clock = ManualClock()
    sleeping = Sleeping(drive, clock, 10.0, Cancellation())
    clock.wait_for_sleepers()

    clock.advance(9.9)
    assert not sleeping.is_over
    clock.advance(0.1)

    assert sleeping.join() == "slept"
    assert (clock.slept, clock.now()) == ([10.0], 10.0)


@pytest.mark.parametrize("make", [ManualClock, SystemClock])
def test_cancelling_ends_a_pause_at_once(drive: Drive, make: type[ManualClock | SystemClock]) -> None:
    clock, token = make(), Cancellation()
    sleeping = Sleeping(drive, clock, 3600.0, token)
    if isinstance(clock, ManualClock):
        clock.wait_for_sleepers()

    token.cancel()

    assert sleeping.join() == "cancelled"
    assert not token._callbacks


@pytest.mark.parametrize("make", [ManualClock, SystemClock])
@pytest.mark.parametrize("seconds", [0.0, 3600.0, inf])
def test_a_pause_does_not_begin_if_the_token_is_cancelled(
    drive: Drive, make: type[ManualClock | SystemClock], seconds: float
) -> None:
    clock, token = make(), Cancellation()
    token.cancel()

    with pytest.raises(RequestCancelled):
        drive(pause(clock, seconds, token))


@pytest.mark.parametrize("clock", [ManualClock(), SYSTEM_CLOCK], ids=["manual", "system"])
@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_pause_of_no_length_is_over_at_once(drive: Drive, clock: Clock, seconds: float) -> None:
    drive(pause(clock, seconds, None))


def test_the_system_clock_wakes_by_itself(drive: Drive) -> None:
    before = SYSTEM_CLOCK.now()

    drive(pause(SYSTEM_CLOCK, 0.001, Cancellation()))

    assert SYSTEM_CLOCK.now() - before >= 0.001


@pytest.mark.parametrize("auto_advance", [False, True])
def test_a_sleep_without_an_end_waits_until_it_is_woken(drive: Drive, auto_advance: bool) -> None:
    clock, token = ManualClock(auto_advance=auto_advance), Cancellation()
    sleeping = Sleeping(drive, clock, inf, token)
    clock.wait_for_sleepers()

    token.cancel()

    assert sleeping.join() == "cancelled"
    assert clock.now() == 0.0


def test_the_system_clock_sleeps_without_an_end(drive: Drive) -> None:
    token = Cancellation()
    sleeping = Sleeping(drive, SYSTEM_CLOCK, inf, token)

    token.cancel()

    assert sleeping.join() == "cancelled"


def test_a_clock_that_advances_by_itself_takes_no_time(drive: Drive) -> None:
    clock = ManualClock(100.0, auto_advance=True)

    drive(pause(clock, 3600.0, None))
    drive(pause(clock, 0.5, Cancellation()))

    assert (clock.slept, clock.now()) == ([3600.0, 0.5], 3700.5)


def test_a_pause_that_is_cancelled_before_it_begins_does_not_move_the_clock(drive: Drive) -> None:
    clock, token = ManualClock(auto_advance=True), Cancellation()
    token.cancel()

    with pytest.raises(RequestCancelled):
        drive(pause(clock, 60.0, token))

    assert clock.now() == 0.0


def test_alarms_ring_during_a_sleep_that_advances_the_clock() -> None:
    clock, token = ManualClock(auto_advance=True), Cancellation()
    clock.call_later(10.0, token.cancel)

    with pytest.raises(RequestCancelled):
        call(pause(clock, 60.0, token))


def test_a_task_that_is_cancelled_does_not_sleep_on() -> None:
    clock, token = ManualClock(), Cancellation()

    async def cancel() -> None:
        task = asyncio.ensure_future(call_async(pause(clock, 10.0, token)))
        await asyncio.to_thread(clock.wait_for_sleepers)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    assert not token._callbacks
    assert not clock._due and clock._sleeping == 0


def test_waking_a_sleeper_whose_loop_is_over_is_no_error() -> None:
    wakers: list[Callable[[], None]] = []

    def wake(callback: Callable[[], None]) -> Callable[[], None]:
        wakers.append(callback)
        return lambda: None

    asyncio.run(SYSTEM_CLOCK.sleep_async(0.0, wake))
    asyncio.run(ManualClock().sleep_async(0.0, wake))

    for waker in wakers:
        waker()
    assert len(wakers) == 2


@given(st.lists(st.floats(0, 100), max_size=20), st.lists(st.floats(0, 50), max_size=8))
def test_alarms_ring_in_order_and_at_their_own_moment(alarms: list[float], steps: list[float]) -> None:
    clock, rung = ManualClock(), list[tuple[float, float]]()

    for due in alarms:
        clock.call_later(due, lambda due=due: rung.append((due, clock.now())))  # type: ignore[misc]
    for step in steps:
        clock.advance(step)

    assert [due for due, _ in rung] == sorted(due for due in alarms if due <= clock.now())[: len(rung)]
    assert all(due == moment for due, moment in rung)
    assert len(rung) == (sum(due <= clock.now() for due in alarms) if steps else 0)


def test_an_alarm_may_set_another_one() -> None:
    clock, rung = ManualClock(), list[float]()

    def ring() -> None:
        rung.append(clock.now())
        clock.call_later(10.0, ring)

    clock.call_later(10.0, ring)
    clock.advance(35.0)

    assert (rung, clock.now()) == ([10.0, 20.0, 30.0], 35.0)


def test_an_alarm_that_is_taken_back_does_not_ring() -> None:
    clock, rung = ManualClock(), list[str]()
    first = clock.call_later(1.0, lambda: rung.append("first"))
    clock.call_later(1.0, lambda: rung.append("second"))

    first()
    first()
    clock.advance(1.0)

    assert rung == ["second"]


@pytest.mark.parametrize("seconds", [-0.1, inf, float("nan")])
def test_a_clock_goes_neither_back_nor_to_the_end_of_time(seconds: float) -> None:
    clock = ManualClock(5.0)

    with pytest.raises(ArgumentError, match="advances by 0 seconds or more"):
        clock.advance(seconds)

    assert clock.now() == 5.0


def test_the_system_clock_rings_alarms_in_order() -> None:
    clock, rung, done = SystemClock(), list[str](), threading.Event()

    clock.call_later(0.6, done.set)
    clock.call_later(0.3, lambda: rung.append("second"))
    clock.call_later(0.0, lambda: rung.append("first"))

    assert done.wait(PATIENCE)
    assert rung == ["first", "second"]


def test_an_earlier_alarm_rings_while_the_clock_waits_for_a_later_one() -> None:
    clock = SystemClock()
    clock.call_later(3600.0, lambda: None)

    for _ in range(50):  # somewhere among these the thread has fallen asleep until the late one
        rung = threading.Event()
        clock.call_later(0.0, rung.set)
        assert rung.wait(PATIENCE)


def test_an_alarm_that_fails_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    clock, done = SystemClock(), threading.Event()

    def fail() -> None:
        raise ValueError("rang wrong")

    clock.call_later(0.0, fail)
    clock.call_later(0.001, done.set)

    assert done.wait(PATIENCE)
    assert "rang wrong" in caplog.text


def test_an_alarm_of_the_system_clock_can_be_taken_back() -> None:
    clock, rung, busy, go, done = SystemClock(), list[str](), *(threading.Event() for _ in range(3))

    def block() -> None:  # so that the next alarm cannot ring before it is taken back
        busy.set()
        go.wait(PATIENCE)

    clock.call_later(0.0, block)
    assert busy.wait(PATIENCE)
    take_back = clock.call_later(0.0, lambda: rung.append("taken back"))
    take_back()
    clock.call_later(0.0, done.set)
    go.set()

    assert done.wait(PATIENCE)
    assert rung == []


def test_taking_back_an_alarm_that_has_rung_does_nothing() -> None:
    clock, done, again = SystemClock(), threading.Event(), threading.Event()
    take_back = clock.call_later(0.0, done.set)
    assert done.wait(PATIENCE)

    take_back()

    assert clock._alarms._forgotten == 0
    clock.call_later(0.0, again.set)
    assert again.wait(PATIENCE)


def test_the_thread_of_the_alarms_ends_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_runtime.clock._IDLE", 0.001)
    clock, threads, rung = SystemClock(), list[threading.Thread](), threading.Semaphore(0)

    def ring() -> None:
        threads.append(threading.current_thread())
        rung.release()

    for _ in range(2):
        clock.call_later(0.0, ring)
        assert rung.acquire(timeout=PATIENCE)
        threads[-1].join(PATIENCE)

    assert threads[0] is not threads[1]
    assert not any(thread.is_alive() for thread in threads)


def test_alarms_that_were_taken_back_do_not_pile_up() -> None:
    clock, done = SystemClock(), threading.Event()
    clock.call_later(3600.0, done.set)

    for _ in range(10_000):
        clock.call_later(7200.0, done.set)()

    assert len(clock._alarms._due) < 200


def test_an_alarm_for_the_end_of_time_can_be_set() -> None:
    clock, done = SystemClock(), threading.Event()

    clock.call_later(inf, lambda: None)
    clock.call_later(0.0, done.set)

    assert done.wait(PATIENCE)


def test_nobody_sleeping_is_said_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_runtime.testing._PATIENCE", 0.0)

    with pytest.raises(TimeoutError, match="0 sleep by this clock, waited for 2"):
        ManualClock().wait_for_sleepers(2)


def test_a_sleeper_is_woken_without_a_token() -> None:
    clock = ManualClock(auto_advance=True)

    clock.sleep(2.0, never)

    assert clock.now() == 2.0
