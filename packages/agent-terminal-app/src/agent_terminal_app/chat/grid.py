"""Tables, laid out by cells within a width: columns beside each other, or one below the other."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from agent_terminal_app.chat.inline import seen, show, wrapped
from agent_terminal_app.chat.text import cells, cut_place, most_cells, padded, styled

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
