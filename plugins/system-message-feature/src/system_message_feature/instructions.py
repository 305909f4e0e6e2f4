"""The instruction files of a project: in the folder one works in, and in those above it, nearest first.

The walk ends at the top of the repository, so that a file in a home folder does not speak for every project
below it. Only plain files are read, and of each only its beginning: they come from whoever wrote the project.
A link that leads out of the folder is not followed, and what is not read is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from system_message_feature.inside import NotRead, read_beginning

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


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is there, and was not read."""

    path: Path
    why: str


def find_instructions(
    roots: Sequence[str], names: Sequence[str], most_bytes: int
) -> tuple[Instructions | LeftOut, ...]:
    """Return the files that speak for these folders, nearest first; each file once."""
    found: dict[Path, Instructions | LeftOut] = {}
    for root in roots:
        for folder in _upwards(Path(root)):
            for name in names:
                path = folder / name
                if path not in found and (read := _read(folder, name, most_bytes, names)) is not None:
                    found[path] = read
    return tuple(found.values())


def _upwards(folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the top of its repository; alone if it is in none."""
    above = [folder, *folder.parents][:_MOST_FOLDERS]
    top = next((place for place, one in enumerate(above) if _is_top(one)), 0)
    yield from above[: top + 1]


def _is_top(folder: Path) -> bool:
    return any((folder / mark).exists() for mark in _TOP)


def _read(folder: Path, name: str, most_bytes: int, names: Sequence[str]) -> Instructions | LeftOut | None:
    """Return the beginning of a file; None if there is none, or it says nothing."""
    try:
        data = read_beginning(folder, name, most_bytes + 1, linked=names)
    except NotRead as error:
        return LeftOut(folder / name, str(error))
    text = (data or b"")[:most_bytes].decode("utf-8-sig", "ignore").replace("\0", "").strip()
    return Instructions(folder / name, text, len(data or b"") > most_bytes) if text else None
