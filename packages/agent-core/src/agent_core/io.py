"""How steps are answered: in this thread, or on an event loop.

A plugin offers its work in a blocking form, in an awaitable form, or in both. Each driver prefers
its own form and knows how to live with the other: a synchronous caller runs awaitable work on one
event loop in the background, an asynchronous caller runs blocking work in worker threads. With an
awaitable form nothing stands between the socket and the caller of an async stream.
"""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from agent_core.errors import RequestCancelled
from agent_core.steps import Batch, CloseStream, OpenStream, Read, Reader, Run, Step, Work

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterator
    from concurrent.futures import Future

_ENDED = object()
_CANCELLED = object()


class SyncIO:
    """Answers steps for a caller that waits."""

    def __init__(self) -> None:
        self._open: list[_SyncReader] = []

    def perform(self, step: Step[Any]) -> Any:
        """Do what *step* asks and return the answer."""
        if isinstance(step, Read):
            return cast("_SyncReader", step.reader).read()
        if isinstance(step, Run):
            return _run(step.work)
        if isinstance(step, OpenStream):
            reader = _open(step)
            self._open.append(reader)
            return reader
        if isinstance(step, CloseStream):
            cast("_SyncReader", step.reader).close()
            return None
        raise TypeError(f"no way to do {step!r}")

    def close(self) -> None:
        """Let go of everything that is still open."""
        while self._open:
            self._open.pop().close()


class _SyncReader(Reader):
    __slots__ = ()

    def read(self) -> list[Any] | None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _InlineReader(_SyncReader):
    """Reads an iterator in the calling thread; nothing in between."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator

    def read(self) -> list[Any] | None:
        for item in self._iterator:
            return item if item.__class__ is Batch else [item]
        return None

    def close(self) -> None:
        _close_iterator(self._iterator)


class _WatchedReader(_SyncReader):
    """Reads an iterator in a thread of its own, so that waiting for it can end."""

    __slots__ = ("_deadline", "_pump", "_queue", "_unwatch")

    def __init__(self, step: OpenStream) -> None:
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._deadline = _deadline(step.timeout)
        self._pump = _Pump(cast("Callable[[], Any]", step.work.blocking), self._queue.put)
        self._unwatch = _watch(step, lambda: self._queue.put(_CANCELLED))

    def read(self) -> list[Any] | None:
        self._pump.want()
        try:
            found = self._queue.get(timeout=_remaining(self._deadline))
        except Empty:
            raise TimeoutError from None
        return _unwrap(found)

    def close(self) -> None:
        self._unwatch()
        self._pump.stop()


class _LoopReader(_SyncReader):
    """Reads an async iterator that lives on the background loop."""

    __slots__ = ("_deadline", "_iterator", "_pending", "_unwatch")

    def __init__(self, step: OpenStream) -> None:
        self._iterator = cast("Callable[[], AsyncIterator[Any]]", step.work.awaitable)()
        self._deadline = _deadline(step.timeout)
        self._pending: Future[Any] | None = None
        self._unwatch = _watch(step, self._cancel)

    def read(self) -> list[Any] | None:
        self._pending = _submit(_next_item(self._iterator))
        return _as_batch(_result(self._pending, _remaining(self._deadline)))

    def close(self) -> None:
        self._unwatch()
        _result(_submit(_close_async(self._iterator)), None)

    def _cancel(self) -> None:
        if self._pending is not None:
            self._pending.cancel()


class AsyncIO:
    """Answers steps on the running event loop."""

    def __init__(self) -> None:
        self._open: list[_AsyncReader] = []

    async def perform(self, step: Step[Any]) -> Any:
        """Do what *step* asks and return the answer."""
        if isinstance(step, Read):
            return await cast("_AsyncReader", step.reader).read()
        if isinstance(step, Run):
            return await _run_async(step.work)
        if isinstance(step, OpenStream):
            reader = _open_async(step)
            self._open.append(reader)
            return reader
        if isinstance(step, CloseStream):
            await cast("_AsyncReader", step.reader).close()
            return None
        raise TypeError(f"no way to do {step!r}")

    async def close(self) -> None:
        """Let go of everything that is still open."""
        while self._open:
            await self._open.pop().close()


class _AsyncReader(Reader):
    __slots__ = ()

    async def read(self) -> list[Any] | None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


class _AwaitingReader(_AsyncReader):
    """Reads an async iterator in the caller's own task."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: AsyncIterator[Any]) -> None:
        self._iterator = iterator

    async def read(self) -> list[Any] | None:
        async for item in self._iterator:
            return item if item.__class__ is Batch else [item]
        return None

    async def close(self) -> None:
        await _close_async(self._iterator)


