"""The files in which ripgrep sees a match, from the folders that may be searched.

Which folders and files count is decided here and nowhere else: ripgrep gets single folders and none of
the rules, so that it cannot read a rule in another way. It also reads what is left out in them, and that
is dropped.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from files_tool.confined import FOLDER
from files_tool.limits import LARGEST_FILE
from files_tool.missed import Why
from files_tool.ripgrep import Run
from files_tool.walking import walk_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from files_tool.places import Place
    from files_tool.walking import Choice, Folder

    Batch = dict[str, Folder]

_FIRST_BATCH, _BATCH = 250, 2000
"""How many folders ripgrep is given; few at first, so that it has something to do soon."""
_AT_ONCE = 2
_TOO_MANY = 100_000
"""If so many files have a match, the answer is full after few, and sooner found by reading in order."""


def candidates(program: str, expression: str, start: Place, choice: Choice) -> list[str] | None:
    """Return the files that may have a match, and those that cannot be searched.

    None if that cannot be told, or if they are too many.
    """
    paths: list[str] = []
    for named, folders in _named(program, expression, start, choice):
        if named is None or len(paths) + len(named) > _TOO_MANY:
            return None
        for path in named:
            before, slash, name = path.rpartition("/")
            folder = folders.get(before + slash)
            if folder is None:  # nobody asked for that one
                return None
            if not folder.leaves_out(name, choice) and not _is_protected(start, path):
                paths.append(path)
    # Of such a folder only the first names count, and ripgrep does not know which these are.
    return None if choice.missed.has(Why.FULL_FOLDER) else paths


def _large(start: Place, folders: Batch, choice: Choice) -> list[str]:
    """Return the files that ripgrep is told not to read, for they are no less a part of the answer."""
    return [
        prefix + name
        for prefix, folder in folders.items()
        for name in _large_in(os.path.join(start.root, prefix), folder.files)  # noqa: PTH118 - many of them
        if choice.hidden or not name.startswith(".")
    ]


def _large_in(path: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names of large files; by a path that may be another by now, as ripgrep does: it is a hint."""
    try:
        fd = os.open(path, FOLDER)
    except OSError:
        return
    try:
        for name in names:
            with suppress(OSError):  # gone again
                if os.stat(name, dir_fd=fd, follow_symlinks=False).st_size > LARGEST_FILE:
                    yield name
    finally:
        os.close(fd)


def _is_protected(start: Place, path: str) -> bool:
    """Say whether a file that ripgrep has read is no part of the workspace, whatever its name."""
    try:
        return start.protected.is_(Path(start.root, path).lstat())
    except OSError:  # gone again
        return False


def _named(
    program: str, expression: str, start: Place, choice: Choice
) -> Iterator[tuple[list[str] | None, Batch]]:
    """Yield what ripgrep names, and what is too large for it; while it reads, the next ones are gathered."""
    running: deque[tuple[Run, list[str], Batch]] = deque()
    try:
        for batch in _batches(walk_folders(start, choice)):
            run = Run(program, expression, start.root, list(batch), hidden=choice.hidden)
            running.append((run, [], batch))
            running[-1][1].extend(_large(start, batch, choice))
            if len(running) == _AT_ONCE:
                yield _collected(running, choice)
        while running:
            yield _collected(running, choice)
    finally:
        for run, _, _ in running:
            run.close()


def _collected(
    running: deque[tuple[Run, list[str], Batch]], choice: Choice
) -> tuple[list[str] | None, Batch]:
    """Return what the first of those that run has found, when it is done."""
    run, large, batch = running[0]
    named = run.candidates(choice.is_cancelled)
    running.popleft()
    run.close()
    return None if named is None else named + large, batch


def _batches(folders: Iterator[Folder]) -> Iterator[Batch]:
    size = _FIRST_BATCH
    while batch := {folder.prefix: folder for folder in islice(folders, size)}:
        yield batch
        size = _BATCH
