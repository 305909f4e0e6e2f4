"""Answering steps on the running event loop; loaded by whoever has one."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, cast

from agent_core.errors import RequestCancelled
from agent_core.io.items import (
    CANCELLED,
    as_batch,
    close_async,
    deadline_of,
    next_item,
    not_closed,
    remaining,
    start_async,
    tell,
    unwrap,
    watch,
)
from agent_core.io.workers import make_pump, run_in_worker
from agent_core.steps import Batch, CloseStream, OpenStream, Reader, Run, Whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class AsyncIO:
    """Answers steps on the running event loop."""

    def __init__(self) -> None:
        self._open: list[AsyncReader] = []

    async def perform(self, step: Any) -> Any:
        """Do what *step* asks and return the answer; reading is done by the driver itself."""
        if isinstance(step, Run):
            return await _run_async(step)
        if isinstance(step, OpenStream):
            reader = _open_async(step)
            self._open.append(reader)
            return reader
        if isinstance(step, CloseStream):
            return await self._let_go(cast("AsyncReader", step.reader))
        raise TypeError(f"no way to do {step!r}")

    async def close(self) -> None:
        """Let go of everything that is still open; what goes wrong in that is only logged."""
        while self._open:
            await self._let_go(self._open[-1])

    async def _let_go(self, reader: AsyncReader) -> None:
        if reader not in self._open:
            return
        self._open.remove(reader)
        try:
            await reader.close()
        except Exception as error:  # a stranger's clean-up must not cost the result
            not_closed(error)


class AsyncReader(Reader):
    """A stream that is read by awaiting."""

    __slots__ = ()

    async def read(self) -> list[Any] | None:
        """Return the next items, or None at the end."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the stream."""
        raise NotImplementedError


class _AwaitingReader(AsyncReader):
    """Reads an async iterator in the caller's own task."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: AsyncIterator[Any]) -> None:
        self._iterator = iterator

    async def read(self) -> list[Any] | None:
        async for item in self._iterator:
            return item if item.__class__ is Batch else [item]
        return None

    async def close(self) -> None:
        await close_async(self._iterator)


class _WatchedReader(AsyncReader):
    """Reads an async iterator in the caller's own task, and gives up when time or patience ends.

    Both end the read in the same way, as a timeout that has come: streams that hold a lock, a
    timeout or a task group across their items need every read to happen in one task.
    """

    __slots__ = ("_cancelled", "_deadline", "_iterator", "_loop", "_scope", "_unwatch")

    def __init__(self, step: OpenStream) -> None:
        self._loop = asyncio.get_running_loop()
        self._cancelled = False
        self._scope: asyncio.Timeout | None = None
        self._deadline = None if step.timeout is None else self._loop.time() + step.timeout
        self._iterator = start_async(step.work)
        self._unwatch = watch(step, lambda: tell(self._loop, self._cancel))

    async def read(self) -> list[Any] | None:
        if self._cancelled:
            raise RequestCancelled
        scope = self._scope = asyncio.timeout_at(self._deadline)
        try:
            async with scope:
                return as_batch(await next_item(self._iterator))
        except Exception:
            if scope.expired():
                raise (RequestCancelled if self._cancelled else TimeoutError) from None
            raise
        finally:
            self._scope = None

    async def close(self) -> None:
        self._unwatch()
        await close_async(self._iterator)

    def _cancel(self) -> None:
        self._cancelled = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(self._loop.time())


class ThreadReader(AsyncReader):
    """Reads a blocking iterator in a thread of its own, on behalf of an event loop."""

    __slots__ = ("_deadline", "_ended", "_loop", "_pump", "_unwatch", "_waiting")

    def __init__(self, step: OpenStream) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = False
        self._waiting: asyncio.Future[Any] = self._loop.create_future()
        self._deadline = deadline_of(step.timeout)
        self._unwatch = watch(step, lambda: self._deliver(CANCELLED))
        self._pump = make_pump(step.work, self._deliver)

    async def read(self) -> list[Any] | None:
        """Return the next items, or None at the end."""
        if self._ended:
            return None
        self._pump.want()
        try:
            if self._deadline is None:
                found = await self._waiting
            else:
                found = await asyncio.wait_for(asyncio.shield(self._waiting), remaining(self._deadline))
        finally:
            if self._waiting.done():
                self._waiting = self._loop.create_future()
        items = as_batch(unwrap(found))
        self._ended = items.__class__ is Whole
        return items

    async def close(self) -> None:
        """Let go of the stream; a thread that hangs in it is left behind."""
        self._unwatch()
        self._pump.stop()

    def _deliver(self, found: Any) -> None:
        tell(self._loop, self._settle, found)

    def _settle(self, found: Any) -> None:
        if not self._waiting.done():
            self._waiting.set_result(found)


def _open_async(step: OpenStream) -> AsyncReader:
    if step.work.awaitable is None:
        return ThreadReader(step)
    if step.timeout is None and step.cancellation is None:
        return _AwaitingReader(start_async(step.work))
    return _WatchedReader(step)


async def _run_async(step: Run[Any]) -> Any:
    """Do work where the loop need not wait for it: one way there, one way back."""
    if step.work.awaitable is not None:
        return await step.work.awaitable()
    blocking = cast("Callable[[], Any]", step.work.blocking)
    run = copy_context().run  # the work sees the caller's context variables, and changes none
    if step.in_place:
        return run(blocking)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not answer.done():
            answer.set_result((result, error))

    def do() -> None:
        result, failure = None, None
        try:
            result = run(blocking)
        except BaseException as error:  # raised again where it is awaited
            failure = error
        tell(loop, settle, result, failure)

    unwatch = watch(step, lambda: tell(loop, settle, None, RequestCancelled()))
    late = None if step.timeout is None else loop.call_later(step.timeout, settle, None, TimeoutError())
    # Not asyncio.to_thread: its threads are few, and a loop cannot end before they do.
    (run_in_worker if step.lane is None else step.lane.run)(do)
    try:
        result, failure = await answer
    finally:
        unwatch()
        if late is not None:
            late.cancel()
    if failure is not None:
        raise failure
    return result
