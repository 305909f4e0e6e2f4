"""Files below one folder, whatever happens to the folder meanwhile.

A folder is opened once and held; what is in it is reached from there, by names that this program chose,
and never through a symbolic link. Somebody who swaps a folder for a link, between any two steps, gets an
error and nothing else. Where the system has no such calls (Windows), plain paths are used.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

_HAS_FOLDERS = os.open in os.supports_dir_fd
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINKS


class Folder:
    """A folder that is held open."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def root(cls, path: Path) -> Folder:
        """Open a folder by its path; it is made if it is not there, for its owner alone."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        real = path.resolve(strict=True)
        return cls(real, os.open(real, _FOLDER) if _HAS_FOLDERS else None)

    def folder(self, name: str, *, make: bool = True) -> Folder:
        """Open a folder within this one; it is made if it is not there."""
        place, within = self._at(name)
        if make:
            with suppress(FileExistsError):
                os.mkdir(place, 0o700, **within)  # noqa: PTH102 - pathlib knows no open folders
                self.flush()
        return Folder(self.path / name, os.open(place, _FOLDER, **within) if _HAS_FOLDERS else None)

    def create(self) -> tuple[str, int]:
        """Make a file under a random name, and keep others from taking it for a leftover."""
        while True:
            name = token_hex(16)
            place, within = self._at(name)
            made = os.open(place, os.O_CREAT | os.O_EXCL | os.O_RDWR | _NO_LINKS, 0o600, **within)
            if fcntl is not None:
                fcntl.flock(made, fcntl.LOCK_EX)
            if os.fstat(made).st_nlink:
                return name, made
            os.close(made)  # it was swept away before we had hold of it

    def open(self, name: str) -> int:
        """Open a file for reading; a link, or anything else that is no file, is an `OSError`."""
        place, within = self._at(name)
        found = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINKS, **within)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(f"{self.path / name} is no file")
        return found

    def move(self, name: str, target: Folder, target_name: str) -> None:
        """Move a file into another folder, over what is there."""
        place, target_place = self._at(name)[0], target._at(target_name)[0]
        if self._descriptor is None:
            place.replace(target_place)
        else:
            os.replace(place, target_place, src_dir_fd=self._descriptor, dst_dir_fd=target._descriptor)
        target.flush()

    def remove(self, name: str) -> None:
        """Remove a file."""
        place, within = self._at(name)
        os.unlink(place, **within)

    def sweep(self, name: str) -> bool:
        """Remove a file if whoever made it is gone; say whether it was removed."""
        try:
            found = self.open(name)
        except OSError:
            found = None  # no file at all; a link is removed, and not what it points to
        try:
            if found is not None and fcntl is not None:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.remove(name)
        except OSError:
            return False
        finally:
            if found is not None:
                os.close(found)
        return True

    def names(self) -> Iterator[str]:
        """Yield the names of everything in the folder."""
        place = self.path if self._descriptor is None else self._descriptor
        yield from sorted(os.listdir(place))  # noqa: PTH208 - pathlib knows no open folders

    def flush(self) -> None:
        """Make sure that the folder's list of names survives a loss of power."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the folder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _at(self, name: str) -> tuple[Any, dict[str, Any]]:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise ValueError(f"{name!r} is no name of a file")
        if self._descriptor is None:
            return self.path / name, {}
        return name, {"dir_fd": self._descriptor}
