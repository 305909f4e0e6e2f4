"""A terminal that changes its width: most of them wrap again what is on the screen.

So the prompt, and what stands above it, may take more rows than were drawn, and all of these have to be
taken away before it is drawn anew.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application

if TYPE_CHECKING:
    from prompt_toolkit.layout.screen import Screen as Drawn


class ResizingApplication(Application[None]):
    """An application that knows how far up its first row has moved."""

    def _on_resize(self) -> None:
        # The renderer takes away as many rows as it has drawn; this is how many more there are.
        drawn = self.renderer.last_rendered_screen
        if drawn is not None and wraps_again():
            cursor = drawn.get_cursor_position(self.layout.current_window)
            self.output.cursor_up(_more_rows(drawn, cursor.x, cursor.y, self.output.get_size().columns))
        super()._on_resize()


def wraps_again() -> bool:
    """Say whether the terminal wraps its lines again when it becomes narrower."""
    return not ({"XTERM_VERSION", "STY"} & os.environ.keys()) and os.environ.get("TERM") != "linux"


def _more_rows(drawn: Drawn, column: int, row: int, width: int) -> int:
    """Return how many rows more than before are above the cursor."""
    return sum((_length(drawn, n) - 1) // width for n in range(row)) + column // width


def _length(drawn: Drawn, row: int) -> int:
    """Return how many cells of a row are in use, at least one."""
    used = (place for place, char in drawn.data_buffer[row].items() if char.char.strip())
    return max(used, default=0) + 1
