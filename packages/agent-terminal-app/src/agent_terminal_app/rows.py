"""Text in rows of a terminal: what fits is measured in cells, and rows end between words.

A word that is wider than a row stays whole, so that an address or a path can be copied.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from wcwidth import wcswidth, wcwidth

if TYPE_CHECKING:
    from collections.abc import Sequence

CODE_OR_LINK = re.compile(r"`+[^`]+`+|!?\[[^\[\]]*\]\([^\s()]*\)")
"""What is kept in one row where it fits into one."""
_FENCES = ("```", "~~~")

# Small marks that do not begin a row, where rows are cut between any two characters.
_NOT_FIRST = frozenset("、。，．：；！？）］｝〉》」』】〕ー…")  # noqa: RUF001 - they are meant
_JOINER = "\u200d"


def cells(text: str) -> int:
    """Return how many cells of a terminal text takes that has no controls in it."""
    if text.isascii():
        return len(text)
    return max(wcswidth(text), 0)


@lru_cache(maxsize=4096)
def cell(char: str) -> int:
    """Return how many cells one character takes by itself."""
    return max(wcwidth(char), 0)


def is_wider(text: str, width: int) -> bool:
    """Say whether text takes more cells than there are, without measuring all of a long one."""
    return cells(text[: 4 * max(width, 0) + 40]) > width


def cut_place(text: str, width: int) -> int:
    """Return how many characters of a text fit into so many cells."""
    if text.isascii():
        return min(len(text), width)
    used = 0
    for place, char in enumerate(text):
        used += cell(char)
        if used > width:
            return place
    return len(text)


def may_break(line: str, place: int) -> bool:
    """Say whether a row may end before a place of a line: between words, or next to a wide character."""
    before, here = line[place - 1], line[place]
    if here == " ":
        return before != " "
    if before == " " or (here.isascii() and before.isascii()):
        return False
    wide = cell(before) > 1 or cell(here) > 1
    return wide and before != _JOINER and cell(here) > 0 and here not in _NOT_FIRST


_INDENT = 6
"""The indent of a text that does not fit to the right of something and is put below it."""

_NARROWEST = 28
"""How many cells a text needs to be readable in a column of its own."""


def in_rows(
    line: str, width: int | None, hang: int | None = None, keep: re.Pattern[str] | None = None
) -> list[str]:
    """Return a line in rows.

    Args:
        width: How many cells there are; None if that does not matter.
        hang: How far all rows but the first are set off; by default a little further than the line itself.
        keep: What is not cut as long as it fits into a row.
    """
    if width is None or not is_wider(line, width):
        return [line]
    indent = len(line) - len(line.lstrip(" "))
    front = " " * min(indent + 2 * bool(indent) if hang is None else hang, width // 2)
    first, rest = _cut(line, width, keep)
    rows = [first]
    while rest:
        row, rest = _cut(rest, width - len(front), keep)
        rows.append(front + row)
    return rows


def prose_rows(text: str, width: int | None) -> list[str]:
    """Return what somebody wrote in rows; lines of code blocks stay whole, code and links if they fit."""
    rows: list[str] = []
    in_code = False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith(_FENCES)
        rows += in_rows(line, None if in_code or is_fence else width, keep=CODE_OR_LINK)
        in_code ^= is_fence
    return rows


def two_columns(front: str, about: str, width: int | None) -> list[str]:
    """Return a front part and a text in a column to its right; below it if the column is too narrow.

    Args:
        front: The columns before the last one, filled up.
    """
    whole = f"{front} {about}".rstrip()
    if width is None or not is_wider(whole, width):
        return [whole]
    place = cells(front) + 1
    if width - place < min(_NARROWEST, cells(about)):
        return [*in_rows(front.rstrip(), width, _INDENT), *in_rows(" " * _INDENT + about, width, _INDENT)]
    first, *more = in_rows(about, width - place)
    return [f"{front} {first}", *(" " * place + row for row in more)]


def columns(front: Sequence[tuple[str, int]], about: str, width: int | None) -> list[str]:
    """Return a row of a table in which each cell takes as many rows as it needs, in a column of its own.

    A cell that does not fit into its column, or a last column that is too narrow, makes it `two_columns`.

    Args:
        front: The cells before the last one, each with the width of its column.
    """
    wides = [wide for _text, wide in front]
    place = sum(wides) + len(wides)
    parts = [in_rows(text, wide) for text, wide in front]
    fits = all(cells(row) <= wide for rows, wide in zip(parts, wides, strict=True) for row in rows)
    if width is None or not fits or width - place < _NARROWEST:
        return two_columns(_filled([text for text, _wide in front], wides), about, width)
    table = zip_longest(*parts, in_rows(about, width - place), fillvalue="")
    return [f"{_filled(row[:-1], wides)} {row[-1]}".rstrip() for row in table]


def _filled(row: Sequence[str], wides: Sequence[int]) -> str:
    return " ".join(text + " " * (wide - cells(text)) for text, wide in zip(row, wides, strict=True))


def _cut(text: str, width: int, keep: re.Pattern[str] | None = None) -> tuple[str, str]:
    """Return the first row of a text, and the rest, if there is one."""
    if not is_wider(text, width):
        return text, ""
    fits = cut_place(text, width)
    near = keep.finditer(text[: fits + width]) if keep is not None else ()
    kept = [found.span() for found in near if not is_wider(found[0], width)]
    places = [place for place in range(min(fits, len(text) - 1), 0, -1) if may_break(text, place)]
    places = [place for place in places if text[:place].strip()]
    outside = (one for one in places if not any(start < one < end for start, end in kept))
    place = next(outside, next(iter(places), None))
    if place is None:
        later = (one for one in range(fits + 1, len(text)) if may_break(text, one))
        place = next((one for one in later if text[:one].strip()), len(text))
    return text[:place].rstrip(" "), text[place:].lstrip(" ")
