"""The event loop on which callers without one of their own run awaitable work."""

from __future__ import annotations

import atexit
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agent_core.errors import RequestCancelled
from agent_core.io.items import PATIENCE
from agent_core.steps import Work

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


def run_awaitable(start: Callable[[], Awaitable[T]]) -> T:
    """Run awaitable work from a thread that has no loop of its own, and wait for its result.

    For plugins whose hook is synchronous and whose client is not.
    """
    return cast("T", run(Work(awaitable=start)))


def run(work: Work[Any]) -> Any:
    """Do the work and return its result, waiting for it in this thread."""
    if work.blocking is not None:
        return work.blocking()
    import asyncio
    from concurrent.futures import CancelledError

    loop = background.get()
    future = asyncio.run_coroutine_threadsafe(_await(work), loop)
    try:
        return future.result()
    except CancelledError:
        raise RequestCancelled from None
    finally:
        future.cancel()  # does nothing to one that has ended by itself


async def _await(work: Work[Any]) -> Any:
    return await cast("Callable[[], Any]", work.awaitable)()


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
                thread = threading.Thread(
                    target=_live, args=(self._loop,), name="agent-core-loop", daemon=True
                )
                thread.start()
                atexit.register(_end, self._loop, thread)
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - get_running_loop would raise
            raise RuntimeError(
                "a plugin that runs on the background loop must not wait for it: "
                "await the async method instead of calling the blocking one"
            )
        return self._loop


def _live(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Close what lives on the loop, such as pools of connections, and the loop, before the process ends."""
    import asyncio

    closing = asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop)
    with suppress(Exception):
        closing.result(PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)


background = _BackgroundLoop()
