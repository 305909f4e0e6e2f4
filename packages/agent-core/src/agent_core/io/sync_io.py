"""Answering steps for a caller that waits."""

from __future__ import annotations

from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agent_core.io.items import (
    CANCELLED,
    as_batch,
    close_iterator,
    deadline_of,
    not_closed,
    remaining,
    unwrap,
    watch,
)
from agent_core.io.workers import make_pump, run_in_worker
from agent_core.steps import Batch, CloseStream, OpenStream, Reader, Run, Whole, Work

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")


class SyncIO:
    """Answers steps for a caller that waits."""

    def __init__(self) -> None:
        self._open: list[SyncReader] = []

    def perform(self, step: Any) -> Any:
        """Do what *step* asks and return the answer; reading is done by the driver itself."""
        if isinstance(step, Run):
            watched = step.timeout is not None or step.cancellation is not None
            return _run_watched(step) if watched and not step.in_place else run(step.work)
        if isinstance(step, OpenStream):
            reader = _open(step)
            self._open.append(reader)
            return reader
        if isinstance(step, CloseStream):
            return self._let_go(cast("SyncReader", step.reader))
        raise TypeError(f"no way to do {step!r}")

    def close(self) -> None:
        """Let go of everything that is still open; what goes wrong in that is only logged."""
        while self._open:
            self._let_go(self._open[-1])

    def _let_go(self, reader: SyncReader) -> None:
        if reader not in self._open:
            return
        self._open.remove(reader)
        try:
            reader.close()
        except Exception as error:  # a stranger's clean-up must not cost the result
            not_closed(error)


class SyncReader(Reader):
    """A stream that is read by waiting."""

    __slots__ = ()

    def read(self) -> list[Any] | None:
        """Return the next items, or None at the end."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the stream."""
        raise NotImplementedError


class _InlineReader(SyncReader):
    """Reads an iterator in the calling thread; nothing in between."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator

    def read(self) -> list[Any] | None:
        for item in self._iterator:
            return item if item.__class__ is Batch else [item]
        return None

    def close(self) -> None:
        close_iterator(self._iterator)


class _PumpedReader(SyncReader):
    """Waits for items that are fetched elsewhere, so that the waiting can end before the fetching."""

    __slots__ = ("_deadline", "_ended", "_pump", "_queue", "_unwatch")

    def __init__(self, step: OpenStream) -> None:
        self._ended = False
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._deadline = deadline_of(step.timeout)
        self._unwatch = watch(step, lambda: self._queue.put(CANCELLED))
        self._pump = make_pump(step.work, self._queue.put)

    def read(self) -> list[Any] | None:
        if self._ended:
            return None
        self._pump.want()
        try:
            found = self._queue.get(timeout=remaining(self._deadline))
        except Empty:
            raise TimeoutError from None
        items = as_batch(unwrap(found))
        self._ended = items.__class__ is Whole
        return items

    def close(self) -> None:
        self._unwatch()
        self._pump.stop()


def _open(step: OpenStream) -> SyncReader:
    if step.work.blocking is None or step.timeout is not None or step.cancellation is not None:
        return _PumpedReader(step)
    return _InlineReader(iter(step.work.blocking()))


def _run_watched(step: Run[Any]) -> Any:
    """Do blocking work in another thread, so that the waiting can end before the work does."""
    if step.work.blocking is None:
        return run(step.work)
    blocking = step.work.blocking
    queue: SimpleQueue[Any] = SimpleQueue()

    def do() -> None:
        try:
            queue.put((blocking(),))
        except BaseException as error:  # raised again where it is waited for
            queue.put(error)

    unwatch = watch(step, lambda: queue.put(CANCELLED))
    try:
        run_in_worker(partial(copy_context().run, do))
        found = queue.get(timeout=step.timeout)
    except Empty:
        raise TimeoutError from None
    finally:
        unwatch()
    return unwrap(found)


def run_awaitable(start: Callable[[], Awaitable[T]]) -> T:
    """Run awaitable work from a thread that has no loop of its own, and wait for its result.

    For plugins whose hook is synchronous and whose client is not.
    """
    return cast("T", run(Work(awaitable=start)))


def run(work: Work[Any]) -> Any:
    """Do the work and return its result, waiting for it in this thread."""
    if work.blocking is not None:
        return work.blocking()
    from agent_core.io.background import run_in_background  # an event loop takes a while to load

    return run_in_background(work)
