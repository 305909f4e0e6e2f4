"""One event loop in a thread of its own, on which all servers of a plugin live."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


_PATIENCE: Final = 5.0


class Background:
    """A loop that begins with the first use and ends with `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Have a function called on the loop, soon; False if the loop is ending and takes nothing more."""
        with self._lock:
            if self._closed:
                return False
            self._running().call_soon_threadsafe(function, *arguments)
            return True

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Have a coroutine run on the loop, in a task of its own; False as for `call`."""
        return self.call(self._start, work)

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Wait for the tasks, which were told to end, then end the loop; what does not end is cancelled."""
        with self._lock:
            loop, thread, self._closed = self._loop, self._thread, True
        if loop is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(self._finish)
            thread.join(2 * _PATIENCE)

    def _finish(self) -> None:
        self._last = asyncio.get_running_loop().create_task(self._ended())
        self._last.add_done_callback(lambda _: self._stop())

    async def _ended(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_PATIENCE)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop(self) -> None:
        asyncio.get_running_loop().stop()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="mcp-servers", daemon=True)
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
