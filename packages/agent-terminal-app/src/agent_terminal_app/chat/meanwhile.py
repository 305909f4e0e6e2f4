"""Telling that something takes its time: once soon, then ever less often."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import chain, repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_PAUSES = (1.0, 9.0, 20.0, 30.0)
_LATER = 60.0


@asynccontextmanager
async def telling(tell: Callable[[str], None], what: str) -> AsyncIterator[None]:
    """Tell while the block lasts what is being done, for how long, and how to stop it."""
    task = asyncio.create_task(_keep_telling(tell, what))
    try:
        yield
    finally:
        task.cancel()


async def _keep_telling(tell: Callable[[str], None], what: str) -> None:
    seconds = 0.0
    for pause in chain(_PAUSES, repeat(_LATER)):
        await asyncio.sleep(pause)
        seconds += pause
        tell(f"… {what}, {seconds:.0f} s (Esc stops it)")
