"""What all readers have in common: items, deadlines, letting go."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from agent_core.cancellation import on_cancel
from agent_core.errors import RequestCancelled
from agent_core.log import get_logger
from agent_core.steps import Batch

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable

    from agent_core.steps import OpenStream, Run, Work

ENDED = object()
CANCELLED = object()
PATIENCE = 1.0  # seconds that a stream which was given up has to end in order
_log = get_logger("io")


def unwrap(found: Any) -> Any:
    """Return what was delivered, or raise it."""
    if found is CANCELLED:
        raise RequestCancelled
    if isinstance(found, BaseException):
        raise found
    return found[0]


def as_batch(item: Any) -> list[Any] | None:
    """Return an item as the list that a read answers with; None at the end."""
    if item is ENDED:
        return None
    return item if isinstance(item, Batch) else [item]


def deadline_of(timeout: float | None) -> float | None:
    """Return when the time will be over."""
    return None if timeout is None else monotonic() + timeout


def remaining(deadline: float | None) -> float | None:
    """Return how many seconds are left."""
    return None if deadline is None else max(0.0, deadline - monotonic())


def watch(step: OpenStream | Run[Any], cancelled: Callable[[], Any]) -> Callable[[], None]:
    """Call *cancelled* when the caller loses interest; return how to stop that."""
    token = step.cancellation
    if token is None:
        return lambda: None
    return on_cancel(token, cancelled)


def close_iterator(iterator: Any) -> None:
    """Close an iterator that can be closed."""
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


async def close_async(iterator: Any) -> None:
    """Close an async iterator that can be closed."""
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()


async def next_item(iterator: AsyncIterator[Any]) -> Any:
    """Return the next item, or the mark of the end."""
    async for item in iterator:
        return item
    return ENDED


def start_async(work: Work[Any]) -> AsyncIterator[Any]:
    """Return the iterator of awaitable work."""
    started = cast("Callable[[], Any]", work.awaitable)()
    if not hasattr(started, "__aiter__"):
        close_iterator(started)  # a coroutine would complain that nobody awaited it
        raise TypeError(f"{type(started).__name__!r} object is not an async iterator")
    return cast("AsyncIterator[Any]", started.__aiter__())


def not_closed(error: BaseException) -> None:
    """Log what went wrong in letting go."""
    _log.warning("stream_not_closed", error=repr(error))


def tell(loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function on a loop, from any thread."""
    # The loop may be gone when an abandoned thread finally answers; nobody waits for it then.
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)
