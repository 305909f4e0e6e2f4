"""Lines that do not belong to the answer: they wait until the paragraph that is being streamed has ended.

A command can be typed while the agent speaks. What it shows would cut a paragraph in two, so it is kept back
until the paragraph is over, or nothing more has come for a moment.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_terminal_app.chat.rendering.screen import Screen

PATIENCE = 3.0
"""For how many seconds lines wait for more of a paragraph: streams pause for a second now and then."""


class Asides:
    """A screen for everything but the answer itself.

    Args:
        screen: Where all lines go in the end.

    Attributes:
        is_live: Whether there is a line that changes, for current work.
    """

    def __init__(self, screen: Screen) -> None:
        self.is_live = screen.is_live
        self._screen = screen
        self._kept: list[str] = []
        self._is_open = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def color(self) -> bool:
        """Whether styles are wanted."""
        return self._screen.color

    @color.setter
    def color(self, wanted: bool) -> None:
        self._screen.color = wanted

    @property
    def width(self) -> int | None:
        """How many cells fit in a row; None if there is no limit."""
        return self._screen.width

    def line(self, text: str = "") -> None:
        """Show a line, now or when the paragraph has ended."""
        if self._is_open:
            self._kept.append(text)
        else:
            self._screen.line(text)

    def paragraph_begins(self) -> None:
        """Keep lines back: the answer is in the middle of a paragraph."""
        if not self._screen.is_live:
            return
        self._is_open = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self.paragraph_ends)

    def paragraph_ends(self) -> None:
        """Show what was kept back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_open = False
        kept, self._kept = self._kept, []
        for line in kept:
            self._screen.line(line)
