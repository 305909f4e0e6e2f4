"""How steps are answered: in this thread, or on an event loop.

A plugin offers its work in a blocking form, in an awaitable form, or in both. Each driver prefers
its own form and knows how to live with the other: a synchronous caller runs awaitable work on one
event loop in the background, an asynchronous caller runs blocking work in worker threads. With an
awaitable form nothing stands between the socket and the caller of an async stream.
"""

from __future__ import annotations

import atexit
import threading
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from agent_core.errors import RequestCancelled
from agent_core.log import get_logger
from agent_core.steps import Batch, CloseStream, OpenStream, Reader, Run, Work

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

T = TypeVar("T")
_ENDED = object()
_CANCELLED = object()
_PATIENCE = 1.0  # seconds that a stream which was given up has to end in order
_log = get_logger("io")


class SyncIO:
    """Answers steps for a caller that waits."""

    def __init__(self) -> None:
        self._open: list[_SyncReader] = []

    def perform(self, step: Any) -> Any:
        """Do what *step* asks and return the answer; reading is done by the driver itself."""
        if isinstance(step, Run):
            return _run(step.work)
        if isinstance(step, OpenStream):
            reader = _open(step)
            self._open.append(reader)
            return reader
        if isinstance(step, CloseStream):
            return self._let_go(cast("_SyncReader", step.reader))
        raise TypeError(f"no way to do {step!r}")

    def close(self) -> None:
        """Let go of everything that is still open; what goes wrong in that is only logged."""
        while self._open:
            self._let_go(self._open[-1])

    def _let_go(self, reader: _SyncReader) -> None:
        if reader not in self._open:
            return
        self._open.remove(reader)
        try:
            reader.close()
        except Exception as error:  # noqa: BLE001 - a stranger's clean-up must not cost the result
            _not_closed(error)


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


class _PumpedReader(_SyncReader):
    """Waits for items that are fetched elsewhere, so that the waiting can end before the fetching."""

    __slots__ = ("_deadline", "_pump", "_queue", "_unwatch")

    def __init__(self, step: OpenStream) -> None:
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._deadline = _deadline(step.timeout)
        self._unwatch = _watch(step, lambda: self._queue.put(_CANCELLED))
        self._pump = _pump(step.work, self._queue.put)

    def read(self) -> list[Any] | None:
        self._pump.want()
        try:
            found = self._queue.get(timeout=_remaining(self._deadline))
        except Empty:
            raise TimeoutError from None
        return _as_batch(_unwrap(found))

    def close(self) -> None:
        self._unwatch()
        self._pump.stop()


class AsyncIO:
    """Answers steps on the running event loop."""

    def __init__(self) -> None:
        self._open: list[_AsyncReader] = []

    async def perform(self, step: Any) -> Any:
        """Do what *step* asks and return the answer; reading is done by the driver itself."""
        if isinstance(step, Run):
            return await _run_async(step.work)
        if isinstance(step, OpenStream):
            reader = _open_async(step)
            self._open.append(reader)
            return reader
        if isinstance(step, CloseStream):
            return await self._let_go(cast("_AsyncReader", step.reader))
        raise TypeError(f"no way to do {step!r}")

    async def close(self) -> None:
        """Let go of everything that is still open; what goes wrong in that is only logged."""
        while self._open:
            await self._let_go(self._open[-1])

    async def _let_go(self, reader: _AsyncReader) -> None:
        if reader not in self._open:
            return
        self._open.remove(reader)
        try:
            await reader.close()
        except Exception as error:  # noqa: BLE001 - a stranger's clean-up must not cost the result
            _not_closed(error)


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


