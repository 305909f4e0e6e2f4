"""Applying the hunks of a patch to a text: all of them, each where its lines are, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from files_tool.diffs import lines_of
from files_tool.errors import Refused
from files_tool.nearest import nearest_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from files_tool.patches import Hunk
    from files_tool.texts import Text

_NAMED = 5


def apply_hunks(text: Text, hunks: Sequence[Hunk], name: str) -> str:
    """Return a text after the hunks; lines that stay keep their ends, and new ones get what most have.

    A hunk is looked for where its heading says, then nearest to it. One without numbers must fit once only.

    Raises:
        Refused: If the lines of a hunk are not there, or at several places; *name* is for the words.
    """
    lines = lines_of(text.text)
    ends_are_told = any(not line.endswith("\n") for hunk in hunks for _, line in hunk.lines)
    lacks_end = bool(lines) and not lines[-1].endswith("\n") and not ends_are_told
    if lacks_end:  # few patches tell it: the end stays as it was
        lines[-1] += text.line_end
    changed = "".join(_applied(lines, hunks, text.line_end, name))
    return changed.removesuffix(text.line_end) if lacks_end else changed


def _applied(lines: Sequence[str], hunks: Sequence[Hunk], line_end: str, name: str) -> Iterator[str]:
    plain = [f"{line[:-2]}\n" if line.endswith("\r\n") else line for line in lines]
    done, drift = 0, 0
    for hunk in hunks:
        at = _place(plain, hunk, done, drift, name)
        if hunk.start is not None and hunk.old:
            drift = at - (hunk.start - 1)
        yield from lines[done:at]
        done = at
        for sign, line in hunk.lines:
            if sign == "+":
                yield line.replace("\n", line_end)
            else:
                yield from lines[done : done + (sign == " ")]
                done += 1
    yield from lines[done:]


def _place(lines: Sequence[str], hunk: Hunk, done: int, drift: int, name: str) -> int:
    old = hunk.old
    if not old:
        return _place_of_insertion(lines, hunk, done, drift, name)
    places = [
        at
        for at in range(done, len(lines) - len(old) + 1)
        if lines[at] == old[0] and lines[at : at + len(old)] == old
    ]
    if not places:
        near = nearest_lines("".join(lines), "".join(old))
        raise Refused(f"hunk {hunk.number} of {name} does not fit: its lines are not there{near}")
    if hunk.start is None:
        return _only(places, hunk, name)
    expected = hunk.start - 1 + drift
    return min(places, key=lambda at: abs(at - expected))


def _place_of_insertion(lines: Sequence[str], hunk: Hunk, done: int, drift: int, name: str) -> int:
    if not lines:
        return 0
    if hunk.start is None or not done <= hunk.start + drift <= len(lines):
        raise Refused(
            f"hunk {hunk.number} of {name} has only new lines, so its place is not known: add lines around it"
        )
    return hunk.start + drift


def _only(places: Sequence[int], hunk: Hunk, name: str) -> int:
    if len(places) > 1:
        some = ", ".join(str(at + 1) for at in places[:_NAMED])
        raise Refused(
            f"hunk {hunk.number} of {name} fits at {len(places)} places (lines {some}): add lines around it, "
            "or the line numbers"
        )
    return places[0]
