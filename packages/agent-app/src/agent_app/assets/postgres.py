"""Assets in PostgreSQL: what one machine puts there, all others have.

Data is received in a temporary file of this machine, so that a slow source keeps no transaction open, and
goes to the server in the transaction that records it. So whatever goes wrong, at any moment, the server has
all of it or nothing. Content that the server already has is compared there, and is not sent again.

Content is kept in rows of a bounded size, so that no more than one row is in memory. Rows that others can see
never change; a writer that finds some damaged writes them again.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from agent_app.assets.asset import MAX_BYTES, PIECE, Limits, pieces
from agent_app.assets.store import AssetStore, disk_errors
from agent_app.assets.tables import AssetDatabase, SharedIndex
from agent_app.errors import StoreDamaged
from agent_app.store.base import Report
from agent_app.store.tenants import TenantDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from _typeshed import WriteableBuffer

    from agent_app.assets.asset import Asset
    from agent_app.store.postgres import PostgresTransaction

_IN_MEMORY = 1 << 20


class PostgresAssetStore(AssetStore):
    """Keeps the files of sessions in a PostgreSQL database, for the processes of many machines.

    The tables are in the schema ``agent_assets``, which is created if it does not exist.

    Args:
        url: ``postgresql://user@host/database``, or anything else that libpq reads.
        max_bytes: How large one asset may be.
        allowed_types: Media types that are accepted, such as ``"image/png"`` or ``"image/*"``; all by
            default.
        quota: How many bytes the assets of one session may have together; any number by default.
        clock: Where the time comes from instead of the server, in seconds since 1970.

    Raises:
        StoreTooNew: If a later version made the tables.
        StoreUnavailable: If the server cannot be reached.
    """

    def __init__(
        self,
        url: str,
        *,
        max_bytes: int = MAX_BYTES,
        allowed_types: Collection[str] | None = None,
        quota: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        limits = Limits(max_bytes=max_bytes, allowed_types=allowed_types, quota=quota)
        super().__init__(PostgresPlace(AssetDatabase(url, clock=clock)), limits)


class PostgresPlace:
    """Tables with content and the index."""

    def __init__(self, database: AssetDatabase) -> None:
        self._database = database
        self.clock = database.now

    @contextmanager
    def receiving(self) -> Iterator[PostgresIncoming]:
        """Create a temporary file for incoming data; a small one stays in memory."""
        with (
            disk_errors("the folder for temporary files"),
            SpooledTemporaryFile(_IN_MEMORY) as file,
        ):
            yield PostgresIncoming(self._database, file)

    @contextmanager
    def reading(self) -> Iterator[SharedIndex]:
        with self._database.reading() as transaction:
            yield SharedIndex(transaction)

    @contextmanager
    def writing(self, *session_ids: str) -> Iterator[SharedIndex]:
        with self._database.changing() as transaction:
            index = SharedIndex(transaction)
            index.lock(*session_ids)
            yield index

    def open(self, asset: Asset) -> BinaryIO:
        return open_content(self._database, asset)

    def of_tenant(self, tenant: str) -> PostgresPlace:
        """Return the same, of which PostgreSQL lets one tenant's assets be read alone.

        What is written is not confined: content is the same for all who have it, and the assets of a session
        are removed when that is gone already.
        """
        return PostgresPlace(cast("AssetDatabase", TenantDatabase(self._database, tenant)))

    def collect(self) -> Report:
        """Remove content that no session has; the server itself undoes what a crash interrupts."""
        removed, more = 0, True
        while more:
            with self._database.changing() as transaction:
                found, more = collect(transaction)
            removed += found
        return Report({"content": removed, "temporary": 0})

    def damage(self) -> list[str]:
        return self._database.damage({}, deep=False)

    def close(self) -> None:
        self._database.close()


class PostgresIncoming:
    """A temporary file for data before it goes to the server."""

    def __init__(self, database: AssetDatabase, file: IO[bytes]) -> None:
        self._database = database
        self._file = file

    def write(self, piece: bytes) -> None:
        self._file.write(piece)

    @contextmanager
    def keeping(self, asset: Asset) -> Iterator[SharedIndex]:
        """Send the content, and only then lock the session, until the asset is added."""
        with self._database.changing() as transaction:
            keep(transaction, asset, self._file)
            index = SharedIndex(transaction)
            index.lock(asset.session_id, asset.id)
            yield index


_BATCH = 100


def keep(transaction: PostgresTransaction, asset: Asset, file: IO[bytes]) -> None:
    """Store the content of an asset, and keep others from removing it until the transaction ends."""
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
    """Write new content; False if another process wrote the same content first."""
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
    """Write content again if what is stored differs."""
    if _is_whole(transaction, number, asset.size, file):
        return
    transaction.rows("SELECT 1 FROM agent_assets.content WHERE id = ? FOR NO KEY UPDATE", number)
    _clear(transaction, number)
    _write(transaction, number, file)


def _is_whole(transaction: PostgresTransaction, number: int, size: int, file: IO[bytes]) -> bool:
    """Compare content with a file by hashes that the server computes, without sending content."""
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
    # Content that another transaction is about to refer to is locked by it, and no transaction can begin to
    # refer to what this one has locked. So the second check, which sees all commits before it, decides.
    found = transaction.rows(
        "SELECT c.id FROM agent_assets.content c "
        "WHERE NOT EXISTS (SELECT 1 FROM agent_assets.assets a WHERE a.content = c.id) "
        "ORDER BY c.id LIMIT ? FOR UPDATE OF c SKIP LOCKED",
        _BATCH,
    )
    removed = transaction.run(
        "DELETE FROM agent_assets.content c WHERE c.id = ANY(?) "
        "AND NOT EXISTS (SELECT 1 FROM agent_assets.assets a WHERE a.content = c.id)",
        [row[0] for row in found],
    )
    return removed, bool(found)


def open_content(database: AssetDatabase, asset: Asset) -> BinaryIO:
    """Return the content of an asset as a file that reads row after row.

    Raises:
        AssetNotFound: If the asset was deleted.
        StoreDamaged: If its content is missing or changed.
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
        raise StoreDamaged(f"the content of asset {asset.id!r} was changed; run check()")
    return io.BufferedReader(ChunkFile(database, number, asset), PIECE)


class ChunkFile(io.RawIOBase):
    """Content as a file to read. It keeps no connection: each row is fetched when it is needed."""

    def __init__(self, database: AssetDatabase, number: int, asset: Asset) -> None:
        super().__init__()
        self._database = database
        self._number = number
        self._asset = asset
        self._position = 0
        self._start, self._row = 0, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._asset.size}[whence]
        if base + offset < 0:
            raise ValueError(f"the position {base + offset} is before the beginning")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the rest of the current row, or as much as there is room for."""
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
        """Read the rest without having it in memory twice."""
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
    """Return the error for missing content; raises `AssetNotFound` if the asset was deleted."""
    SharedIndex(transaction).get(asset.id)
    return StoreDamaged(f"the content of asset {asset.id!r} is missing; run check()")