class _WatchedReader(_AsyncReader):
    """Reads an async iterator in the caller's own task, and gives up when time or patience ends.

    Both end the read in the same way, as a timeout that has come: streams that hold a lock, a
    timeout or a task group across their items need every read to happen in one task.
    """

    __slots__ = ("_cancelled", "_deadline", "_iterator", "_loop", "_scope", "_unwatch")

    def __init__(self, step: OpenStream) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._cancelled = False
        self._scope: asyncio.Timeout | None = None
        self._deadline = None if step.timeout is None else self._loop.time() + step.timeout
        self._iterator = _start_async(step.work)
        self._unwatch = _watch(step, lambda: _tell(self._loop, self._cancel))

    async def read(self) -> list[Any] | None:
        import asyncio

        if self._cancelled:
            raise RequestCancelled
        scope = self._scope = asyncio.timeout_at(self._deadline)
        try:
            async with scope:
                return _as_batch(await _next_item(self._iterator))
        except Exception:
            if scope.expired():
                raise (RequestCancelled if self._cancelled else TimeoutError) from None
            raise
        finally:
            self._scope = None

    async def close(self) -> None:
        self._unwatch()
        await _close_async(self._iterator)

    def _cancel(self) -> None:
        self._cancelled = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(self._loop.time())


class _ThreadReader(_AsyncReader):
    """Reads a blocking iterator in a thread of its own, on behalf of an event loop."""

    __slots__ = ("_deadline", "_loop", "_pump", "_unwatch", "_waiting")

    def __init__(self, step: OpenStream) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[Any] = self._loop.create_future()
        self._deadline = _deadline(step.timeout)
        self._unwatch = _watch(step, lambda: self._deliver(_CANCELLED))
        self._pump = _pump(step.work, self._deliver)

    async def read(self) -> list[Any] | None:
        return _as_batch(await self.read_item())

    async def read_item(self) -> Any:
        """Return the next item as it is."""
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
        _tell(self._loop, self._settle, found)

    def _settle(self, found: Any) -> None:
        if not self._waiting.done():
            self._waiting.set_result(found)


class _Pump(Protocol):
    """Advances an iterator elsewhere, one item each time one is wanted."""

    def want(self) -> None: ...

    def stop(self) -> None: ...


def _pump(work: Work[Any], deliver: Callable[[Any], None]) -> _Pump:
    return _LoopPump(work, deliver) if work.blocking is None else _ThreadPump(work.blocking, deliver)


class _ThreadPump:
    """Advances a blocking iterator in its own thread; one that hangs is left behind when stopped."""

    def __init__(self, start: Callable[[], Any], deliver: Callable[[Any], None]) -> None:
        self._start = start
        self._deliver = deliver
        self._wanted = threading.Semaphore(0)
        self._stopped = False
        run = copy_context().run  # the thread sees the caller's context variables
        threading.Thread(target=run, args=(self._work,), name="agent-core-reader", daemon=True).start()

    def want(self) -> None:
        self._wanted.release()

    def stop(self) -> None:
        self._stopped = True
        self._wanted.release()

    def _work(self) -> None:
        iterator: Iterator[Any] | None = None
        while self._wanted.acquire() and not self._stopped:
            try:
                if iterator is None:
                    iterator = iter(self._start())
                self._deliver((next(iterator, _ENDED),))
            except BaseException as error:  # noqa: BLE001 - raised again where it is read
                self._deliver(error)
        try:
            _close_iterator(iterator)
        except Exception as error:  # noqa: BLE001 - nobody reads it any more
            _not_closed(error)


class _LoopPump:
    """Advances an async iterator in one task on the background loop."""

    def __init__(self, work: Work[Any], deliver: Callable[[Any], None]) -> None:
        import asyncio

        self._started_by = work
        self._deliver = deliver
        self._wanted = asyncio.Semaphore(0)
        self._stopped = False
        self._ended = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop = _background.get()
        self._loop.call_soon_threadsafe(self._begin)

    def want(self) -> None:
        self._loop.call_soon_threadsafe(self._wanted.release)

    def stop(self) -> None:
        self._stopped = True
        self._loop.call_soon_threadsafe(self._cancel)
        self._ended.wait(_PATIENCE)

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work())
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _not_closed(error)
        self._ended.set()

    async def _work(self) -> None:
        import asyncio

        iterator: AsyncIterator[Any] | None = None
        try:
            while not self._stopped:
                await self._wanted.acquire()
                try:
                    if iterator is None:
                        iterator = _start_async(self._started_by)
                    self._deliver((await _next_item(iterator),))
                except asyncio.CancelledError:  # ours if we stop; otherwise the stream cancelled itself
                    self._deliver(_CANCELLED)
                except BaseException as error:  # noqa: BLE001 - raised again where it is read
                    self._deliver(error)
        finally:
            await _close_async(iterator)


