"""When what stands around the prompt is drawn again: if it has changed, and not all the time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SOON = 0.05
_SECOND = 1.0


class Redrawing:
    """Looks whether something has changed, when it is told so, and every second while time is shown.

    Args:
        seen: Returns everything that is shown, to be compared.
        draw: Draws it.
        goes_on: Says whether time is shown.
    """

    def __init__(
        self, seen: Callable[[], object], draw: Callable[[], None], goes_on: Callable[[], bool]
    ) -> None:
        self._seen = seen
        self._draw = draw
        self._goes_on = goes_on
        self._drawn: object = None
        self._looked = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def look_again(self) -> None:
        """Look at once, or soon if it was looked just before."""
        self._look_in(max(0.0, self._looked + _SOON - asyncio.get_running_loop().time()))

    def is_drawn(self) -> None:
        """Note that everything is about to be drawn, whoever wants it: a key, say."""
        self._drawn = self._seen()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is not None and self._timer.when() <= due:
            return
        self.stop()
        self._timer = loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer, self._looked = None, asyncio.get_running_loop().time()
        seen = self._seen()
        if seen != self._drawn:
            self._drawn = seen
            self._draw()
        if self._goes_on():
            self._look_in(_SECOND)
