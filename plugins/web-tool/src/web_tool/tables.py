"""Tables: rows of cells where they hold data, plain text where they only arrange a page."""

from __future__ import annotations

from typing import Final

from web_tool.writing import GAP

_LONGEST_CELL: Final = 400
"""A longer cell, or one with several long paragraphs, is no piece of data."""


class Table:
    """The cells of a table, row by row."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._has_heading = False

    def begin_row(self) -> None:
        """Begin another row."""
        self._rows.append([])

    def add_cell(self, text: str, *, is_heading: bool) -> None:
        """Add a cell to the row."""
        if not self._rows:
            self.begin_row()
        if is_heading and len(self._rows) == 1:
            self._has_heading = True
        self._rows[-1].append(text)

    def blocks(self) -> list[str]:
        """Return the table as blocks of text: one for data, one for each cell of a mere arrangement."""
        rows = [row for row in self._rows if any(row)]
        if self._only_arranges(rows):
            return [block for row in rows for cell in row for block in cell.split(GAP) if block]
        lines = [f"| {' | '.join(map(_one_line, row))} |" for row in rows]
        if self._has_heading and lines:
            lines.insert(1, f"|{' --- |' * len(rows[0])}")
        return ["\n".join(lines)] if lines else []

    @staticmethod
    def _only_arranges(rows: list[list[str]]) -> bool:
        widest = max(map(len, rows), default=0)
        return widest <= 1 or any(len(cell) > _LONGEST_CELL for row in rows for cell in row)


def _one_line(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
