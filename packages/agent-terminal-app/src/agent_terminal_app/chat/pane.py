"""A fold that is open above the prompt, for a while: it can be scrolled, and closed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_terminal_app.chat.folds import opened
from agent_terminal_app.chat.keymap import KeyMap
from agent_terminal_app.chat.text import cells, cut_place, first_style, fitted, unstyled

if TYPE_CHECKING:
    from agent_terminal_app.chat.folds import Fold, Folds


class Pane:
    """The fold that is open, if one is.

    Args:
        keys: What opens, scrolls and closes it.
    """

    def __init__(self, keys: KeyMap | None = None) -> None:
        self._keys = keys or KeyMap.usual()
        self._fold: Fold | None = None
        self._offset = 0
        self._made: tuple[tuple[int, int, int], str, list[str]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a fold is open."""
        return self._fold is not None

    def open_next(self, folds: Folds) -> None:
        """Open the last fold; if one is open, the one before it; behind the first one, none."""
        self._fold = folds.find() if self._fold is None else folds.before(self._fold.number)
        self._offset = 0

    def close(self) -> None:
        """Close it."""
        self._fold = None

    def scroll(self, rows: int) -> None:
        """Show what is above or below."""
        self._offset = max(0, self._offset + rows)

    def lines(self, width: int, height: int, *, color: bool) -> list[str]:
        """Return the lines that are seen, within bounds, and how to see others."""
        if self._fold is None:
            return []
        title, rows = self._rows(self._fold, width, color=color)
        room = max(height - 2, 1)
        self._offset = min(self._offset, max(0, len(rows) - room))
        seen = rows[self._offset : self._offset + room]
        first, last = self._offset + 1, self._offset + len(seen)
        place = f"lines {first}-{last} of {len(rows)} · " if len(rows) > room else ""
        return [title, *seen, fitted(f"{place}{self._how()}", width)]

    def _how(self) -> str:
        keys = self._keys
        older = f"{keys.first('open')} older, " if keys.first("open") else ""
        scroll = f"{keys.first('scroll_up')} {keys.first('scroll_down')}".strip()
        return f"{older}{f'{scroll} scroll, ' if scroll else ''}{keys.first('stop')} closes"

    def _rows(self, fold: Fold, width: int, *, color: bool) -> tuple[str, list[str]]:
        """Return a fold as rows; they are made once, since they are drawn again and again."""
        key = (fold.number, fold.size, width)
        if self._made is None or self._made[0] != key:
            title, *body = opened(fold, width=width, color=color)
            self._made = (key, title, [row for line in body for row in _rows(line, width)])
        return self._made[1], self._made[2]


def _rows(line: str, width: int) -> list[str]:
    """Return a line cut into rows; its style goes on from row to row."""
    plain = unstyled(line)
    if cells(plain) <= width:
        return [line]
    style, rows = first_style(line), []
    while plain and (place := cut_place(plain, width)):
        rows.append(f"{style}{plain[:place]}\x1b[0m" if style else plain[:place])
        plain = plain[place:]
    return rows
