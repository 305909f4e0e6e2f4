"""Markdown as it arrives: a line is shown when it is finished, and never redrawn.

A line is finished at its line break, or when it has become as wide as the terminal. Only what needs more
than one line is remembered: a code block until its fence closes, a table until its last row has come. So
what is written to the terminal is about as long as the text, nothing flickers, and what was shown can be
scrolled and copied. Tables are laid out by cells; if they do not fit, each row becomes a block.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from agent_terminal_app.chat.rendering.highlight import Highlighter, highlighter
from agent_terminal_app.chat.rendering.text import clean, most_cells, padded, styled
from agent_terminal_app.chat.rendering.wrap import cut_line, seen, show, wrapped
from agent_terminal_app.rows import cells, cut_place, is_wider

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = " │ "
_NARROWEST = 4


def table_lines(
    rows: Sequence[Sequence[str]], *, right: Sequence[bool] = (), width: int | None, color: bool
) -> list[str]:
    """Return a table as lines.

    Args:
        rows: The headings, then the rows; those that are short are filled up.
        right: Which columns stand at the right.
        width: How many cells there are; None if that does not matter.
    """
    count = max(map(len, rows), default=0)
    full = [[*row, *[""] * (count - len(row))] for row in rows]
    wanted = [max(most_cells(seen(row[n], color=color)) for row in full) for n in range(count)]
    widths = _shrunk(wanted, None if width is None else width - len(_GAP) * (count - 1))
    if widths is None:
        return _below_each_other(full, color=color)
    sides = [*right, *[False] * (count - len(right))]
    lines = [line for row in full[:1] for line in _row(row, widths, sides, ("bold",), color=color)]
    lines.append(styled("─┼─".join("─" * one for one in widths), "dim", color=color))
    return [*lines, *(line for row in full[1:] for line in _row(row, widths, sides, (), color=color))]


def _shrunk(wanted: list[int], room: int | None) -> list[int] | None:
    """Return widths that fit: the widest columns give way first; None if there is no room for all."""
    if room is None or sum(wanted) <= room:
        return wanted
    if room < sum(min(one, _NARROWEST) for one in wanted):
        return None
    low, high = _NARROWEST, max(wanted)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(one, middle) for one in wanted) <= room else (low, middle - 1)
    widths = [min(one, low) for one in wanted]
    spare = room - sum(widths)
    for n, one in enumerate(wanted):  # what is left goes to the first columns that want more
        if spare and one > widths[n]:
            widths[n], spare = widths[n] + 1, spare - 1
    return widths


def _row(
    row: Sequence[str], widths: Sequence[int], right: Sequence[bool], base: tuple[str, ...], *, color: bool
) -> list[str]:
    columns = [_column(cell, width, base, color=color) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for parts in zip_longest(*columns, fillvalue=""):
        fitted = [
            padded(part, width, right=side) for part, width, side in zip(parts, widths, right, strict=True)
        ]
        lines.append(_GAP.join(fitted).rstrip())
    return lines


def _column(cell: str, width: int, base: tuple[str, ...], *, color: bool) -> list[str]:
    """Return a cell in rows, as they are shown; where it must be cut its marks are left out."""
    text = seen(cell, color=color)
    if cells(text) <= width:
        return [show(cell, *base, color=color)]
    return [styled(part, *base, color=color) for row in wrapped(text, width) for part in _cut(row, width)]


def _cut(word: str, width: int) -> list[str]:
    """Return a row in pieces that fit, if it is one word that does not."""
    pieces = []
    while cells(word) > width and (place := cut_place(word, width)):
        pieces.append(word[:place])
        word = word[place:]
    return [*pieces, word]


def _below_each_other(rows: Sequence[Sequence[str]], *, color: bool) -> list[str]:
    """Return each row as a block, one line per column with its heading in front."""
    headings, *rest = rows
    lines = []
    for row in rest:
        for heading, cell in zip(headings, row, strict=True):
            name = show(heading, "bold", color=color)
            lines.append(f"{name}: {show(cell, color=color)}" if heading else show(cell, color=color))
        lines.append("")
    return lines[:-1] if lines else [show(" ".join(headings), "bold", color=color)]


_FENCE = re.compile(r"^\s*(```+|~~~+)")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*)$")
_QUOTE = re.compile(r"^ {0,3}((?:>\s?)+)(.*)$")
_BULLET = re.compile(r"^(\s*)[-*+]\s+(.*)$")
_NUMBER = re.compile(r"^(\s*\d{1,9}[.)])\s+(.*)$")
_RULE = re.compile(r"^ {0,3}([-*_])(?: *\1){2,} *$")
_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_CELL = re.compile(r"(?<!\\)\|")

_LONGEST_OPEN = 4000
"""A line that has become that long without an end is shown as far as it has come."""

_MOST_ROWS = 500
_RULE_WIDTH = 40
_TAB = 4


class Block(NamedTuple):
    """What a line is: what stands in front of its first row and of the others, and the style of its words."""

    first: str = ""
    rest: str = ""
    style: str = ""


class LineMarkdown:
    """Takes pieces of Markdown and gives finished lines back.

    Args:
        color: Whether styles are wanted.
        width: How many cells fit in a row; None if there is no limit.

    Attributes:
        width: May be changed at any time, since terminals change.
    """

    def __init__(self, *, color: bool, width: int | None = None) -> None:
        self.width = width
        self._color = color
        self._open = ""
        self._enough = 0  # how long the open line must be for a look at whether it can be cut
        self._begun: Block | None = None  # of the open line, if its first rows were shown
        self._fence = ""
        self._code: Highlighter | None = None  # of the block that is open, where styles are wanted
        self._table: list[str] = []  # rows that wait for the last one, or a line that may be the first

    def feed(self, piece: str) -> list[str]:
        """Take a piece and return the lines that it finishes."""
        *lines, self._open = (self._open + piece).split("\n")
        if lines:
            self._enough = 0
        shown = [row for line in lines for row in self._finished(line)]
        return [*shown, *self._overflow()]

    def end(self) -> list[str]:
        """Return what was begun and will not be finished."""
        rest, self._open = self._open, ""
        lines = self._finished(rest) if rest else []
        lines += self._release()
        self._fence, self._begun, self._code = "", None, None
        return lines

    def open_row(self) -> str:
        """Return the line that is not finished, as far as it has come and without styles."""
        line = clean(self._open).expandtabs(_TAB)
        if not line or self._fence:
            return line
        block, text = (self._begun, line) if self._begun is not None else self._read(line)
        return (block.first if self._begun is None else block.rest) + seen(text, color=self._color)

    def _finished(self, line: str) -> list[str]:
        """Return the rows of a line that is whole."""
        line = clean(line.rstrip("\r"))
        if self.width is not None:
            line = line.expandtabs(_TAB)
        if self._fence or self._begun is not None or _FENCE.match(line):
            return [*self._release(), *self._rows(line)]
        if self._belongs_to_table(line):
            self._table.append(line)
            return []
        shown = self._release()
        if "|" in line:
            self._table.append(line)
            return shown
        return [*shown, *self._rows(line)]

    def _belongs_to_table(self, line: str) -> bool:
        if len(self._table) == 1:
            same = len(_cells(line)) == len(_cells(self._table[0]))
            return same and "-" in line and _DELIMITER.match(line) is not None
        return 1 < len(self._table) < _MOST_ROWS and "|" in line

    def _release(self) -> list[str]:
        """Return the table that is complete now, or the line that was none."""
        rows, self._table = self._table, []
        if not rows[1:]:  # a table has headings and a line below them
            return [row for line in rows for row in self._rows(line)]
        right = [cell.endswith(":") and not cell.startswith(":") for cell in _cells(rows[1])]
        cells_of_rows = [_cells(line) for line in (rows[0], *rows[2:])]
        return table_lines(cells_of_rows, right=right, width=self.width, color=self._color)

    def _overflow(self) -> list[str]:
        """Return the rows of the open line that are full, and keep the rest of it."""
        if len(self._open) > _LONGEST_OPEN:
            line, self._open = self._open, ""
            return self._finished(line)
        if self.width is None or len(self._open) < self._enough or not self._may_be_cut():
            return []
        line = clean(self._open).expandtabs(_TAB)
        block, text = (self._begun, line) if self._begun is not None else self._read(line)
        rows, rest = self._cut(block, text, finished=False)
        if not rows:
            # Looking again at every piece of a line that cannot be cut would take long.
            room = self.width - cells(text) if 4 * self.width > len(text) else 0
            self._enough = len(self._open) + (max(room, 0) or self.width) // 2
            return []
        shown = [*self._release(), *rows]
        self._begun, self._open, self._enough = block, rest, 0
        return shown

    def _may_be_cut(self) -> bool:
        """Say whether the open line is prose: code stays as it is, and a row of a table stays whole."""
        if self._fence or _FENCE.match(self._open):
            return False
        return self._begun is not None or not (self._open.lstrip().startswith("|") or self._table[1:])

    def _rows(self, line: str) -> list[str]:
        fence = _FENCE.match(line) if self._begun is None else None
        if self._fence and (fence is None or not fence[1].startswith(self._fence)):
            return [line if self._code is None else self._code.line(line)]
        if fence is not None:
            self._begin_or_end_code(fence[1], line)
            return [styled(line, "dim", color=self._color)]
        if self._begun is None and _RULE.match(line):
            return [styled("─" * min(self.width or _RULE_WIDTH, _RULE_WIDTH), "dim", color=self._color)]
        block, text = (self._begun, line) if self._begun is not None else self._read(line)
        rows, rest = self._cut(block, text, finished=True)
        front = block.rest if rows or self._begun is not None else block.first
        self._begun = None
        return [*rows, self._row(front, rest, block)]

    def _begin_or_end_code(self, fence: str, line: str) -> None:
        self._fence = "" if self._fence else fence
        self._code = highlighter(line) if self._fence and self._color else None

    def _cut(self, block: Block, text: str, *, finished: bool) -> tuple[list[str], str]:
        """Return the full rows of a text, and what is left."""
        rows: list[str] = []
        front = block.first if self._begun is None else block.rest
        while self.width is not None and is_wider(text, self.width - cells(front)):
            parts = cut_line(text, max(self.width - cells(front), 1), finished=finished)
            if parts is None:
                break
            rows.append(self._row(front, parts[0], block))
            text, front = parts[1], block.rest
        return rows, text

    def _row(self, front: str, text: str, block: Block) -> str:
        return styled(front, block.style, color=self._color) + show(text, block.style, color=self._color)

    def _read(self, line: str) -> tuple[Block, str]:
        """Return what a line is, and its words."""
        if (found := _HEADING.match(line)) is not None:
            mark = "" if self._color else f"{found[1]} "
            return Block(mark, mark, "heading"), found[2]
        if (found := _QUOTE.match(line)) is not None:
            front = "│ " * found[1].count(">")
            return Block(front, front, "dim"), found[2]
        if (found := _BULLET.match(line)) is not None:
            return Block(f"{found[1]}• ", f"{found[1]}  "), found[2]
        if (found := _NUMBER.match(line)) is not None:
            return Block(f"{found[1]} ", padded("", cells(found[1]) + 1)), found[2]
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        return Block(indent, indent), text


def _cells(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    bare = line.strip().removeprefix("|")
    if bare.endswith("|") and not bare.endswith("\\|"):
        bare = bare[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(bare)]
