"""Where in a text something is that is almost what was looked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = re.compile(r"\w+|[^\w\s]")
_SHOWN = 12
_LONGEST = 200
_ALIKE = 0.3


def nearest_lines(text: str, wanted: str) -> str:
    """Return a sentence with the numbered lines that look most like *wanted*; empty if none does."""
    lines, looked_for = text.split("\n"), wanted.strip("\n").split("\n")
    at = _only_spaced_otherwise(lines, looked_for)
    if at is not None:
        return ". The same text with other white space is there:\n" + _numbered(lines, at, len(looked_for))
    at = _most_alike(lines, looked_for)
    return "" if at is None else ". The nearest lines are:\n" + _numbered(lines, at, len(looked_for))


def _only_spaced_otherwise(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    bare = ["".join(line.split()) for line in lines]
    looked_for = ["".join(line.split()) for line in wanted]
    if not any(looked_for):
        return None
    starts = (at for at, line in enumerate(bare) if looked_for[0] in line)
    return next((at for at in starts if _follow(bare[at : at + len(wanted)], looked_for)), None)


def _follow(bare: Sequence[str], wanted: Sequence[str]) -> bool:
    """Say whether lines have what is wanted: the first one at its end, the last one at its beginning."""
    if len(wanted) == 1:
        return wanted[0] in bare[0]
    return (
        len(bare) == len(wanted)
        and bare[0].endswith(wanted[0])
        and bare[-1].startswith(wanted[-1])
        and list(bare[1:-1]) == list(wanted[1:-1])
    )


def _most_alike(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the line at which *wanted* would begin if its longest line were where most of its words are."""
    anchor = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()))
    words = set(_WORD.findall(wanted[anchor][: 10 * _LONGEST]))
    if not words:
        return None
    best, found = _ALIKE, None
    for at, line in enumerate(lines):
        others = set(_WORD.findall(line[: 10 * _LONGEST]))
        score = len(words & others) / len(words | others)
        if score > best:
            best, found = score, at
    return None if found is None else max(0, found - anchor)


def _numbered(lines: Sequence[str], at: int, count: int) -> str:
    taken = lines[at : at + min(count, _SHOWN)]
    return "\n".join(f"{number:>6}\t{line[:_LONGEST]}" for number, line in enumerate(taken, at + 1))
