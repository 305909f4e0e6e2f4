"""`list_files` and `find_files`: what there is, by name."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from files_tool.errors import Refused
from files_tool.globs import expression_of
from files_tool.limits import ANSWER_CHARACTERS, amount
from files_tool.linear import compiled
from files_tool.missed import Missed
from files_tool.names import shown
from files_tool.walking import IS_FILE, IS_FOLDER, IS_LINK, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from files_tool.linear import Expression
    from files_tool.places import Place
    from files_tool.walking import Choice, Entry


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
