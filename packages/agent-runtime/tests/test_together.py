"""Several flows at once: their order, their limit, their failures, and leaving them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.drivers import AsyncEventStream, EventStream
from agent_core.errors import RequestCancelled
from agent_core.steps import Emit, Run, Work, ask, run_blocking
from agent_runtime.parallel import run_together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_core.steps import Flow

DRIVERS = ("waiting", "awaiting")
PATIENCE = 60.0  # seconds until a test that would hang fails


def drive(flow: Flow[Any], driver: str) -> tuple[list[Any], Any]:
    """Return the events of a flow and what it came to."""
    if driver == "waiting":
        stream = EventStream(flow)
        return list(stream), stream.result

    async def watch() -> tuple[list[Any], Any]:
        stream = AsyncEventStream(flow)
        events = [event async for event in stream]
        return events, stream.result

    return asyncio.run(watch())


def never() -> None:
    raise AssertionError("nobody left")


def telling(name: str, count: int) -> Flow[str]:
    for number in range(count):
        yield Emit([(name, number)])
    return name


def failing(name: str, count: int = 0) -> Flow[str]:
    yield from telling(name, count)
    raise ValueError(name)


@pytest.mark.parametrize("driver", DRIVERS)
@settings(max_examples=30)
@given(counts=st.lists(st.integers(0, 4), max_size=6), limit=st.integers(1, 7))
def test_results_stand_in_order_and_the_events_of_each_flow_keep_theirs(
    driver: str, counts: list[int], limit: int
) -> None:
    flows = [telling(str(place), count) for place, count in enumerate(counts)]

    events, results = drive(run_together(flows, limit, never), driver)

    assert results == [str(place) for place in range(len(counts))]
    for place, count in enumerate(counts):
        assert [number for name, number in events if name == str(place)] == list(range(count))
    assert len(events) == sum(counts)


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_last_to_end_does_not_come_last(driver: str) -> None:
    last_is_done = threading.Event()

    def wait(_name: str) -> Flow[str]:
        yield from run_blocking(lambda: last_is_done.wait(PATIENCE))
        return "first"

    def finish() -> Flow[str]:
        yield from telling("second", 1)
        last_is_done.set()
        return "second"

    _, results = drive(run_together([wait("first"), finish()], 2, never), driver)

    assert results == ["first", "second"]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_more_than_the_limit_run_at_once_and_the_limit_is_reached(driver: str, limit: int) -> None:
    meeting = threading.Barrier(limit, timeout=PATIENCE)
    lock = threading.Lock()
    running, most = 0, 0

    def meet() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait()
        with lock:
            running -= 1

    def work() -> Flow[None]:
        yield from run_blocking(meet)

    drive(run_together([work() for _ in range(limit * 3)], limit, never), driver)

    assert most == limit


@pytest.mark.parametrize("driver", DRIVERS)
def test_flows_that_wait_on_the_event_loop_run_at_once(driver: str) -> None:
    order: list[str] = []
    bells: dict[str, Any] = {}

    async def wait_for(own: str, other: str) -> None:
        bells.setdefault(own, asyncio.Event()).set()
        await asyncio.wait_for(bells.setdefault(other, asyncio.Event()).wait(), PATIENCE)
        order.append(own)

    def meeting(own: str, other: str) -> Flow[str]:
        yield from ask(Run(Work(awaitable=lambda: wait_for(own, other))))
        return own

    _, results = drive(run_together([meeting("a", "b"), meeting("b", "a")], 2, never), driver)

    assert results == ["a", "b"] and sorted(order) == ["a", "b"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_a_flow_raises_comes_out_after_all_have_ended(driver: str) -> None:
    ended: list[str] = []

    def last() -> Flow[str]:
        yield from telling("last", 3)
        ended.append("last")
        return "last"

    with pytest.raises(ValueError, match="one"):
        drive(run_together([telling("zero", 1), failing("one"), failing("two"), last()], 1, never), driver)

    assert ended == ["last"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_of_two_that_fail_the_first_in_order_is_raised(driver: str) -> None:
    second_failed = threading.Event()

    def slow() -> Flow[str]:
        yield from run_blocking(lambda: second_failed.wait(PATIENCE))
        raise ValueError("first")

    def fast() -> Flow[str]:
        yield Emit(["going"])
        second_failed.set()
        raise ValueError("second")

    with pytest.raises(ValueError, match="first"):
        drive(run_together([slow(), fast()], 2, never), driver)


def cancellable(name: str, token: threading.Event, seen: list[str]) -> Flow[str]:
    """Tell something, wait for the token, and end by itself."""
    yield Emit([name])
    yield from run_blocking(lambda: token.wait(PATIENCE))
    seen.append(name)
    return f"{name} was stopped"


def outer(flows: Sequence[Flow[Any]], limit: int, cancel: Callable[[], None]) -> Flow[Any]:
    """Return what the flows came to although the caller left."""
    try:
        return (yield from run_together(flows, limit, cancel))
    except RequestCancelled as left:
        return ("left", left.args[0])


def leave_after_one_event(flow: Flow[Any], driver: str) -> Any:
    if driver == "waiting":
        with EventStream(flow) as stream:
            next(iter(stream))
        return stream.result

    async def watch() -> Any:
        async with AsyncEventStream(flow) as stream:
            await stream.__anext__()
        return stream.result

    return asyncio.run(watch())


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_when_the_caller_leaves_all_are_cancelled_and_their_results_are_kept(driver: str, limit: int) -> None:
    token, seen = threading.Event(), list[str]()
    flows = [cancellable(name, token, seen) for name in "abc"]

    result = leave_after_one_event(outer(flows, limit, token.set), driver)

    assert result == ("left", ["a was stopped", "b was stopped", "c was stopped"])
    assert sorted(seen) == ["a", "b", "c"]


async def cancel_while_two_of_three_hang() -> tuple[Any, list[str], int]:
    """Return what three flows came to, who noticed, and how many tasks are left."""
    begun, cancelled, noticed = asyncio.Event(), asyncio.Event(), list[str]()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    def hanging(name: str) -> Flow[str]:
        if cancelled.is_set():
            return f"{name} never began"
        try:
            yield from ask(Run(Work(awaitable=hang)))
        except RequestCancelled:
            noticed.append(name)
        return f"{name} was stopped"

    stream = AsyncEventStream(outer([hanging("a"), hanging("b"), hanging("c")], 2, cancelled.set))
    task = asyncio.create_task(stream.__anext__())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return stream.result, noticed, len(asyncio.all_tasks()) - 1


def test_cancelling_the_task_ends_all_and_keeps_their_results() -> None:
    async def in_time() -> tuple[Any, list[str], int]:
        async with asyncio.timeout(PATIENCE):
            return await cancel_while_two_of_three_hang()

    result, noticed, tasks_left = asyncio.run(in_time())

    assert result == ("left", ["a was stopped", "b was stopped", "c never began"])
    assert noticed == ["a", "b"] and tasks_left == 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_nothing_to_run_is_nothing_to_wait_for(driver: str) -> None:
    assert drive(run_together([], 3, never), driver) == ([], [])
