"""Unified diffs: what a person sees of a change, before and after it is made.

The time stays near linear, whatever is compared: lines that both sides have once are the anchors, and only
short stretches between them are compared line by line with `difflib`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from files_tool.limits import SHOWN_DIFF, amount
from files_tool.texts import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AROUND = 3
_SHORT = 400
_MOST_LINES = 400_000
NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff, and how many lines it adds and removes."""

    text: str
    added: int = 0
    removed: int = 0


class _Change(NamedTuple):
    """Lines `start` to `end` of the old text become lines `new_start` to `new_end` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


def diff(name: str, before: bytes | None, after: bytes | None) -> Diff:
    """Return the difference of two contents of a file; None is a file that is not there."""
    heading = f"--- {'/dev/null' if before is None else f'a/{name}'}\n"
    heading += f"+++ {'/dev/null' if after is None else f'b/{name}'}\n"
    old, new = decode(before or b""), decode(after or b"")
    if old is None or new is None:
        sizes = " to ".join("nothing" if data is None else amount(len(data)) for data in (before, after))
        text = f"{heading}Binary file changed from {sizes}\n"
        return Diff(text) if new is None else _whole(f"{text}All of the new text:\n", new.text)
    counts = [text.text.count("\n") + 1 if text.text else 0 for text in (old, new)]
    if sum(counts) > _MOST_LINES:
        text = f"{heading}Text of {counts[0]} lines changed to one of {counts[1]}\nAll of the new text:\n"
        return _whole(text, new.text, removed=counts[0])
    lines, new_lines = lines_of(old.text), lines_of(new.text)
    changes = list(_changes(lines, new_lines))
    hunks = "".join(_hunk(group, lines, new_lines) for group in _groups(changes))
    return Diff(
        heading + hunks,
        sum(change.new_end - change.new_start for change in changes),
        sum(change.end - change.start for change in changes),
    )


def _whole(heading: str, text: str, *, removed: int = 0) -> Diff:
    """Return all of a new text where no difference to the old one can be shown: it is not approved unseen."""
    lines = lines_of(text)
    return Diff(heading + "".join(f"+{line.removesuffix(chr(10))}\n" for line in lines), len(lines), removed)


def shown(diffs: Sequence[Diff]) -> str:
    """Return diffs as one text, as much of it as a person is shown."""
    pieces: list[str] = []
    room = SHOWN_DIFF
    for number, one in enumerate(diffs):
        data = one.text.encode()
        if len(data) > room:
            head = data[:room].decode(errors="ignore").rpartition("\n")[0]
            pieces.append(f"{head}\n{_left_out(one, head, len(diffs) - number - 1)}")
            break
        pieces.append(one.text)
        room -= len(data)
    return "".join(pieces)


def _left_out(cut: Diff, head: str, files: int) -> str:
    lines = cut.text.count("\n") - head.count("\n") - 1
    others = f", and {files} files more" if files else ""
    return f"… {lines} lines more{others} are not shown\n"


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, each with its end; the last may have none."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    """Yield the stretches that differ, in order."""
    same = _common(old, new)
    at, new_at = 0, 0
    for anchor, new_anchor in [*_anchors(old[same:], new[same:]), (len(old) - same, len(new) - same)]:
        stop, new_stop = anchor + same, new_anchor + same
        yield from _between(old, new, _Change(max(at, same), stop, max(new_at, same), new_stop))
        at, new_at = stop + 1, new_stop + 1


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines are the same from the beginning."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of places at which both have the same line that neither has twice, rising in both."""
    if len(old) + len(new) <= _SHORT:
        return []
    once = {line for line, count in Counter(old).items() if count == 1}
    places = {line: at for at, line in enumerate(old) if line in once}
    counts = Counter(new)
    pairs = [(places[line], at) for at, line in enumerate(new) if counts[line] == 1 and line in places]
    return _rising(pairs)


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest selection, in order, whose first numbers rise (patience sorting)."""
    tops: list[int] = []
    chosen: list[int] = []
    previous: list[int] = []
    for number, (place, _) in enumerate(pairs):
        pile = bisect_left(tops, place)
        previous.append(chosen[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [place]
        chosen[pile : pile + 1] = [number]
    found, number = [], chosen[-1] if chosen else -1
    while number >= 0:
        found.append(pairs[number])
        number = previous[number]
    return found[::-1]


def _between(old: Sequence[str], new: Sequence[str], gap: _Change) -> Iterator[_Change]:
    """Yield what differs in a gap between two anchors."""
    lines, new_lines = old[gap.start : gap.end], new[gap.new_start : gap.new_end]
    head = _common(lines, new_lines)
    tail = _common(lines[head:][::-1], new_lines[head:][::-1])
    start, end = gap.start + head, gap.end - tail
    new_start, new_end = gap.new_start + head, gap.new_end - tail
    if start == end and new_start == new_end:
        return
    if end - start + new_end - new_start > _SHORT:
        yield _Change(start, end, new_start, new_end)
        return
    matcher = SequenceMatcher(None, old[start:end], new[new_start:new_end])
    for kind, one, other, new_one, new_other in matcher.get_opcodes():
        if kind != "equal":
            yield _Change(start + one, start + other, new_start + new_one, new_start + new_other)


def _groups(changes: Sequence[_Change]) -> Iterator[list[_Change]]:
    """Yield changes together that are so near that the lines around them meet."""
    group: list[_Change] = []
    for change in changes:
        if group and change.start - group[-1].end > 2 * _AROUND:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(group: Sequence[_Change], old: Sequence[str], new: Sequence[str]) -> str:
    first, last = group[0], group[-1]
    start, end = max(0, first.start - _AROUND), min(len(old), last.end + _AROUND)
    new_start, new_end = first.new_start - (first.start - start), last.new_end + (end - last.end)
    written = [f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@\n"]
    at = start
    for change in group:
        written += [f" {line}" for line in old[at : change.start]]
        written += [f"-{line}" for line in old[change.start : change.end]]
        written += [f"+{line}" for line in new[change.new_start : change.new_end]]
        at = change.end
    written += [f" {line}" for line in old[at:end]]
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in written)


def _span(start: int, end: int) -> str:
    """Return a range as a hunk's heading has it: from 1, and of no lines the place before."""
    return f"{start + (end > start)},{end - start}"