class _RacingReader(_AsyncReader):
    """Reads an async iterator and gives up when time or patience ends."""

    __slots__ = ("_cancelled", "_deadline", "_iterator", "_unwatch")

    def __init__(self, step: OpenStream) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        self._iterator = cast("Callable[[], AsyncIterator[Any]]", step.work.awaitable)()
        self._deadline = _deadline(step.timeout)
        self._cancelled = asyncio.Event()
        self._unwatch = _watch(step, lambda: loop.call_soon_threadsafe(self._cancelled.set))

    async def read(self) -> list[Any] | None:
        import asyncio

        reading = asyncio.ensure_future(_next_item(self._iterator))
        stopping = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait(
                {reading, stopping}, timeout=_remaining(self._deadline), return_when=asyncio.FIRST_COMPLETED
            )
            if reading.done():
                return _as_batch(reading.result())
            raise RequestCancelled if self._cancelled.is_set() else TimeoutError
        finally:
            await _abandon(reading, stopping)

    async def close(self) -> None:
        self._unwatch()
        await _close_async(self._iterator)


class _ThreadReader(_AsyncReader):
    """Reads a blocking iterator in a thread of its own, on behalf of an event loop."""

    __slots__ = ("_deadline", "_loop", "_pump", "_unwatch", "_waiting")

    def __init__(self, step: OpenStream) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[Any] = self._loop.create_future()
        self._deadline = _deadline(step.timeout)
        self._pump = _Pump(cast("Callable[[], Any]", step.work.blocking), self._deliver)
        self._unwatch = _watch(step, lambda: self._deliver(_CANCELLED))

    async def read(self) -> list[Any] | None:
        import asyncio

        self._pump.want()
        try:
            found = await asyncio.wait_for(asyncio.shield(self._waiting), _remaining(self._deadline))
        finally:
            if self._waiting.done():
                self._waiting = self._loop.create_future()
        return _unwrap(found)

    async def close(self) -> None:
        self._unwatch()
        self._pump.stop()

    def _deliver(self, found: Any) -> None:
        # The loop may be gone when an abandoned thread finally answers; nobody waits for it then.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._settle, found)

    def _settle(self, found: Any) -> None:
        if not self._waiting.done():
            self._waiting.set_result(found)


class _Pump:
    """Advances an iterator in its own thread, one item each time one is wanted."""

    def __init__(self, start: Callable[[], Iterator[Any]], deliver: Callable[[Any], None]) -> None:
        self._start = start
        self._deliver = deliver
        self._wanted = threading.Semaphore(0)
        self._stopped = False
        threading.Thread(target=self._work, name="agent-core-reader", daemon=True).start()

    def want(self) -> None:
        self._wanted.release()

    def stop(self) -> None:
        self._stopped = True
        self._wanted.release()

    def _work(self) -> None:
        iterator: Iterator[Any] | None = None
        while self._wanted.acquire() and not self._stopped:
            try:
                iterator = iterator or iter(self._start())
                self._deliver((next(iterator, _ENDED),))
            except BaseException as error:  # noqa: BLE001 - raised again where it is read
                self._deliver(error)
        if iterator is not None:
            _close_iterator(iterator)


def _open(step: OpenStream) -> _SyncReader:
    if step.work.blocking is None:
        return _LoopReader(step)
    if step.timeout is None and step.cancellation is None:
        return _InlineReader(iter(step.work.blocking()))
    return _WatchedReader(step)


def _open_async(step: OpenStream) -> _AsyncReader:
    if step.work.awaitable is None:
        return _ThreadReader(step)
    if step.timeout is None and step.cancellation is None:
        return _AwaitingReader(step.work.awaitable().__aiter__())
    return _RacingReader(step)


def _run(work: Work[Any]) -> Any:
    if work.blocking is not None:
        return work.blocking()
    return _result(_submit(_await(cast("Callable[[], Any]", work.awaitable))), None)


async def _run_async(work: Work[Any]) -> Any:
    if work.awaitable is not None:
        return await work.awaitable()
    import asyncio

    return await asyncio.to_thread(cast("Callable[[], Any]", work.blocking))


async def _await(start: Callable[[], Any]) -> Any:
    return await start()


async def _next_item(iterator: AsyncIterator[Any]) -> Any:
    async for item in iterator:
        return item
    return _ENDED


async def _close_async(iterator: Any) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()


async def _abandon(*tasks: asyncio.Future[Any]) -> None:
    import asyncio

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _close_iterator(iterator: Any) -> None:
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


def _unwrap(found: Any) -> list[Any] | None:
    if found is _CANCELLED:
        raise RequestCancelled
    if isinstance(found, BaseException):
        raise found
    return _as_batch(found[0])


def _as_batch(item: Any) -> list[Any] | None:
    if item is _ENDED:
        return None
    return item if item.__class__ is Batch else [item]


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else monotonic() + timeout


def _remaining(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


def _watch(step: OpenStream, cancelled: Callable[[], Any]) -> Callable[[], None]:
    token = step.cancellation
    if token is None:
        return lambda: None
    key = token.add_callback(cancelled)
    return lambda: token.remove_callback(key)


def _result(future: Future[Any], timeout: float | None) -> Any:
    from concurrent.futures import CancelledError

    try:
        return future.result(timeout)
    except CancelledError:
        raise RequestCancelled from None
    except TimeoutError:
        future.cancel()
        raise


def _submit(work: Any) -> Future[Any]:
    import asyncio

    return asyncio.run_coroutine_threadsafe(work, _background.get())


class _BackgroundLoop:
    """The loop on which synchronous callers run awaitable work; started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="agent-core-loop", daemon=True).start()
            return self._loop


_background = _BackgroundLoop()
