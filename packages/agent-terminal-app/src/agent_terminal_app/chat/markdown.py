"""Markdown as it arrives: a line is shown when it is finished, and never shown again.

A line is finished when the text says so, or when it has become as wide as the terminal. Only what needs
more than a line is remembered: a code block until its fence closes, a table until its last row is there.
So what is written to the terminal is about as long as the text, nothing flickers, and what was shown can
be scrolled and copied.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent_terminal_app.chat.grid import table_lines
from agent_terminal_app.chat.highlight import Highlighter, highlighter
from agent_terminal_app.chat.inline import cut_line, show
from agent_terminal_app.chat.text import cells, clean, is_wider, padded, styled

__all__ = ["LineMarkdown", "clean", "styled"]

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
        width: How many cells fit beside each other; None if that does not matter.

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
        held, self._table = self._table, []
        if len(held) < 2:  # noqa: PLR2004 - a table has headings and a line below them
            return [row for line in held for row in self._rows(line)]
        right = [cell.endswith(":") and not cell.startswith(":") for cell in _cells(held[1])]
        rows = [_cells(line) for line in (held[0], *held[2:])]
        return table_lines(rows, right=right, width=self.width, color=self._color)

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