def _open(step: OpenStream) -> _SyncReader:
    if step.work.blocking is None or step.timeout is not None or step.cancellation is not None:
        return _PumpedReader(step)
    return _InlineReader(iter(step.work.blocking()))


def _open_async(step: OpenStream) -> _AsyncReader:
    if step.work.awaitable is None:
        return _ThreadReader(step)
    if step.timeout is None and step.cancellation is None:
        return _AwaitingReader(_start_async(step.work))
    return _WatchedReader(step)


def run_awaitable(start: Callable[[], Awaitable[T]]) -> T:
    """Run awaitable work from a thread that has no loop of its own, and wait for its result.

    For plugins whose hook is synchronous and whose client is not.
    """
    return cast("T", _run(Work(awaitable=start)))


def _run(work: Work[Any]) -> Any:
    if work.blocking is not None:
        return work.blocking()
    import asyncio
    from concurrent.futures import CancelledError

    loop = _background.get()
    future = asyncio.run_coroutine_threadsafe(_await(work), loop)
    try:
        return future.result()
    except CancelledError:
        raise RequestCancelled from None
    finally:
        future.cancel()  # does nothing to one that has ended by itself


async def _run_async(work: Work[Any]) -> Any:
    if work.awaitable is not None:
        return await work.awaitable()
    blocking = cast("Callable[[], Any]", work.blocking)
    # Not asyncio.to_thread: its threads are few, and a loop cannot end before they do.
    reader = _ThreadReader(OpenStream(Work(blocking=lambda: (blocking(),))))
    try:
        return await reader.read_item()
    finally:
        await reader.close()


async def _await(work: Work[Any]) -> Any:
    return await cast("Callable[[], Any]", work.awaitable)()


def _start_async(work: Work[Any]) -> AsyncIterator[Any]:
    started = cast("Callable[[], Any]", work.awaitable)()
    if not hasattr(started, "__aiter__"):
        _close_iterator(started)  # a coroutine would complain that nobody awaited it
        raise TypeError(f"{type(started).__name__!r} object is not an async iterator")
    return cast("AsyncIterator[Any]", started.__aiter__())


async def _next_item(iterator: AsyncIterator[Any]) -> Any:
    async for item in iterator:
        return item
    return _ENDED


async def _close_async(iterator: Any) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()


def _close_iterator(iterator: Any) -> None:
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


def _not_closed(error: BaseException) -> None:
    _log.warning("stream_not_closed", error=repr(error))


def _unwrap(found: Any) -> Any:
    if found is _CANCELLED:
        raise RequestCancelled
    if isinstance(found, BaseException):
        raise found
    return found[0]


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


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any) -> None:
    # The loop may be gone when an abandoned thread finally answers; nobody waits for it then.
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)


class _BackgroundLoop:
    """The loop on which synchronous callers run awaitable work; started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="agent-core-loop", daemon=True).start()
                atexit.register(_end_loop, self._loop)
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - get_running_loop would raise
            raise RuntimeError(
                "a plugin that runs on the background loop must not wait for it: "
                "await the async method instead of calling the blocking one"
            )
        return self._loop


def _end_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Close what lives on the loop, such as pools of connections, before the process ends."""
    import asyncio

    closing = asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop)
    with suppress(Exception):
        closing.result(_PATIENCE)
    loop.call_soon_threadsafe(loop.stop)


_background = _BackgroundLoop()
