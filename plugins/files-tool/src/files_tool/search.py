"""`list_files`, `find_files` and `search_files`: what there is, by name and by line, in order."""

from __future__ import annotations

import codecs
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agent_plugin_kit.sandbox import is_secret_file
from files_tool.contents import Missed, PassedOver, Why, read_small
from files_tool.descriptors import opened_folder
from files_tool.expressions import compiled
from files_tool.gitignore import expression_of
from files_tool.limits import ANSWER_CHARACTERS, LONGEST_MATCH, amount
from files_tool.places import Refused, shown
from files_tool.ripgrep import candidates
from files_tool.tree import IS_FILE, IS_FOLDER, IS_LINK, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from files_tool.expressions import Expression, Search
    from files_tool.places import Place
    from files_tool.tree import Choice, Entry


def list_folders(starts: Sequence[tuple[Place, Choice]], limit: int) -> str:
    """Return what is in folders: folders with a slash, files with their size, links with their target."""
    lines = (_line(start, entry) for start, choice in starts for entry in walk(start, choice))
    answer, is_cut = _limited(
        lines, limit, "the folder is empty", "list a folder further down, or raise limit"
    )
    return answer if is_cut else _with_missed(answer, starts, "listed")


def find(starts: Sequence[tuple[Place, Choice]], glob: str, limit: int) -> str:
    """Return the files whose path fits a glob.

    Raises:
        Refused: If the glob cannot be read, or the folder not be opened.
    """
    expression = glob_expression(glob)
    lines = (
        _named(start, entry)
        for start, choice in starts
        for entry in walk(start, choice)
        if entry.kind != IS_FOLDER and fits(expression, start, entry.path)
    )
    nothing, advice = f"no file fits {shown(glob)}", "make the pattern narrower, or raise limit"
    answer, is_cut = _limited(lines, limit, nothing, advice)
    return answer if is_cut else _with_missed(answer, starts, "looked into")


def glob_expression(glob: str) -> Expression:
    """Return the expression for a glob that a model wrote.

    Raises:
        Refused: If it cannot be read.
    """
    source = expression_of(glob.removeprefix("./"), braces=True) if glob.strip("/") else None
    found = None if source is None else compiled(source)
    if found is None:
        raise Refused(f"the glob {shown(glob)} cannot be read: close every bracket and brace")
    return found


def fits(expression: Expression, start: Place, path: str) -> bool:
    """Say whether a path, seen from the folder where the search began, fits."""
    below = path[len(start.path) + 1 :] if start.parts else path
    return expression.fits(below if below.isascii() else below.encode(errors="replace").decode())


def _with_missed(answer: str, starts: Iterable[tuple[Place, Choice]], verb: str) -> str:
    """Return an answer with what was passed over on the way to it."""
    missed = Missed()
    for _, choice in starts:
        missed.include(choice.missed)
    return "\n".join([answer, *missed.text(verb)])


def _limited(lines: Iterator[str], limit: int, nothing: str, advice: str) -> tuple[str, bool]:
    """Return so many lines as one text, and whether there are more."""
    listed: list[str] = []
    room = ANSWER_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if len(listed) == limit or room < 0:
            return "\n".join([*listed, f"[there is more: {advice}]"]), True
        listed.append(line)
    return "\n".join(listed) or f"[{nothing}]", False


def _line(start: Place, entry: Entry) -> str:
    if entry.kind == IS_FOLDER:
        return f"{start.below(entry.path).shown}/"
    size = ""
    if entry.kind == IS_FILE:
        with suppress(OSError):
            size = f"  {amount(os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False).st_size)}"
    return f"{_named(start, entry)}{size}"


def _named(start: Place, entry: Entry) -> str:
    name = start.below(entry.path).shown
    if entry.kind == IS_FILE:
        return name
    if entry.kind != IS_LINK:
        return f"{name}  (no regular file)"
    with suppress(OSError):
        return f"{name} -> {shown(os.readlink(entry.name, dir_fd=entry.folder))}"
    return name


