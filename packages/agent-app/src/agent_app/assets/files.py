"""The asset store: content by its hash in files, who has it in an index.

An asset is written to a file of its own, made safe on disk, and moved to its place in the transaction that
notes it. So what `put` has returned survives a loss of power, content that the index knows is there, and
whatever a crash leaves behind is known by nobody and removed by `collect`.
"""

from __future__ import annotations

import io
import os
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO

from agent_app.assets.asset import Asset, AssetNotFound, AssetRefused
from agent_app.assets.folder import Folder
from agent_app.assets.index import AssetIndex
from agent_app.assets.media import Sniffer, display_name
from agent_app.errors import StoreDamaged, StoreUnavailable
from agent_app.store.base import Report
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Self

_PIECE = 1 << 18
_MEGABYTE = 1_000_000


class SessionAssetStore:
    """Keeps the files of sessions below one folder.

    Any number of threads and processes may use one folder. The names of files and sessions are data: no
    text from outside becomes a part of a path.

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
        max_bytes: int = 50 * _MEGABYTE,
        allowed_types: Collection[str] | None = None,
        quota: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(allowed_types, str):
            raise ArgumentError(f"allowed_types is a list of media types, such as [{allowed_types!r}]")
        self.max_bytes = max_bytes
        self._allowed = allowed_types
        self._quota = quota
        self._clock = clock
        with _disk_errors(Path(root)):
            self._root = Folder.root(Path(root))
            self._content = self._root.folder("content")
            self._temporary = self._root.folder("temporary")
            self._index = AssetIndex(self._root.path / "assets.db")

    def put(
        self,
        session_id: str,
        data: bytes | BinaryIO,
        *,
        name: str,
        media_type: str | None = None,
        asset_id: str | None = None,
    ) -> Asset:
        """Keep data as an asset of a session; it is safe when this returns.

        Args:
            data: The content, or a file to read it from; no more of it is read than is allowed.
            name: What people call it.
            media_type: What it is said to be; believed where the content does not contradict.
            asset_id: The id that it had before, to restore what was deleted; a new one by default.

        Raises:
            AssetRefused: If it is too large, more than the session may have, or of a type that is not
                taken, or if the id is that of something else.
            StoreUnavailable: If the disk is full, or cannot be written; nothing was kept.
        """
        check_session_id(session_id)
        source = io.BytesIO(data) if isinstance(data, (bytes, bytearray, memoryview)) else data
        with _disk_errors(self._root.path), self._incoming() as (temporary, descriptor):
            digest, size, kind = self._receive(source, descriptor, media_type)
            asset = Asset(
                id=asset_id or f"asset_{token_hex(16)}", name=display_name(name), media_type=kind,
                size=size, sha256=digest, session_id=session_id, created=self._clock(),
            )  # fmt: skip
            self._check_type(asset)
            with self._index.writing():
                self._note(asset)
                with self._content.folder(digest[:2]) as shelf:
                    self._temporary.move(temporary, shelf, digest)
        return self._index.get(asset.id, session_id)

    def get(self, asset_id: str, *, session_id: str | None = None) -> Asset:
        """Return what is known of an asset.

        Args:
            session_id: If given, this session must have it.

        Raises:
            AssetNotFound: If there is none.
        """
        if not isinstance(asset_id, str) or not _is_writable(asset_id):
            raise AssetNotFound(asset_id)
        return self._index.get(asset_id, session_id)

    def open(self, asset_id: str) -> BinaryIO:
        """Return the content of an asset as a file, which the caller closes.

        Raises:
            AssetNotFound: If there is none.
            StoreDamaged: If its content is gone, or is not what was kept.
        """
        asset = self.get(asset_id)
        try:
            with self._content.folder(asset.sha256[:2], make=False) as shelf:
                found = shelf.open(asset.sha256)
        except OSError as error:
            raise StoreDamaged(f"the content of asset {asset_id!r} is gone: {error}; run check()") from error
        if os.fstat(found).st_size != asset.size:
            os.close(found)
            raise StoreDamaged(f"the content of asset {asset_id!r} is not what was kept; run check()")
        return os.fdopen(found, "rb")

    def read(self, asset_id: str, start: int = 0, length: int | None = None) -> bytes:
        """Return content of an asset, from byte *start* on, all or so many bytes.

        Raises:
            ArgumentError: If a number is negative.
        """
        if start < 0 or (length is not None and length < 0):
            raise ArgumentError("start and length count bytes from the beginning: they cannot be negative")
        with self.open(asset_id) as file:
            file.seek(start)
            return file.read() if length is None else file.read(length)

    def list(self, session_id: str) -> tuple[Asset, ...]:
        """Return the assets of a session, in the order in which they came."""
        check_session_id(session_id)
        return self._index.of_session(session_id)

    def share(self, from_session: str, to_session: str) -> tuple[Asset, ...]:
        """Give a session everything that another one has, under the same ids; return what it then has.

        For forks, whose messages are those of the other session. Nothing is copied.
        """
        check_session_id(from_session)
        check_session_id(to_session)
        with self._index.writing():
            self._index.share(from_session, to_session)
        return self._index.of_session(to_session)

    def remove(self, session_id: str, asset_id: str) -> bool:
        """Take an asset from a session; False if it had none of that id."""
        check_session_id(session_id)
        with self._index.writing():
            return self._index.drop(session_id, asset_id) > 0

    def delete_session(self, session_id: str) -> int:
        """Take all its assets from a session and return how many it had; `collect` frees the space."""
        check_session_id(session_id)
        with self._index.writing():
            return self._index.drop(session_id)

    def collect(self) -> Report:
        """Remove content that no session has, and what crashes have left behind."""
        removed, problems = {"content": 0, "temporary": 0}, list[str]()
        with _disk_errors(self._root.path), self._index.writing():
            # Nobody moves content to its place while we hold the index.
            for name in self._content.names():
                try:
                    removed["content"] += self._clear_shelf(name)
                except OSError as error:
                    problems.append(f"{name!r} among the content is no folder of ours: {error}")
            removed["temporary"] = sum(map(self._temporary.sweep, self._temporary.names()))
        return Report(removed, tuple(problems))

    def check(self, *, deep: bool = False) -> Report:
        """Look whether the content of every asset is there; *deep* also reads and hashes it."""
        problems = self._index.damage()
        assets = self._index.all()
        problems += [problem for asset in assets if (problem := self._problem(asset, deep=deep))]
        return Report({"assets": len(assets)}, tuple(problems))

    def close(self) -> None:
        """Let go of the folder."""
        self._index.close()
        for folder in (self._temporary, self._content, self._root):
            folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @contextmanager
    def _incoming(self) -> Iterator[tuple[str, int]]:
        """Make a file to receive data in; it is gone afterwards, unless it was moved."""
        name, descriptor = self._temporary.create()
        try:
            yield name, descriptor
        finally:
            with suppress(OSError):
                self._temporary.remove(name)
            os.close(descriptor)

    def _receive(self, source: BinaryIO, descriptor: int, claimed: str | None) -> tuple[str, int, str]:
        """Write data to a file and return its hash, its size, and what kind it is."""
        digest, sniffer, size = sha256(), Sniffer(), 0
        for piece in _pieces(source):
            size += len(piece)
            if size > self.max_bytes:
                raise AssetRefused(f"an asset may have {self.max_bytes} bytes, and this one has more")
            digest.update(piece)
            sniffer.feed(piece)
            _write(descriptor, piece)
        os.fsync(descriptor)
        return digest.hexdigest(), size, sniffer.media_type(claimed)

    def _check_type(self, asset: Asset) -> None:
        kind = asset.media_type
        if self._allowed is None or kind in self._allowed or f"{kind.partition('/')[0]}/*" in self._allowed:
            return
        raise AssetRefused(
            f"{asset.name!r} is {kind}, and only these are taken here: {', '.join(sorted(self._allowed))}"
        )

    def _note(self, asset: Asset) -> None:
        """Write an asset into the index, if its session may have it."""
        had = self._index.total(asset.session_id)
        if self._quota is not None and had + asset.size > self._quota:
            raise AssetRefused(
                f"{asset.name!r} has {asset.size} bytes, and session {asset.session_id!r} may have only "
                f"{max(0, self._quota - had)} more: delete something first"
            )
        try:
            known = self._index.get(asset.id)
        except AssetNotFound:
            self._index.add(asset)
            return
        if (known.sha256, known.name) != (asset.sha256, asset.name):
            raise AssetRefused(f"the id {asset.id!r} is that of another asset: import it with new ids")
        self._index.refer(asset.session_id, asset.id)

    def _clear_shelf(self, name: str) -> int:
        """Remove what no asset has from one of the folders of content."""
        with self._content.folder(name, make=False) as shelf:
            unknown = [file for file in shelf.names() if not self._index.has_content(file)]
            for file in unknown:
                shelf.remove(file)
        return len(unknown)

    def _problem(self, asset: Asset, *, deep: bool) -> str | None:
        try:
            with self.open(asset.id) as file:
                if deep and _hash(file) != asset.sha256:
                    return f"the content of asset {asset.id!r} of session {asset.session_id!r} was changed"
        except AssetNotFound:
            return None  # it was deleted meanwhile
        except StoreDamaged as error:
            return str(error)
        return None


def check_session_id(session_id: object) -> None:
    """Raise `ArgumentError` unless something can be the id of a session."""
    if not isinstance(session_id, str) or not session_id or not _is_writable(session_id):
        raise ArgumentError(f"{session_id!r} is no id of a session")


def _is_writable(text: str) -> bool:
    """Say whether a database takes a string: half a surrogate pair has no bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := _read(source):
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise ArgumentError(
                f"an asset is read as bytes, not as {type(piece).__name__}: open it with 'rb'"
            )
        yield bytes(piece)


def _read(source: BinaryIO) -> bytes:
    try:
        return source.read(_PIECE)
    except OSError as error:
        raise ArgumentError(f"the data of an asset cannot be read: {error}") from error


def _write(descriptor: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(descriptor, left) :]


def _hash(file: BinaryIO) -> str:
    digest = sha256()
    for piece in _pieces(file):
        digest.update(piece)
    return digest.hexdigest()


@contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    """Turn what the system says about files into what it means for the caller."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"{root} cannot be used now ({error.strerror or error}): nothing was kept; "
            "check disk space, rights, and links in it"
        ) from error
