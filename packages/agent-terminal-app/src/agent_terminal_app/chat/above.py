"""Lines above the prompt, which stays where it is.

A line is put between what was shown before and the prompt: room is made below, the prompt is pushed down
by as many rows, and the lines are written where it stood (VT102's "insert line"). So the prompt is not drawn
again for every line, nothing flickers, and what is typed is never in the way. Lines that are wider than the
terminal wrap by themselves, so that they can be copied; for those the prompt is taken away and drawn again.
"""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING

from agent_terminal_app.chat.screen import TextScreen, terminal_width
from agent_terminal_app.chat.text import most_cells, only_styles, unstyled

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Iterator, Sequence

    from prompt_toolkit import Application
    from prompt_toolkit.layout.screen import Screen as Drawn

_PAUSE = 1 / 30
"""How many seconds are at least between two writes; what comes meanwhile is written together."""


class PromptScreen:
    """Lines above the prompt, committed to the terminal's own scrollback; may be used from any thread.

    Until a prompt is there, and when it is gone, lines are simply written.
    """

    is_live = True

    def __init__(self, *, color: bool) -> None:
        self.color = color
        self._plain = TextScreen(color=color)
        self._application: Application[None] | None = None
        self._loop: AbstractEventLoop | None = None
        self._thread = 0
        self._waiting: list[str] = []
        self._timer: TimerHandle | None = None
        self._next = 0.0
        self._held = False

    @property
    def width(self) -> int:
        """How many cells fit, as of now."""
        return terminal_width()

    def attach(self, application: Application[None], loop: AbstractEventLoop) -> None:
        """Show lines above the prompt of an application from now on."""
        self._application, self._loop, self._thread = application, loop, threading.get_ident()

    def detach(self) -> None:
        """Write lines as they are from now on; the prompt is gone."""
        self._application, self._loop, self._held = None, None, False
        self._flush()

    def mute(self) -> None:
        """Show nothing any more: the terminal is gone."""
        self._plain = TextScreen(io.StringIO())
        self.detach()

    def hold(self) -> None:
        """Keep lines back while something else has the terminal."""
        self._held = True

    def release(self) -> None:
        """Show the lines that were kept back."""
        self._held = False
        self._soon()

    def line(self, text: str = "") -> None:
        """Show a line above the prompt."""
        if self._loop is not None and threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.line, text)
            return
        self._waiting += [only_styles(part, color=self.color) for part in text.split("\n")]
        self._soon()

    def _soon(self) -> None:
        if self._loop is None:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_at(max(self._next, self._loop.time()), self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._held or not self._waiting:
            return
        lines, self._waiting = self._waiting, []
        if self._application is None or self._loop is None:
            for line in lines:
                self._plain.line(line)
            return
        self._next = self._loop.time() + _PAUSE
        _write_above(self._application, lines)


def _write_above(application: Application[None], lines: Sequence[str]) -> None:
    output, size = application.output, application.output.get_size()
    drawn = application.renderer.last_rendered_screen
    if drawn is None or not application.is_running:
        output.write_raw("".join(f"{line}\r\n" for line in lines))
        output.flush()
        return
    cursor = drawn.get_cursor_position(application.layout.current_window)
    height = max(_used_rows(drawn), cursor.y + 1)
    room = size.rows - height
    too_wide = any(most_cells(unstyled(line)) > size.columns for line in lines)
    if room < 1 or too_wide:
        _write_without_prompt(application, lines)
        return
    for batch in _batches(lines, room):
        output.write_raw(insertion(batch, height=height, cursor=(cursor.x, cursor.y)))
    output.flush()


def insertion(lines: Sequence[str], *, height: int, cursor: tuple[int, int]) -> str:
    """Return what puts lines above an area of the terminal, and the cursor back into it.

    Args:
        lines: Lines that fit.
        height: How many rows the area has.
        cursor: Where the cursor is in it: column and row.
    """
    column, row = cursor
    count = len(lines)
    below = "\r" + _move(height - 1 - row, "B") + "\n" * count  # the terminal scrolls if it must
    to_top = _move(count + height - 1, "A") + f"\x1b[{count}L"
    return below + to_top + "".join(f"{line}\r\n" for line in lines) + _move(row, "B") + _move(column, "C")


def _move(count: int, direction: str) -> str:
    return f"\x1b[{count}{direction}" if count > 1 else f"\x1b[{direction}" if count == 1 else ""


def _used_rows(drawn: Drawn) -> int:
    """Return how many rows the prompt and everything around it take now."""
    for row in range(drawn.height - 1, 0, -1):
        if any(char.char.strip() for char in drawn.data_buffer[row].values()):
            return row + 1
    return 1


def _batches(lines: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(lines), size):
        yield lines[start : start + size]


def _write_without_prompt(application: Application[None], lines: Sequence[str]) -> None:
    application.renderer.erase()
    application.output.write_raw("".join(f"{line}\r\n" for line in lines))
    application.output.flush()
    application.invalidate()
