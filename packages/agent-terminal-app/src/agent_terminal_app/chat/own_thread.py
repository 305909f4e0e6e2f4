"""Work in a thread that keeps nobody from leaving."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")


async def in_own_thread(work: Callable[[], R]) -> R:
    """Do something that may take long, and return what it returns; at the end it is not waited for."""
    done: Future[R] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
