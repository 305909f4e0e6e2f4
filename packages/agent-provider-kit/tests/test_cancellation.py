"""Cancelling requests that are under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from agent_core import RequestCancelled
from agent_provider_kit.cancellation import RunningRequests

if TYPE_CHECKING:
    from agent_provider_kit import HttpResponse


class Closable:
    """A reply of which only the end matters."""

    closed = False

    def close(self) -> None:
        self.closed = True


async def never() -> Any:
    await asyncio.Event().wait()


async def at_once(response: Closable) -> HttpResponse:
    return cast("HttpResponse", response)


def test_a_request_that_waits_for_its_reply_is_cancelled(runner: asyncio.Runner) -> None:
    requests = RunningRequests()

    async def wait() -> None:
        with requests.watch("r1") as running:
            requests.cancel("r1")
            await running.reach(never())

    with pytest.raises(RequestCancelled):
        runner.run(wait())


def test_a_request_that_reads_its_reply_has_it_closed(runner: asyncio.Runner) -> None:
    requests, response = RunningRequests(), Closable()

    async def read() -> None:
        with requests.watch("r1") as running:
            await running.reach(at_once(response))
            requests.cancel("r1")
            await asyncio.sleep(0)
            assert response.closed
            raise ConnectionError("as the read would")

    with pytest.raises(RequestCancelled):
        runner.run(read())


def test_a_cancellation_in_the_moment_in_which_the_reply_begins_is_not_lost(runner: asyncio.Runner) -> None:
    requests, response = RunningRequests(), Closable()

    async def reach() -> None:
        arriving: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def wait() -> None:
            with requests.watch("r1") as running:
                await running.reach(arriving)
                await never()

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        arriving.get_loop().call_soon(arriving.set_result, response)
        requests.cancel("r1")  # in the same turn of the loop, before the waiting task gets its own
        await waiting

    with pytest.raises(RequestCancelled):
        runner.run(asyncio.wait_for(reach(), 60))
    assert response.closed


def test_a_request_that_was_complete_in_time_stays_so(runner: asyncio.Runner) -> None:
    requests, response = RunningRequests(), Closable()

    async def read() -> str:
        with requests.watch("r1") as running:
            await running.reach(at_once(response))
            requests.cancel("r1")
            await asyncio.sleep(0)
        return "complete"

    assert runner.run(read()) == "complete"


def test_what_a_request_fails_with_by_itself_is_left_as_it_is(runner: asyncio.Runner) -> None:
    requests = RunningRequests()

    async def fail() -> Any:
        raise TimeoutError("no reply")

    async def wait() -> None:
        with requests.watch("r1") as running:
            await running.reach(fail())

    with pytest.raises(TimeoutError, match="no reply"):
        runner.run(wait())


def test_a_cancellation_may_come_just_before_its_request(runner: asyncio.Runner) -> None:
    requests = RunningRequests()
    requests.cancel("r1")

    async def wait() -> None:
        with requests.watch("r1") as running:
            await running.reach(never())

    with pytest.raises(RequestCancelled):
        runner.run(wait())


def test_a_cancellation_counts_once(runner: asyncio.Runner) -> None:
    requests, response = RunningRequests(), Closable()
    requests.cancel("r1")

    async def wait(reply: Any) -> None:
        with requests.watch("r1") as running:
            await running.reach(reply)
            await asyncio.sleep(0)

    with pytest.raises(RequestCancelled):
        runner.run(wait(never()))
    runner.run(wait(at_once(response)))


def test_cancelling_unknown_requests_costs_little(runner: asyncio.Runner) -> None:
    requests = RunningRequests()

    for number in range(10_000):
        requests.cancel(f"r{number}")

    assert len(requests._early) <= 256


def test_a_request_without_an_id_cannot_be_cancelled_but_is_closed(runner: asyncio.Runner) -> None:
    requests, response = RunningRequests(), Closable()

    async def read() -> None:
        with requests.watch(None) as running:
            await running.reach(at_once(response))

    runner.run(read())

    assert response.closed
    assert requests._running == {}


def test_two_requests_of_one_id_do_not_forget_each_other(runner: asyncio.Runner) -> None:
    requests = RunningRequests()

    async def both() -> None:
        first = requests.watch("same")
        with first, requests.watch("same") as second:
            pass
        assert requests._running == {}
        with requests.watch("same") as second:
            first.__exit__(None)
            requests.cancel("same")
            await second.reach(never())

    with pytest.raises(RequestCancelled):
        runner.run(both())


def test_a_cancellation_after_the_loop_has_ended_does_no_harm() -> None:
    requests = RunningRequests()

    async def enter() -> Any:
        running = requests.watch("r1")
        running.__enter__()
        return running

    asyncio.run(enter())

    requests.cancel("r1")
