"""Assets in a folder, for one machine: content by its hash, incoming data, and the index.

A folder is opened once and kept open; everything in it is reached from there, by names that this program
chose, and never through a symbolic link. Somebody who swaps a folder for a link, between any two steps, gets
an error and nothing else. Where the system has no such calls (Windows), plain paths are used.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO

from agent_app.assets.asset import MAX_BYTES, Limits
from agent_app.assets.index import AssetIndex
from agent_app.assets.store import AssetStore, disk_errors
from agent_app.errors import StoreDamaged
from agent_app.store.base import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Self

    from agent_app.assets.asset import Asset


class SessionAssetStore(AssetStore):
    """Keeps the files of sessions below one folder, for the processes of one machine.

    The names of files and sessions are data: no text from outside becomes a part of a path.

    Args:
        root: The folder; it is created if it does not exist.
        max_bytes: How large one asset may be.
        allowed_types: Media types that are accepted, such as ``"image/png"`` or ``"image/*"``; all by
            default.
        quota: How many bytes the assets of one session may have together; any number by default.
        clock: Where the time comes from, in seconds since 1970.

    Raises:
        StoreError: If the folder cannot be used.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        allowed_types: Collection[str] | None = None,
        quota: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        limits = Limits(max_bytes=max_bytes, allowed_types=allowed_types, quota=quota)
        super().__init__(FolderPlace(Path(root), clock), limits)


class FolderPlace:
    """A folder with content, incoming data and the index."""

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self.clock = clock
        with disk_errors(root):
            self._root = Folder.root(root)
            self.content = self._root.folder("content")
            self.temporary = self._root.folder("temporary")
            self.index = AssetIndex(self._root.path / "assets.db")

    @contextmanager
    def receiving(self) -> Iterator[FolderIncoming]:
        """Create a file for incoming data; it is removed afterwards unless it was moved."""
        with disk_errors(self._root.path):
            name, descriptor = self.temporary.create()
            try:
                yield FolderIncoming(self, name, descriptor)
            finally:
                with suppress(OSError):
                    self.temporary.remove(name)
                os.close(descriptor)

    @contextmanager
    def reading(self) -> Iterator[AssetIndex]:
        yield self.index

    @contextmanager
    def writing(self, *_session_ids: str) -> Iterator[AssetIndex]:
        """Change the index, all or nothing, while no one else can."""
        with self.index.writing():
            yield self.index

    def open(self, asset: Asset) -> BinaryIO:
        try:
            with self.content.folder(asset.sha256[:2], make=False) as shelf:
                found = shelf.open(asset.sha256)
        except OSError as error:
            self.index.get(asset.id)  # if the asset was deleted in between, nothing is damaged
            raise StoreDamaged(
                f"the content of asset {asset.id!r} is missing: {error}; run check()"
            ) from error
        if os.fstat(found).st_size != asset.size:
            os.close(found)
            raise StoreDamaged(f"the content of asset {asset.id!r} was changed; run check()")
        return os.fdopen(found, "rb")

    def of_tenant(self, _tenant: str) -> FolderPlace:
        """Return itself: here those who ask by session keep tenants apart."""
        return self

    def collect(self) -> Report:
        removed, problems = {"content": 0, "temporary": 0}, list[str]()
        with disk_errors(self._root.path), self.index.writing():
            # No one moves content to its place while this transaction is open.
            for name in self.content.names():
                try:
                    removed["content"] += self._clear_shelf(name)
                except OSError as error:
                    problems.append(f"{name!r} among the content is not one of our folders: {error}")
            removed["temporary"] = sum(map(self.temporary.sweep, self.temporary.names()))
        return Report(removed, tuple(problems))

    def damage(self) -> list[str]:
        return self.index.damage()

    def close(self) -> None:
        self.index.close()
        for folder in (self.temporary, self.content, self._root):
            folder.close()

    def _clear_shelf(self, name: str) -> int:
        """Remove the files of one content folder that no asset has."""
        with self.content.folder(name, make=False) as shelf:
            unknown = [file for file in shelf.names() if not self.index.has_content(file)]
            for file in unknown:
                shelf.remove(file)
        return len(unknown)


class FolderIncoming:
    """A file for data before it becomes content."""

    def __init__(self, place: FolderPlace, name: str, descriptor: int) -> None:
        self._place = place
        self._name = name
        self._descriptor = descriptor

    def write(self, piece: bytes) -> None:
        left = memoryview(piece)
        while left:
            left = left[os.write(self._descriptor, left) :]

    @contextmanager
    def keeping(self, asset: Asset) -> Iterator[AssetIndex]:
        """Flush the file, and move it to its place in the transaction that adds the asset."""
        os.fsync(self._descriptor)
        with self._place.index.writing():
            yield self._place.index
            with self._place.content.folder(asset.sha256[:2]) as shelf:
                self._place.temporary.move(self._name, shelf, asset.sha256)


try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

_HAS_FOLDERS = os.open in os.supports_dir_fd
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINKS


class Folder:
    """An open folder."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def root(cls, path: Path) -> Folder:
        """Open a folder by its path; if it does not exist, create it for its owner alone."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        real = path.resolve(strict=True)
        return cls(real, os.open(real, _FOLDER) if _HAS_FOLDERS else None)

    def folder(self, name: str, *, make: bool = True) -> Folder:
        """Open a folder inside this one; if it does not exist, *make* creates it."""
        place, within = self._at(name)
        if make:
            with suppress(FileExistsError):
                os.mkdir(place, 0o700, **within)  # noqa: PTH102 - pathlib knows no open folders
                self.flush()
        return Folder(self.path / name, os.open(place, _FOLDER, **within) if _HAS_FOLDERS else None)

    def create(self) -> tuple[str, int]:
        """Create a file with a random name, and lock it so that others do not take it for a leftover."""
        while True:
            name = token_hex(16)
            place, within = self._at(name)
            made = os.open(place, os.O_CREAT | os.O_EXCL | os.O_RDWR | _NO_LINKS, 0o600, **within)
            if fcntl is not None:
                fcntl.flock(made, fcntl.LOCK_EX)
            if os.fstat(made).st_nlink:
                return name, made
            os.close(made)  # another process removed it before it was locked

    def open(self, name: str) -> int:
        """Open a file for reading; a link, or anything else that is not a file, is an `OSError`."""
        place, within = self._at(name)
        found = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINKS, **within)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(f"{self.path / name} is not a file")
        return found

    def move(self, name: str, target: Folder, target_name: str) -> None:
        """Move a file into another folder, and replace what is there."""
        place, target_place = self._at(name)[0], target._at(target_name)[0]
        if self._descriptor is None:
            place.replace(target_place)
        else:
            os.replace(place, target_place, src_dir_fd=self._descriptor, dst_dir_fd=target._descriptor)
        target.flush()

    def remove(self, name: str) -> None:
        place, within = self._at(name)
        os.unlink(place, **within)

    def sweep(self, name: str) -> bool:
        """Remove a file if the process that created it has ended; say whether it was removed."""
        try:
            found = self.open(name)
        except OSError:
            found = None  # not a file; of a link, only the link itself is removed
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
        place = self.path if self._descriptor is None else self._descriptor
        yield from sorted(os.listdir(place))  # noqa: PTH208 - pathlib knows no open folders

    def flush(self) -> None:
        """Make sure that the folder's entries survive a loss of power."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _at(self, name: str) -> tuple[Any, dict[str, Any]]:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise ValueError(f"{name!r} is not a valid file name")
        if self._descriptor is None:
            return self.path / name, {}
        return name, {"dir_fd": self._descriptor}
