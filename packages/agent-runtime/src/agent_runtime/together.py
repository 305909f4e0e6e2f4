"""Several flows at once, as one flow: their events come out as they happen, their results in order.

A caller that waits gets a thread per flow, a caller on an event loop a task per flow; the flows
themselves do not know. It is one step of the outer flow, a stream whose items are the inner events.
"""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent_core.drivers import AsyncEventStream, EventStream
from agent_core.errors import RequestCancelled
from agent_core.io.workers import run_in_worker
from agent_core.steps import CloseStream, Flow, OpenStream, Read, Work, ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

T = TypeVar("T")


class _Outcome(NamedTuple):
    """How one flow ended: with a result, or with what it raised."""

    result: Any = None
    error: BaseException | None = None


_Outcomes = dict[int, _Outcome]
_ENDED = object()  # in a queue of events: one flow more has ended


def run_together(flows: Sequence[Flow[T]], limit: int, cancel: Callable[[], None]) -> Flow[list[T]]:
    """Run the flows beside each other, at most *limit* at a time, and return their results in order.

    When the caller leaves, *cancel* is called, the flows are given the time to end by themselves, and
    `RequestCancelled` is raised with their results as its argument.

    Raises:
        Exception: The first that a flow raised, after all have ended.
    """
    outcomes: _Outcomes = {}
    work: Work[Any] = Work(
        blocking=lambda: _in_threads(flows, limit, outcomes),
        awaitable=lambda: _in_tasks(flows, limit, outcomes),
    )
    read = Read((yield from ask(OpenStream(work))))
    left = False
    while True:
        try:
            items = yield read
            if items is None:
                break
            read.events = [item for item in items if item is not _ENDED]
        except RequestCancelled:
            left, read.events = True, []
            cancel()
    yield CloseStream(read.reader)
    results = yield from _results(flows, outcomes)
    if left:
        raise RequestCancelled(results)
    return results


def _results(flows: Sequence[Flow[T]], outcomes: _Outcomes) -> Flow[list[T]]:
    """Return the results in order; a flow that never began, since the caller left, runs now."""
    failed = next((outcomes[i].error for i in sorted(outcomes) if outcomes[i].error is not None), None)
    if failed is not None:
        raise failed
    results = []
    for index, flow in enumerate(flows):
        results.append(outcomes[index].result if index in outcomes else (yield from flow))
    return results


def _in_threads(flows: Sequence[Flow[Any]], limit: int, outcomes: _Outcomes) -> Iterator[Any]:
    queue: SimpleQueue[Any] = SimpleQueue()
    waiting = list(enumerate(flows))[::-1]

    def start() -> None:
        index, flow = waiting.pop()
        run_in_worker(lambda: _watch(index, flow, queue, outcomes))

    for _ in range(min(limit, len(flows))):
        start()
    running = len(flows)
    while running:
        item = queue.get()
        if item is _ENDED:
            running -= 1
            if waiting:
                start()
        yield item


def _watch(index: int, flow: Flow[Any], queue: SimpleQueue[Any], outcomes: _Outcomes) -> None:
    stream = EventStream(flow)
    try:
        for event in stream:
            queue.put(event)
        outcomes[index] = _Outcome(stream.result)
    except BaseException as error:  # noqa: BLE001 - raised again where the results are wanted
        outcomes[index] = _Outcome(error=error)
    finally:
        queue.put(_ENDED)


async def _in_tasks(flows: Sequence[Flow[Any]], limit: int, outcomes: _Outcomes) -> AsyncIterator[Any]:
    import asyncio

    queue: asyncio.Queue[Any] = asyncio.Queue()
    slots = asyncio.Semaphore(limit)
    watching = [_watch_async(index, flow, queue, outcomes, slots) for index, flow in enumerate(flows)]
    tasks = [asyncio.create_task(watch) for watch in watching]
    running = len(tasks)
    try:
        while running:
            item = await queue.get()
            running -= item is _ENDED
            yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch_async(index: int, flow: Flow[Any], queue: Any, outcomes: _Outcomes, slots: Any) -> None:
    async with slots:
        stream = AsyncEventStream(flow)
        try:
            async for event in stream:
                queue.put_nowait(event)
            outcomes[index] = _Outcome(stream.result)
        except Exception as error:  # noqa: BLE001 - raised again where the results are wanted
            outcomes[index] = _Outcome(error=error)
        except BaseException:  # the caller's task was cancelled; what the flow has is kept
            outcomes[index] = _Outcome(stream.result)
            raise
        finally:
            queue.put_nowait(_ENDED)
