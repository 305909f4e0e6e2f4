"""Content in rows of a bounded size, so that no more of it than one row is in memory.

Rows of content that others see never change; whoever finds some damaged writes them anew.
"""

from __future__ import annotations

import io
from hashlib import sha256
from typing import IO, TYPE_CHECKING, BinaryIO

from agent_app.assets.receiving import PIECE, pieces
from agent_app.assets.shared import SharedIndex
from agent_app.errors import StoreDamaged

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from agent_app.assets.asset import Asset
    from agent_app.assets.tables import AssetDatabase
    from agent_app.store.postgres import PostgresTransaction

_BATCH = 100
_UNUSED = "NOT EXISTS (SELECT 1 FROM agent_assets.assets a WHERE a.content = c.id)"


def keep(transaction: PostgresTransaction, asset: Asset, file: IO[bytes]) -> None:
    """Have the content of an asset there, whole; nobody removes it until the transaction ends."""
    while True:
        found = transaction.rows(
            "SELECT id FROM agent_assets.content WHERE sha256 = ? FOR KEY SHARE", asset.sha256
        )
        if found:
            _mend(transaction, found[0][0], asset, file)
            return
        if _send(transaction, asset, file):
            return


def _send(transaction: PostgresTransaction, asset: Asset, file: IO[bytes]) -> bool:
    """Write new content; False if somebody else was faster, and theirs is there."""
    next_number = "SELECT nextval(pg_get_serial_sequence('agent_assets.content', 'id'))"
    number: int = transaction.rows(next_number)[0][0]
    _write(transaction, number, file)
    made = transaction.run(
        "INSERT INTO agent_assets.content (id, sha256, size) VALUES (?, ?, ?) "
        "ON CONFLICT (sha256) DO NOTHING",
        number, asset.sha256, asset.size,
    )  # fmt: skip
    if not made:
        _clear(transaction, number)
    return bool(made)


def _mend(transaction: PostgresTransaction, number: int, asset: Asset, file: IO[bytes]) -> None:
    """Write content anew if what is there is not the same."""
    if _is_whole(transaction, number, asset.size, file):
        return
    transaction.rows("SELECT 1 FROM agent_assets.content WHERE id = ? FOR NO KEY UPDATE", number)
    _clear(transaction, number)
    _write(transaction, number, file)


def _is_whole(transaction: PostgresTransaction, number: int, size: int, file: IO[bytes]) -> bool:
    """Compare content with a file by its hashes, which the server makes: nothing travels."""
    place = 0
    for start, length, digest in transaction.rows(
        "SELECT start, octet_length(data), sha256(data) FROM agent_assets.chunks WHERE content = ? "
        "ORDER BY start",
        number,
    ):
        file.seek(place)
        if start != place or sha256(file.read(length)).digest() != digest:
            return False
        place += length
    return place == size


def _write(transaction: PostgresTransaction, number: int, file: IO[bytes]) -> None:
    file.seek(0)
    start = 0
    for piece in pieces(file):
        transaction.run(
            "INSERT INTO agent_assets.chunks (content, start, data) VALUES (?, ?, ?)", number, start, piece
        )
        start += len(piece)


def _clear(transaction: PostgresTransaction, number: int) -> None:
    transaction.run("DELETE FROM agent_assets.chunks WHERE content = ?", number)


def collect(transaction: PostgresTransaction) -> tuple[int, bool]:
    """Remove some content that no asset has; return how much, and whether there may be more."""
    # What somebody is about to refer to is locked by them. What we have locked, nobody can begin to refer
    # to; so the second look, which sees all that was committed before, is the last word.
    found = transaction.rows(
        f"SELECT c.id FROM agent_assets.content c WHERE {_UNUSED} "  # noqa: S608 - our own names
        "ORDER BY c.id LIMIT ? FOR UPDATE OF c SKIP LOCKED",
        _BATCH,
    )
    removed = transaction.run(
        f"DELETE FROM agent_assets.content c WHERE c.id = ANY(?) AND {_UNUSED}",  # noqa: S608
        [row[0] for row in found],
    )
    return removed, bool(found)


def open_content(database: AssetDatabase, asset: Asset) -> BinaryIO:
    """Return the content of an asset as a file that reads row after row.

    Raises:
        AssetNotFound: If it was deleted meanwhile.
        StoreDamaged: If it is gone, or is not what was kept.
    """
    with database.reading() as transaction:
        (found,) = transaction.rows(
            "SELECT min(c.id), coalesce(sum(octet_length(d.data)), 0)::bigint, count(d.start) "
            "FROM agent_assets.content c LEFT JOIN agent_assets.chunks d ON d.content = c.id "
            "WHERE c.sha256 = ?",
            asset.sha256,
        )
        number, size, rows = found
        if number is None or (asset.size and not rows):
            raise _damage(transaction, asset)
    if size != asset.size:
        raise StoreDamaged(f"the content of asset {asset.id!r} is not what was kept; run check()")
    return io.BufferedReader(ChunkFile(database, number, asset), PIECE)


class ChunkFile(io.RawIOBase):
    """Content as a file to read. It holds no connection: each row is asked for when it is needed."""

    def __init__(self, database: AssetDatabase, number: int, asset: Asset) -> None:
        super().__init__()
        self._database = database
        self._number = number
        self._asset = asset
        self._position = 0
        self._start, self._row = 0, b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._asset.size}[whence]
        if base + offset < 0:
            raise ValueError(f"there is nothing before the beginning, at {base + offset}")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return where it is read from next."""
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read as much as the row has that is due, or as there is room for."""
        room = memoryview(buffer).cast("B")
        if not room or self._position >= self._asset.size:
            return 0
        if not self._start <= self._position < self._start + len(self._row):
            self._start, self._row = self._fetched()
        there = memoryview(self._row)[self._position - self._start :][: len(room)]
        room[: len(there)] = there
        self._position += len(there)
        return len(there)

    def readall(self) -> bytes:
        """Read all that is left, without having it in memory twice."""
        whole = io.BytesIO()
        while piece := self.read(PIECE):
            whole.write(piece)
        return whole.getvalue()

    def _fetched(self) -> tuple[int, bytes]:
        with self._database.reading() as transaction:
            found = transaction.rows(
                "SELECT start, data FROM agent_assets.chunks WHERE content = ? AND start <= ? "
                "ORDER BY start DESC LIMIT 1",
                self._number, self._position,
            )  # fmt: skip
            if not found or self._position >= found[0][0] + len(found[0][1]):
                raise _damage(transaction, self._asset)
        return found[0][0], found[0][1]


def _damage(transaction: PostgresTransaction, asset: Asset) -> StoreDamaged:
    """Return the error for content that is missing, unless it was deleted meanwhile: that is another one."""
    SharedIndex(transaction).get(asset.id)
    return StoreDamaged(f"the content of asset {asset.id!r} is gone; run check()")
