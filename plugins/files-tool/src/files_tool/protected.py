"""What belongs to the program that runs the tools, and so to no workspace: its keys, sessions and settings.

The program says which in `protected_paths` of the configuration. Each is known by its path, whether it is
there or not, and while it is there also by what the file system knows it by. So another spelling of a name, a
mount and a hard link to a file that is named open no way to it; links are not followed anyway.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from files_tool.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from files_tool.places import Place

_SPECIAL = "*?[\\ "


@dataclass(frozen=True, slots=True)
class Protected:
    """Files, and folders with all that is in them.

    Attributes:
        paths: Where they are, as absolute paths without links.
        identities: The device and the number of each that exists.
        numbers: The numbers alone, which can be compared without asking the system.
    """

    paths: tuple[str, ...] = ()
    identities: frozenset[tuple[int, int]] = frozenset()
    numbers: frozenset[int] = frozenset()

    @classmethod
    def of(cls, paths: Iterable[str]) -> Protected:
        """Return what is at these paths now."""
        known, found = tuple(paths), set[tuple[int, int]]()
        for path in known:
            with suppress(OSError, ValueError):
                state = os.stat(path)  # noqa: PTH116 - before every call, and this is the quickest
                found.add((state.st_dev, state.st_ino))
        return cls(known, frozenset(found), frozenset(number for _, number in found))

    def covers(self, path: str) -> bool:
        """Say whether an absolute path is one of these, or below one."""
        return any(path == own or path.startswith(f"{own.rstrip('/')}/") for own in self.paths)

    def is_(self, state: os.stat_result) -> bool:
        """Say whether a file or folder is one of these, whatever its name."""
        return (state.st_dev, state.st_ino) in self.identities

    def lists(self, entry: os.DirEntry[str]) -> bool:
        """Say the same of something in a folder."""
        if not self.numbers or entry.inode() not in self.numbers:
            return False
        try:
            return self.is_(entry.stat(follow_symlinks=False))
        except OSError:  # gone again
            return False

    def rules_in(self, root: str) -> list[str]:
        """Return rules, as a .gitignore has them, that leave out what is below a folder."""
        start = f"{root.rstrip('/')}/"
        inside = [path.removeprefix(start) for path in self.paths if path.startswith(start)]
        return ["/" + "".join(f"\\{char}" if char in _SPECIAL else char for char in path) for path in inside]


NOTHING = Protected()


def is_protected(place: Place) -> Refused:
    """Return the refusal of what is protected, in words for the model."""
    return Refused(
        f"{place.shown} belongs to the program that runs this, not to the workspace: do without it"
    )


def checked(place: Place, depth: int, fd: int) -> int:
    """Return a folder on the way to a place, which is open; one that is protected is closed.

    Raises:
        Refused: If it is.
    """
    if place.protected.identities and place.protected.is_(os.fstat(fd)):
        os.close(fd)
        raise is_protected(place.upto(depth))
    return fd
