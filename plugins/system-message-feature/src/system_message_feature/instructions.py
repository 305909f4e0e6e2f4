"""The instruction files of a project: in the folder one works in, and in those above it, nearest first.

The walk ends at the top of the repository, so that a file in a home folder does not speak for every project
below it. Only plain files are read, and of each only its beginning: they come from whoever wrote the project.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TOP = (".git", ".hg", ".jj")
_MOST_FOLDERS = 64


@dataclass(frozen=True, slots=True)
class Instructions:
    """What one file says.

    Attributes:
        cut: Whether the file has more than was read.
    """

    path: Path
    text: str
    cut: bool = False


def find_instructions(
    roots: Sequence[str], names: Sequence[str], most_bytes: int
) -> tuple[Instructions, ...]:
    """Return the files that speak for these folders, nearest first; each file once."""
    found: dict[Path, Instructions] = {}
    for root in roots:
        for folder in _upwards(Path(root)):
            for name in names:
                path = folder / name
                if path not in found and (read := _read(path, most_bytes)) is not None:
                    found[path] = read
    return tuple(found.values())


def _upwards(folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the top of its repository; alone if it is in none."""
    above = [folder, *folder.parents][:_MOST_FOLDERS]
    top = next((place for place, one in enumerate(above) if _is_top(one)), 0)
    yield from above[: top + 1]


def _is_top(folder: Path) -> bool:
    return any((folder / mark).exists() for mark in _TOP)


def _read(path: Path, most_bytes: int) -> Instructions | None:
    """Return the beginning of a plain file; None if there is none, or it says nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        data = os.read(descriptor, most_bytes + 1) if S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)
    text = data[:most_bytes].decode("utf-8-sig", "ignore").replace("\0", "").strip()
    return Instructions(path, text, len(data) > most_bytes) if text else None
