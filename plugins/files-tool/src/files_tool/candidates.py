"""The files in which ripgrep sees a match, from the folders that may be searched.

Which folders and files count is decided here and nowhere else: ripgrep gets single folders and none of
the rules, so that it cannot read a rule in another way. It also reads what is left out in them, and that
is dropped.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from files_tool.ripgrep import Run
from files_tool.walking import walk_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from files_tool.places import Place
    from files_tool.walking import Choice, Folder

    Batch = dict[str, Folder]

_FIRST_BATCH, _BATCH = 250, 2000
"""How many folders ripgrep is given; few at first, so that it has something to do soon."""
_AT_ONCE = 2
_TOO_MANY = 100_000
"""If so many files have a match, the answer is full after few, and sooner found by reading in order."""


def candidates(program: str, expression: str, start: Place, choice: Choice) -> list[str] | None:
    """Return the files that may have a match; None if that cannot be told, or if they are too many."""
    paths: list[str] = []
    for named, folders in _named(program, expression, start, choice):
        if named is None or len(paths) + len(named) > _TOO_MANY:
            return None
        for path in named:
            before, slash, name = path.rpartition("/")
            folder = folders.get(before + slash)
            if folder is None:  # nobody asked for that one
                return None
            if not folder.leaves_out(name, choice):
                paths.append(path)
    return paths


def _named(
    program: str, expression: str, start: Place, choice: Choice
) -> Iterator[tuple[list[str] | None, Batch]]:
    """Yield what ripgrep names; while it reads some folders, the next ones are gathered."""
    running: deque[tuple[Run, Batch]] = deque()
    try:
        for batch in _batches(walk_folders(start, choice)):
            running.append((Run(program, expression, start.root, list(batch), hidden=choice.hidden), batch))
            if len(running) == _AT_ONCE:
                yield running[0][0].candidates(choice.is_cancelled), running[0][1]
                running.popleft()[0].close()
        while running:
            yield running[0][0].candidates(choice.is_cancelled), running[0][1]
            running.popleft()[0].close()
    finally:
        for run, _ in running:
            run.close()


def _batches(folders: Iterator[Folder]) -> Iterator[Batch]:
    size = _FIRST_BATCH
    while batch := {folder.prefix: folder for folder in islice(folders, size)}:
        yield batch
        size = _BATCH
