"""Several flows at once, as one flow: their events come out as they happen, their results in order.

A caller that waits gets a thread per flow, a caller on an event loop a task per flow; the flows
themselves do not know. It is one step of the outer flow, a stream whose items are the inner events.
"""

from __future__ import annotations

from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from agent_core import lazy
from agent_core.drivers import AsyncEventStream, EventStream
from agent_core.errors import RequestCancelled
from agent_core.io.workers import run_in_worker
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Work, ask

if TYPE_CHECKING:
    from asyncio import Queue
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

T = TypeVar("T")


class _Outcome(NamedTuple):
    """How one flow ended: with a result, or with what it raised."""

    result: Any = None
    error: BaseException | None = None


_Outcomes = dict[int, _Outcome]


class _Ended(NamedTuple):
    """In a queue of events: a flow has ended, and its outcome is there."""

    place: int


def run_together(
    flows: Sequence[Flow[T]],
    limit: int,
    cancel: Callable[[], None],
    ended: Callable[[int, T], Flow[None]] | None = None,
) -> Flow[list[T]]:
    """Run the flows at the same time, at most *limit* of them, and return their results in order.

    When the caller leaves, *cancel* is called, the flows are given the time to end by themselves, and
    `RequestCancelled` is raised with their results as its argument.

    Args:
        ended: Run as part of this flow as soon as one of the flows has its result, while the others go on:
            never two of them at once, so that it may change what the flows only read. If it raises, the
            others are cancelled.

    Raises:
        Exception: The first that a flow or *ended* raised, after all flows have ended.
    """
    group = _Group(flows, limit, cancel, ended)
    yield from group.watch()
    results = yield from group.results()
    if group.left:
        raise RequestCancelled(results)
    return results


class _Group(Generic[T]):
    """The flows that run at the same time, seen from the flow that waits for them.

    Attributes:
        left: Whether the caller has left.
    """

    def __init__(
        self,
        flows: Sequence[Flow[T]],
        limit: int,
        cancel: Callable[[], None],
        ended: Callable[[int, T], Flow[None]] | None,
    ) -> None:
        self.left = False
        self._flows = flows
        self._limit = limit
        self._cancel = cancel
        self._ended = ended
        self._outcomes: _Outcomes = {}
        self._settled: set[int] = set()
        self._problem: Exception | None = None

    def watch(self) -> Flow[None]:
        """Show the flows' events until all have ended."""
        flows, limit, outcomes = self._flows, self._limit, self._outcomes
        work: Work[Any] = Work(
            blocking=lambda: _in_threads(flows, limit, outcomes),
            awaitable=lambda: _in_tasks(flows, limit, outcomes),
        )
        read = Read((yield from ask(OpenStream(work))))
        while True:
            try:
                items = yield read
            except RequestCancelled:
                read.events = []
                self._leave()
                continue
            if items is None:
                break
            read.events = yield from self._events(items)
        yield CloseStream(read.reader)

    def results(self) -> Flow[list[T]]:
        """Return the results in order; a flow that never began, since the caller left, runs now."""
        failed = (self._outcomes[index].error for index in sorted(self._outcomes))
        problem = next((error for error in failed if error is not None), None)
        results = []
        for index, flow in enumerate(self._flows):
            if index not in self._outcomes and problem is None:
                self._outcomes[index] = _Outcome((yield from flow))
            if index in self._outcomes:
                yield from self._settle(index)
                results.append(self._outcomes[index].result)
        if (problem := problem or self._problem) is not None:
            raise problem
        return results

    def _events(self, items: Sequence[Any]) -> Flow[list[Any]]:
        """Return the events that are to be shown next, after everything up to the last end was dealt with."""
        events: list[Any] = []
        for item in items:
            if not isinstance(item, _Ended):
                events.append(item)
            elif self._ended is not None:
                if events:
                    yield from self._show(events)
                    events = []
                yield from self._settle(item.place)
        return events

    def _settle(self, index: int) -> Flow[None]:
        """Let the owner of the flows have a result, once."""
        outcome = self._outcomes[index]
        if self._ended is None or outcome.error is not None or index in self._settled:
            return
        self._settled.add(index)
        try:
            yield from self._ended(index, outcome.result)
        except RequestCancelled:
            self._leave()
        except Exception as error:  # raised when all flows have ended
            self._problem = self._problem or error
            self._cancel()

    def _show(self, events: list[Any]) -> Flow[None]:
        try:
            yield Emit(events)
        except RequestCancelled:
            self._leave()

    def _leave(self) -> None:
        self.left = True
        self._cancel()


def _in_threads(flows: Sequence[Flow[Any]], limit: int, outcomes: _Outcomes) -> Iterator[Any]:
    queue: SimpleQueue[Any] = SimpleQueue()
    waiting = list(enumerate(flows))[::-1]

    def start() -> None:
        index, flow = waiting.pop()
        # Each thread sees the caller's context variables, in a copy of its own: no two may share one.
        run_in_worker(partial(copy_context().run, _watch, index, flow, queue, outcomes))

    for _ in range(min(limit, len(flows))):
        start()
    running = len(flows)
    while running:
        item = queue.get()
        if isinstance(item, _Ended):
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
    except BaseException as error:  # raised again where the results are wanted
        outcomes[index] = _Outcome(error=error)
    finally:
        queue.put(_Ended(index))


async def _in_tasks(flows: Sequence[Flow[Any]], limit: int, outcomes: _Outcomes) -> AsyncIterator[Any]:
    queue: Queue[Any] = lazy.asyncio.Queue()
    slots = lazy.asyncio.Semaphore(limit)
    watching = [_watch_async(index, flow, queue, outcomes, slots) for index, flow in enumerate(flows)]
    tasks = [lazy.asyncio.create_task(watch) for watch in watching]
    running = len(tasks)
    try:
        while running:
            item = await queue.get()
            running -= isinstance(item, _Ended)
            yield item
    finally:
        for task in tasks:
            task.cancel()
        await lazy.asyncio.gather(*tasks, return_exceptions=True)


async def _watch_async(index: int, flow: Flow[Any], queue: Any, outcomes: _Outcomes, slots: Any) -> None:
    async with slots:
        stream = AsyncEventStream(flow)
        try:
            async for event in stream:
                queue.put_nowait(event)
            outcomes[index] = _Outcome(stream.result)
        except Exception as error:  # raised again where the results are wanted
            outcomes[index] = _Outcome(error=error)
        except BaseException:  # the caller's task was cancelled; what the flow has is kept
            outcomes[index] = _Outcome(stream.result)
            raise
        finally:
            queue.put_nowait(_Ended(index))
