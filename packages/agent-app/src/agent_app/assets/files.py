"""Assets in a folder: content by its hash in files, who has it in an index beside them.

An asset is written to a file of its own, made safe on disk, and moved to its place in the transaction that
notes it. So what `put` has returned survives a loss of power, content that the index knows is there, and
whatever a crash leaves behind is known by nobody and removed by `collect`.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agent_app.assets.disk import disk_errors
from agent_app.assets.folder import Folder
from agent_app.assets.index import AssetIndex
from agent_app.assets.limits import MAX_BYTES, Limits
from agent_app.assets.store import AssetStore
from agent_app.errors import StoreDamaged
from agent_app.store.base import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from agent_app.assets.asset import Asset


class SessionAssetStore(AssetStore):
    """Keeps the files of sessions below one folder, for the processes of one machine.

    The names of files and sessions are data: no text from outside becomes a part of a path.

    Args:
        root: The folder; it is made if it is not there.
        max_bytes: How large one asset may be.
        allowed_types: Media types that are taken, such as ``"image/png"`` or ``"image/*"``; all by default.
        quota: How many bytes the assets of one session may have together; any number by default.
        clock: Where the time comes from, in seconds since 1970.

    Raises:
        StoreError: If the folder cannot be used.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        max_bytes: int = MAX_BYTES,
        allowed_types: Collection[str] | None = None,
        quota: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        limits = Limits(max_bytes=max_bytes, allowed_types=allowed_types, quota=quota)
        super().__init__(FolderPlace(Path(root), clock), limits)


class FolderPlace:
    """A folder with content, with what comes in, and with the index."""

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self.clock = clock
        with disk_errors(root):
            self._root = Folder.root(root)
            self.content = self._root.folder("content")
            self.temporary = self._root.folder("temporary")
            self.index = AssetIndex(self._root.path / "assets.db")

    @contextmanager
    def receiving(self) -> Iterator[FolderIncoming]:
        """Make a file to receive data in; it is gone afterwards, unless it was moved."""
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
        """Look something up."""
        yield self.index

    @contextmanager
    def writing(self, *_session_ids: str) -> Iterator[AssetIndex]:
        """Change the index, everything or nothing; nobody else changes anything of it meanwhile."""
        with self.index.writing():
            yield self.index

    def open(self, asset: Asset) -> BinaryIO:
        """Return the file that has the content of an asset."""
        try:
            with self.content.folder(asset.sha256[:2], make=False) as shelf:
                found = shelf.open(asset.sha256)
        except OSError as error:
            self.index.get(asset.id)  # if it was deleted meanwhile, nothing is damaged
            raise StoreDamaged(f"the content of asset {asset.id!r} is gone: {error}; run check()") from error
        if os.fstat(found).st_size != asset.size:
            os.close(found)
            raise StoreDamaged(f"the content of asset {asset.id!r} is not what was kept; run check()")
        return os.fdopen(found, "rb")

    def collect(self) -> Report:
        """Remove content that no session has, and what crashes have left behind."""
        removed, problems = {"content": 0, "temporary": 0}, list[str]()
        with disk_errors(self._root.path), self.index.writing():
            # Nobody moves content to its place while we hold the index.
            for name in self.content.names():
                try:
                    removed["content"] += self._clear_shelf(name)
                except OSError as error:
                    problems.append(f"{name!r} among the content is no folder of ours: {error}")
            removed["temporary"] = sum(map(self.temporary.sweep, self.temporary.names()))
        return Report(removed, tuple(problems))

    def damage(self) -> list[str]:
        """Return what the index finds wrong with itself."""
        return self.index.damage()

    def close(self) -> None:
        """Let go of the folder."""
        self.index.close()
        for folder in (self.temporary, self.content, self._root):
            folder.close()

    def _clear_shelf(self, name: str) -> int:
        """Remove what no asset has from one of the folders of content."""
        with self.content.folder(name, make=False) as shelf:
            unknown = [file for file in shelf.names() if not self.index.has_content(file)]
            for file in unknown:
                shelf.remove(file)
        return len(unknown)


class FolderIncoming:
    """A file that data is written to before it becomes content."""

    def __init__(self, place: FolderPlace, name: str, descriptor: int) -> None:
        self._place = place
        self._name = name
        self._descriptor = descriptor

    def write(self, piece: bytes) -> None:
        """Write the next piece."""
        left = memoryview(piece)
        while left:
            left = left[os.write(self._descriptor, left) :]

    @contextmanager
    def keeping(self, asset: Asset) -> Iterator[AssetIndex]:
        """Make the file safe, and move it to its place in the transaction that notes the asset."""
        os.fsync(self._descriptor)
        with self._place.index.writing():
            yield self._place.index
            with self._place.content.folder(asset.sha256[:2]) as shelf:
                self._place.temporary.move(self._name, shelf, asset.sha256)
