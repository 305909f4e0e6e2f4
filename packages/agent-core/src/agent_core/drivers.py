"""The only loops that know about calling styles.

A flow may be watched (its events come out as they happen) or simply run to its end; both exist for
callers that wait and for callers on an event loop. Whatever ends it early (the caller closes the
stream, presses Ctrl-C, cancels its task), the flow receives `RequestCancelled` and gets the chance
to finish what it has; its result is then still found on the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agent_core.errors import RequestCancelled
from agent_core.io import SyncIO
from agent_core.log import get_logger
from agent_core.steps import Emit, Flow, Read, relay

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
    from types import TracebackType
    from typing import Self

    from agent_core.io.async_io import AsyncIO

R = TypeVar("R")
_log = get_logger("drivers")


class _Outcome(Generic[R]):
    """Where a driver leaves what its flow came to."""

    __slots__ = ("result",)

    def __init__(self) -> None:
        self.result: R | None = None


class EventStream(Generic[R]):
    """The events of a request, as an iterator.

    Leaving early keeps what was produced: after `close()`, or after a ``with`` block, `result` has
    the outcome up to then.
    """

    def __init__(self, flow: Flow[R], io: SyncIO | None = None) -> None:
        self._outcome: _Outcome[R] = _Outcome()
        # Not a method of ours: a stream that is simply dropped must end at once, not in some later
        # garbage collection, and so its generator must not refer to it.
        self._events = _drive(flow, io or SyncIO(), self._outcome)

    @property
    def result(self) -> R | None:
        """What the request came to, once it is over; None before, and if nothing could be kept."""
        return self._outcome.result

    def __iter__(self) -> Iterator[Any]:
        return self._events  # the generator itself, so that a loop over it pays for no layer more

    def __next__(self) -> Any:
        return next(self._events)

    def close(self) -> None:
        """End the request now and keep what it produced."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _drive(flow: Flow[R], io: SyncIO, outcome: _Outcome[R]) -> Generator[Any, None, None]:
    send = flow.send  # looked up once: this runs for every chunk
    resume: Any = send
    value: Any = None
    try:
        while True:
            step = resume(value)
            kind = step.__class__
            resume, value = send, None
            try:
                if kind is Read:  # the hot path: one step per chunk
                    yield from step.events
                    step.check()
                    value = step.reader.read()
                elif kind is Emit:
                    yield from step.events
                else:
                    value = io.perform(step)
            except (Exception, RequestCancelled) as error:  # the flow decides what it means
                resume, value = flow.throw, error
    except StopIteration as done:
        outcome.result = done.value
    except BaseException as reason:
        if _left_early(flow, reason):
            outcome.result = _wind_down(flow, io)
        raise
    finally:
        flow.close()
        io.close()


class AsyncEventStream(Generic[R]):
    """The events of a request, as an async iterator; see `EventStream`."""

    def __init__(self, flow: Flow[R], io: AsyncIO | None = None) -> None:
        from agent_core.io.async_io import AsyncIO  # it loads asyncio, which callers that wait do without

        self._outcome: _Outcome[R] = _Outcome()
        self._events = _drive_async(flow, io or AsyncIO(), self._outcome)

    @property
    def result(self) -> R | None:
        """What the request came to, once it is over; None before, and if nothing could be kept."""
        return self._outcome.result

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._events

    async def __anext__(self) -> Any:
        return await self._events.__anext__()

    async def aclose(self) -> None:
        """End the request now and keep what it produced."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _drive_async(flow: Flow[R], io: AsyncIO, outcome: _Outcome[R]) -> AsyncGenerator[Any, None]:
    send = flow.send  # looked up once: this runs for every chunk
    resume: Any = send
    value: Any = None
    try:
        while True:
            step = resume(value)
            kind = step.__class__
            resume, value = send, None
            try:
                if kind is Read or kind is Emit:
                    for event in step.events:
                        yield event
                if kind is Read:
                    step.check()
                    value = await step.reader.read()
                elif kind is not Emit:
                    value = await io.perform(step)
            except (Exception, RequestCancelled) as error:  # the flow decides what it means
                resume, value = flow.throw, error
    except StopIteration as done:
        outcome.result = done.value
    except BaseException as reason:
        if _left_early(flow, reason):
            outcome.result = await _wind_down_async(flow, io)
        raise
    finally:
        flow.close()
        await io.close()


def call(flow: Flow[R]) -> R:
    """Run the flow to its end and return its result; nobody watches."""
    stream = EventStream(flow)
    for _ in stream:
        pass
    return cast("R", stream.result)


async def call_async(flow: Flow[R]) -> R:
    """Run the flow to its end on the event loop and return its result."""
    stream = AsyncEventStream(flow)
    async for _ in stream:
        pass
    return cast("R", stream.result)


def _left_early(flow: Flow[Any], reason: BaseException) -> bool:
    # Frames tell a generator that waits from one that has ended.
    return not isinstance(reason, Exception) and getattr(flow, "gi_frame", None) is not None


def _wind_down(flow: Flow[R], io: SyncIO) -> R | None:
    rest = EventStream(_leaving(flow), io)
    try:
        for _ in rest:
            pass
    except BaseException as error:  # the reason for leaving is what will be raised
        _nothing_kept(error)
    return rest.result


async def _wind_down_async(flow: Flow[R], io: AsyncIO) -> R | None:
    rest = AsyncEventStream(_leaving(flow), io)
    try:
        async for _ in rest:
            pass
    except BaseException as error:  # the reason for leaving is what will be raised
        _nothing_kept(error)
    return rest.result


def _leaving(flow: Flow[R]) -> Flow[R]:
    """Return the rest of a flow whose caller has left: it hears of that, and may still finish."""
    return relay(flow, lambda _: None, begin_with=RequestCancelled())


def _nothing_kept(error: BaseException) -> None:
    if isinstance(error, Exception):
        _log.warning("partial_result_lost", error=str(error))
