"""What the agent is doing now: for how long, in which step; shown on a line that changes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_terminal_app.chat.rendering.text import fitted, one_line
from agent_terminal_app.rows import cells

if TYPE_CHECKING:
    from collections.abc import Callable

_MINUTE = 60
_BAR = " │ "
_SLOW = 0.5
"""After how many seconds a row of the answer is shown before it is full."""


@dataclass(slots=True)
class Doing:
    """Something that is being done.

    Attributes:
        title: What, in a line.
        began: When.
        tail: The last thing that was seen of it.
        front: What is shown before that, however long it is: the step of another agent.
        until: When it is over, if it is a wait.
    """

    title: str
    began: float
    tail: str = ""
    front: str = ""
    until: float | None = None


class Progress:
    """What a run is doing, for a line that changes.

    Args:
        changed: Called when there is something else to show.
        clock: The time in seconds; only differences count.

    Attributes:
        step: Which step of the run it is; 0 before the first.
        stopping: Whether it was asked to stop.
    """

    def __init__(
        self, changed: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.step = 0
        self.stopping = False
        self._began: float | None = None
        self._doing: dict[str, Doing] = {}
        self._row: Callable[[], str] | None = None
        self._row_began = 0.0
        self._changed = changed
        self._clock = clock

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._began is not None

    def begin(self) -> None:
        """Note that a run begins."""
        self.step, self.stopping, self._began = 0, False, self._clock()
        self._doing.clear()
        self._changed()

    def end(self) -> None:
        """Note that it is over."""
        self._began, self._row = None, None
        self._doing.clear()
        self._changed()

    def stop(self) -> None:
        """Note that it was asked to stop, so that this is seen at once."""
        self.stopping = True
        self._changed()

    def take_step(self, number: int) -> None:
        """Note which step it is; what was done before is done."""
        self.step = number
        self._doing.clear()
        self._changed()

    def speak(self, row: Callable[[], str] | None, *, begins: bool = False) -> None:
        """Note that the answer has come further within its row.

        Args:
            row: Returns the row as far as it has come; None if there is none any more.
            begins: Whether it is another row than before.
        """
        if begins or self._row is None:
            self._row_began = self._clock()
        self._row = row
        self._changed()

    @property
    def open_row(self) -> str:
        """The row of the answer that is not full yet, if it comes so slowly that one would wait for it."""
        if self._row is None or self._clock() - self._row_began < _SLOW:
            return ""
        return self._row()

    def do(self, key: str, title: str, *, seconds: float | None = None) -> None:
        """Note something that is being done, or waited for during so many seconds."""
        now = self._clock()
        self._doing[key] = Doing(one_line(title), now, until=None if seconds is None else now + seconds)
        self._changed()

    def tell(self, key: str, tail: str, *, front: str = "") -> None:
        """Note the last thing that was seen of it, and what is shown before that however long it is."""
        if (doing := self._doing.get(key)) is not None:
            doing.tail, doing.front = one_line(tail), front
            self._changed()

    def done(self, key: str) -> float | None:
        """Note that it is done, and return how long it took."""
        doing = self._doing.pop(key, None)
        self._changed()
        return None if doing is None else self._clock() - doing.began

    def state(self) -> str:
        """Return the run in a few words: for how long, which step."""
        if self._began is None:
            return ""
        if self.stopping:
            return "stopping …"
        step = f" · step {self.step}" if self.step > 1 else ""
        return f"working {duration(self._clock() - self._began)}{step} · Esc stops"

    def lines(self, width: int | None = None) -> list[str]:
        """Return what is being done, one line each.

        Args:
            width: How many cells a line has; of what was seen last, the end is kept.
        """
        return [self._line(doing, width) for doing in self._doing.values()]

    def _line(self, doing: Doing, width: int | None) -> str:
        now = self._clock()
        since = now - doing.began
        line = f"{doing.title}{f' {duration(since)}' if since >= 1 else ''}"
        if doing.until is not None:
            line = f"{doing.title} in {max(0, round(doing.until - now))} s"
        if not (doing.front or doing.tail) or doing.until is not None:
            return line if width is None else fitted(line, width)
        front = f"{_BAR}{doing.front}"
        if width is None:
            return f"{line}{front}{doing.tail}"
        title = fitted(line, max(width // 2, width - cells(front) - cells(doing.tail)))
        return fitted(f"{title}{front}{_end_of(doing.tail, width - cells(title) - cells(front))}", width)


def _end_of(text: str, width: int) -> str:
    """Return a text, or as much of its end as fits."""
    if cells(text) <= width:
        return text
    kept = text[-max(width, 1) :]
    while kept and cells(kept) > width - 1:
        kept = kept[1:]
    return f"…{kept}"


def duration(seconds: float) -> str:
    """Return whole seconds, or minutes and seconds."""
    whole = int(seconds)
    return f"{whole} s" if whole < _MINUTE else f"{whole // _MINUTE} min {whole % _MINUTE} s"
