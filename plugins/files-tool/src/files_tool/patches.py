"""Unified diffs, read: which files they are about, and what they do to each.

Read are the diffs that `diff -u` and git write, and those that models write, whose headings often
miscount: a heading `@@` without numbers is fine, since a hunk is found by its lines. A heading with
numbers must be right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from files_tool.diffs import lines_of
from files_tool.places import Refused
from files_tool.texts import nearest_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from files_tool.texts import Text


_HUNK = re.compile(
    r"@@(?: -(?P<start>\d{1,9})(?:,(?P<old>\d{1,9}))? \+\d+(?:,(?P<new>\d{1,9}))?)?(?: @@.*)?\s*$"
)
_NOTHING = "/dev/null"
_MADE, _REMOVED = "new file mode ", "deleted file mode "
_FROM, _TO = "rename from ", "rename to "
_NOTES = (_MADE, _REMOVED, _FROM, _TO)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that take the place of others.

    Attributes:
        start: The line at which the heading says that it begins, from 1; None if it does not say.
        lines: The lines, each with its end, behind a sign: "-" for one that goes, "+" for one that comes, and
            " " for one that stays.
        number: Which hunk of its file it is, from 1.
    """

    start: int | None
    lines: tuple[tuple[str, str], ...]
    number: int = 1

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [line for sign, line in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that are there afterwards."""
        return [line for sign, line in self.lines if sign != "-"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """What a patch does to one file.

    Attributes:
        old: The name before; None for a file that is new.
        new: The name after; None for a file that is removed.
        hunks: The changes, in order; none for a mere change of name.
    """

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names that it is about, each once."""
        return list(dict.fromkeys(name for name in (self.old, self.new) if name is not None))


def read_patch(text: str) -> list[FilePatch]:
    """Read a patch.

    Raises:
        Refused: If it is none; the text says at which line.
    """
    patches = _Reading(text).patches()
    if not patches:
        raise Refused(
            "the patch is about no file: begin each file with the lines '--- a/name' and '+++ b/name'"
        )
    return patches


class _Reading:
    """A patch that is being read, line by line."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").split("\n")
        if self._lines[-1] == "":
            self._lines.pop()
        self._at = 0

    def patches(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        while (line := self._line()) is not None:
            if line.startswith("diff --git "):
                found += self._git_file()
            elif self._is_heading():
                found.append(self._file())
            elif line.startswith(("@@", "GIT binary patch", "Binary files ")):
                raise self._error("a file's heading is missing, or the file is not text")
            else:  # what people write between files is theirs
                self._at += 1
        return found

    def _git_file(self) -> list[FilePatch]:
        """Read the lines that git puts before a file; a mere change of name has no others."""
        headings: dict[str, str] = {}
        self._at += 1
        while (line := self._line()) is not None and not line.startswith("diff --git "):
            if self._is_heading():
                return [self._file()]
            if line.startswith(("GIT binary patch", "Binary files ", "copy from ")):
                raise self._error("only changes of texts can be applied, not binary ones and no copies")
            headings |= {note: line.removeprefix(note) for note in _NOTES if line.startswith(note)}
            self._at += 1
        if _FROM in headings and _TO in headings:
            return [FilePatch(old=_unquoted(headings[_FROM]), new=_unquoted(headings[_TO]))]
        if _MADE in headings or _REMOVED in headings:
            raise self._error("an empty file cannot be made or removed by a patch: give it a line")
        return []

    def _is_heading(self) -> bool:
        line, following = self._line() or "", self._line(1) or ""
        return line.startswith("--- ") and following.startswith("+++ ")

    def _file(self) -> FilePatch:
        old, new = _names(self._lines[self._at], self._lines[self._at + 1])
        if old is None and new is None:
            raise self._error("both names are /dev/null")
        self._at += 2
        hunks: list[Hunk] = []
        while (line := self._line()) is not None and line.startswith("@@"):
            hunks.append(self._hunk(len(hunks) + 1))
        if not hunks and old == new:
            raise self._error("the file has no hunks: each begins with a line '@@'")
        return FilePatch(old=old, new=new, hunks=tuple(hunks))

    def _hunk(self, number: int) -> Hunk:
        heading = _HUNK.match(self._lines[self._at])
        if heading is None:
            raise self._error("a hunk begins '@@ -line,count +line,count @@', or '@@' alone")
        began = self._at
        self._at += 1
        if heading["start"] is None:
            return Hunk(None, _without_blank_end(self._body(None)), number)
        counts = int(heading["old"] or 1), int(heading["new"] or 1)
        hunk = Hunk(int(heading["start"]), self._body(counts), number)
        found = len(hunk.old), len(hunk.new)
        if found != counts:
            self._at = began
            raise self._error(
                f"the heading says {counts[0]} old and {counts[1]} new lines, but {found[0]} and {found[1]} "
                "follow; correct it, or write '@@' alone"
            )
        return hunk

    def _body(self, counts: tuple[int, int] | None) -> tuple[tuple[str, str], ...]:
        lines: list[tuple[str, str]] = []
        old, new = 0, 0
        while (line := self._line()) is not None:
            if line.startswith("\\") and lines:  # the line before has no newline at its end
                sign, last = lines.pop()
                lines.append((sign, last.removesuffix("\n")))
            elif (old, new) == counts or self._ends_hunk(line, is_counted=counts is not None):
                break
            else:
                sign = line[:1] or " "  # many editors take the space from an empty line
                lines.append((sign, f"{line[1:]}\n"))
                old, new = old + (sign != "+"), new + (sign != "-")
            self._at += 1
        return tuple(lines)

    def _ends_hunk(self, line: str, *, is_counted: bool) -> bool:
        if line.startswith(("@@", "diff --git ")) or line[:1] not in ("", " ", "+", "-"):
            return True
        return not is_counted and self._is_heading()

    def _line(self, ahead: int = 0) -> str | None:
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else None

    def _error(self, problem: str) -> Refused:
        return Refused(f"the patch cannot be read, line {self._at + 1}: {problem}")


def _without_blank_end(lines: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the lines of a hunk without empty ones at its end, which only stand between it and the next."""
    end = len(lines)
    while end and lines[end - 1] == (" ", "\n"):
        end -= 1
    return lines[:end]


def _names(old_line: str, new_line: str) -> tuple[str | None, str | None]:
    """Return the names in a heading; what git puts before them is removed where it stands before both."""
    old, new = (_name(line[4:]) for line in (old_line, new_line))
    if (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
        return old and old[2:], new and new[2:]
    return old, new


def _name(written: str) -> str | None:
    name = _unquoted(written.partition("\t")[0])  # behind a tab stands the time
    return None if name == _NOTHING else name


def _unquoted(name: str) -> str:
    """Return a name that git has put into quotation marks, with its escapes."""
    if len(name) < 2 or not name.startswith('"') or not name.endswith('"'):  # noqa: PLR2004 - two marks
        return name
    data = re.sub(
        r"\\([0-7]{3}|.)",
        lambda found: chr(int(found[1], 8)) if found[1].isdigit() else _ESCAPES.get(found[1], found[1]),
        name[1:-1].encode().decode("latin-1"),
    )
    return data.encode("latin-1", "replace").decode(errors="replace")


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
