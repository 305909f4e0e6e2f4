"""The screen above the prompt: lines are inserted there, and the prompt is redrawn only when it must be.

To insert lines, room is made below, the prompt is pushed down by as many rows, and the lines are written
where it was (VT102's "insert line"). So the prompt is not drawn again for every line, nothing flickers,
and typing is never disturbed. Lines that are wider than the terminal wrap by themselves, so that they can
be copied; for those the prompt is erased and drawn again.

When a terminal becomes narrower, most of them rewrap what is on the screen. The prompt and the rows above
it may then take more rows than were drawn, and all of these are erased before it is drawn again.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application

from agent_terminal_app.chat.rendering.screen import TextScreen
from agent_terminal_app.chat.rendering.text import most_cells, only_styles, unstyled
from agent_terminal_app.output import terminal_width

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Callable, Iterator, Sequence

    from prompt_toolkit.layout.screen import Screen as Drawn

_FOCUS_ON, _FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"
_PAUSE = 1 / 30
"""The least time between two writes in seconds; lines that come in between are written together."""


class PromptScreen:
    """Lines above the prompt, committed to the terminal's own scrollback; may be used from any thread.

    Until a prompt is there, and when it is gone, lines are simply written.
    """

    is_live = True

    def __init__(self, *, color: bool) -> None:
        self.color = color
        self._plain = TextScreen(color=color)
        self._application: PromptApplication | None = None
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

    def attach(self, application: PromptApplication, loop: AbstractEventLoop) -> None:
        """Show lines above the prompt of an application from now on."""
        self._application, self._loop, self._thread = application, loop, threading.get_ident()

    def report_focus(self, *, on: bool = True) -> None:
        """Have the terminal say when the user turns to it and away; off while another program has it."""
        if self._application is not None:
            # Past the buffer: what stays in that, because the terminal is gone, would fail again at the end.
            with suppress(OSError):
                os.write(self._application.output.fileno(), (_FOCUS_ON if on else _FOCUS_OFF).encode())

    def detach(self) -> None:
        """Write lines as they are from now on; the prompt is gone."""
        self.report_focus(on=False)
        self._application, self._loop, self._held = None, None, False
        self._flush()

    def mute(self) -> None:
        """Show nothing any more: the terminal is gone."""
        self._plain = TextScreen(io.StringIO())
        self.detach()

    def hold(self) -> None:
        """Keep lines back while something else has the terminal."""
        self.report_focus(on=False)
        self._held = True

    def release(self) -> None:
        """Show the lines that were kept back."""
        self.report_focus()
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


def _write_above(application: PromptApplication, lines: Sequence[str]) -> None:
    output, size = application.output, application.output.get_size()
    drawn = application.renderer.last_rendered_screen
    if drawn is None or not application.is_running:
        output.write_raw("".join(f"{line}\r\n" for line in lines))
        output.flush()
        return
    cursor = drawn.get_cursor_position(application.drawn_focus)
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


def _write_without_prompt(application: PromptApplication, lines: Sequence[str]) -> None:
    application.renderer.erase()
    application.output.write_raw("".join(f"{line}\r\n" for line in lines))
    application.output.flush()
    application.invalidate()


class PromptApplication(Application[None]):
    """An application that knows how far up its first row has moved.

    Attributes:
        drawn_focus: The window that had the keys when everything was drawn, and so has the cursor.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.drawn_focus = self.layout.current_window
        self.after_render += lambda _application: self._note_focus()

    def _note_focus(self) -> None:
        self.drawn_focus = self.layout.current_window

    def _on_resize(self) -> None:
        # The renderer takes away as many rows as it has drawn; this is how many more there are.
        drawn = self.renderer.last_rendered_screen
        if drawn is not None and wraps_again():
            cursor = drawn.get_cursor_position(self.drawn_focus)
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


_SOON = 0.05
_SECOND = 1.0


class Redraw:
    """Checks whether something has changed: on request, and every second while a duration is shown.

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
