"""How long the reader of a reply waits: for bytes, and for content."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_provider_kit.transport import Timeouts


class Patience:
    """Closes a reply whose reader has waited too long: for bytes, or for content.

    One timer for a whole reply: one for each read costs more than the read. What a reader does between two
    reads costs no patience for bytes. It does cost patience for content, since a server may send its pings
    faster than they are read; a reader who was given content begins anew when it comes for more.

    Args:
        close: Closes the reply, so that whoever waits for it wakes up.
        timeouts: How long is too long.

    Attributes:
        waiting_since: When the reader began to wait for the next piece; None while it is busy.
        over: What there was too much waiting for, once it was too much.
    """

    __slots__ = (
        "_close", "_content", "_content_since", "_idle", "_loop", "_timer", "over", "waiting_since"
    )  # fmt: skip

    def __init__(self, close: Callable[[], None], timeouts: Timeouts) -> None:
        self.waiting_since: float | None = None
        self.over: str | None = None
        self._close = close
        self._idle = math.inf if timeouts.idle is None else timeouts.idle
        self._content = math.inf if timeouts.content is None else timeouts.content
        self._loop = asyncio.get_running_loop()
        self._content_since = now = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._look_at(now + min(self._idle, self._content))

    def begin_anew(self) -> None:
        """Wait for more content from now on."""
        self._content_since = self._loop.time()

    def wait(self) -> None:
        """Begin to wait for the next piece.

        Raises:
            TimeoutError: If the pieces before brought no content for too long.
        """
        self.waiting_since = now = self._loop.time()
        if now >= self._content_since + self._content:
            self._end(self._no_content())
        if self.over is not None:
            raise TimeoutError(self.over)

    def stop(self) -> None:
        """Look at the clock no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, moment: float) -> None:
        if moment < math.inf:
            self._timer = self._loop.call_at(moment, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if self.waiting_since is None:
            self._look_at(now + min(self._idle, self._content))
        elif now >= self._content_since + self._content:
            self._end(self._no_content())
        elif now >= self.waiting_since + self._idle:
            self._end(f"nothing arrived for {self._idle:g} seconds")
        else:
            self._look_at(min(self.waiting_since + self._idle, self._content_since + self._content))

    def _end(self, over: str) -> None:
        self.over = over
        self._close()

    def _no_content(self) -> str:
        return (
            f"the connection is alive, but no content arrived for {self._content:g} seconds (content_timeout)"
        )
