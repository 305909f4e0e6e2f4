"""Large pastes: a mark in the prompt stands for them, and they are put back when the line is sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINES = 10
_MOST_CHARACTERS = 2000
_MARK = re.compile(r"\[pasted text #(\d+), [\d,]+ (?:lines?|characters)\]")
_REMEMBERED = 20_000


class Pastes:
    """The large pastes of one sitting."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, text: str) -> str:
        """Return what stands in the prompt for a paste: itself, or a mark if it is large."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= _MOST_LINES and len(text) <= _MOST_CHARACTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[pasted text #{number}, {size}]"

    def marks(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the marks are."""
        for found in _MARK.finditer(text):
            if int(found[1]) in self._texts:
                yield found.span()

    def around(self, text: str, place: int) -> tuple[int, int] | None:
        """Return the mark that a place is in or behind of, if there is one."""
        return next(((start, end) for start, end in self.marks(text) if start < place <= end), None)

    def put_back(self, text: str) -> str:
        """Return a text with the pastes in place of their marks."""
        return _MARK.sub(lambda found: self._texts.get(int(found[1]), found[0]), text)

    def to_remember(self, text: str) -> str:
        """Return a text as history keeps it: whole if that is not too much, and else with other marks.

        A mark with a number would mean another paste in the next sitting.
        """
        whole = self.put_back(text)
        if len(whole) <= _REMEMBERED:
            return whole
        return _MARK.sub(lambda found: found[0].replace(f" #{found[1]}", ""), text)