_MORE = "[there is more: narrow the pattern, the folder or the glob, or raise limit]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is looked for, and how much of it.

    Attributes:
        search: The expression.
        glob: Which files only, if not all.
        around: How many lines before and after a match are shown.
        names_only: Whether only the names of files are wanted.
        limit: How many lines, or names, at most.
    """

    search: Search
    glob: Expression | None = None
    around: int = 0
    names_only: bool = False
    limit: int


@dataclass(frozen=True, slots=True)
class Found:
    """A file that has matches: its lines, and which of them match, from 0."""

    place: Place
    lines: Sequence[str]
    matched: Sequence[int]


def search(starts: Iterable[tuple[Place, Choice]], wanted: Wanted, ripgrep: str | None) -> str:
    """Return what was found, as text: `path:line: text`.

    Raises:
        Refused: If a folder cannot be opened.
    """
    look = partial(_by_ripgrep, ripgrep) if ripgrep else _by_reading
    answer, missed, secret = _Answer(wanted), Missed(), 0
    for start, choice in starts:
        for found in look(start, choice, wanted):
            if is_secret_file(found.place.parts[-1]) and not wanted.names_only:
                secret += 1  # reading one is asked about, so searching does not show its lines
                continue
            answer.take(found)
            if answer.is_full:
                return answer.text()
        missed.include(choice.missed)
    held = [f"[{secret} files that may hold keys have matches, which are not shown: read_file asks]"]
    return "\n".join([answer.text(), *(held if secret else ()), *missed.text("searched")])


def matches_in(data: bytes, search: Search) -> tuple[list[str], list[int]] | None:
    """Return the lines of a text and which of them match; None if none does, or it is not text."""
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data or b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _matches_in_bytes(data, search)
    if not search.text.fits(text):
        return None
    return _matching([line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")], search)


def _matches_in_bytes(data: bytes, search: Search) -> tuple[list[str], list[int]] | None:
    """Do the same where not everything is UTF-8; what is not matches nothing, so it becomes a newline."""
    lines = [line.removesuffix(b"\r") for line in data.removesuffix(b"\n").split(b"\n")]
    found = _matching([line.decode(errors=_UNMATCHED) for line in lines], search)
    return found and ([line.decode(errors="replace") for line in lines], found[1])


def _matching(lines: list[str], search: Search) -> tuple[list[str], list[int]] | None:
    matched = [number for number, line in enumerate(lines) if search.line.fits(line)]
    return (lines, matched) if matched else None


def _by_reading(start: Place, choice: Choice, wanted: Wanted) -> Iterator[Found]:
    """Look at every file."""
    choice.missed.forget()
    for entry in _files(start, choice, wanted):
        yield from _found(start, entry.path, entry.folder, choice, wanted)


def _by_ripgrep(program: str, start: Place, choice: Choice, wanted: Wanted) -> Iterator[Found]:
    """Look at the files that ripgrep names; at every file if it cannot, or if there are too many."""
    paths = candidates(program, wanted.search.for_ripgrep, start, choice)
    if paths is None:
        yield from _by_reading(start, choice, wanted)
        return
    for path in sorted(paths, key=lambda path: path.split("/")):
        if wanted.glob is not None and not fits(wanted.glob, start, path):
            continue
        if choice.is_cancelled():
            raise Refused("it was cancelled")
        with suppress(Refused), opened_folder(start.below(path).folder) as folder:
            yield from _found(start, path, folder, choice, wanted)


def _files(start: Place, choice: Choice, wanted: Wanted) -> Iterator[Entry]:
    for entry in walk(start, choice):
        if entry.kind == IS_FILE and (wanted.glob is None or fits(wanted.glob, start, entry.path)):
            yield entry


def _found(start: Place, path: str, folder: int, choice: Choice, wanted: Wanted) -> Iterator[Found]:
    """Look at a file in a folder that is open; one that cannot be looked at is counted."""
    try:
        matches = matches_in(read_small(path.rpartition("/")[2], folder), wanted.search)
    except PassedOver as passed:
        choice.missed.add(passed.why)
    except OSError as error:
        choice.missed.add_closed(error, Why.CLOSED_FILE)
    else:
        if matches is not None:
            yield Found(start.below(path), *matches)


class _Answer:
    """The answer so far."""

    def __init__(self, wanted: Wanted) -> None:
        self.is_full = False
        self._wanted = wanted
        self._lines: list[str] = []
        self._count = 0
        self._size = 0

    def take(self, found: Found) -> None:
        """Add what was found in a file, as far as there is room."""
        room = self._wanted.limit - self._count
        if self._wanted.names_only:
            lines, wanted = [found.place.shown][:room], 1
            self._count += 1
        else:
            matched = found.matched[:room]
            lines, wanted = list(_lines(found, matched, self._wanted.around)), len(found.matched)
            self._count += len(matched)
        self.is_full = wanted > room
        for line in lines:
            self._size += len(line) + 1
            if self._size > ANSWER_CHARACTERS:
                self.is_full = True
                return
            self._lines.append(line)

    def text(self) -> str:
        """Return it for the model."""
        if self.is_full:
            return "\n".join([*self._lines, _MORE])
        return "\n".join(self._lines) or "[nothing matches]"


def _lines(found: Found, matched: Sequence[int], around: int) -> Iterator[str]:
    """Yield matching lines with those around them; between pieces that do not meet stands `--`."""
    name, done = found.place.shown, 0
    hits = set(matched)
    for number in matched:
        start = max(done, number - around)
        if around and done and start > done:
            yield "--"
        for at in range(start, min(number + around + 1, len(found.lines))):
            if at >= done:
                sign = ":" if at in hits else "-"
                yield f"{name}{sign}{at + 1}{sign} {_shortened(found.lines[at])}"
        done = max(done, number + around + 1)


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_MATCH else f"{line[:LONGEST_MATCH]} […]"


def _as_newline(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\n", error.end


_UNMATCHED = "files_tool.unmatched"
codecs.register_error(_UNMATCHED, _as_newline)
