"""Assets in PostgreSQL: what one machine puts there, all others have.

Data is received in a temporary file of this machine, so that a slow source keeps nobody waiting, and goes
to the server in the transaction that notes it. So whatever goes wrong, at any moment, the server has all of
it or nothing. Content that the server has already is compared there, and does not travel again.
"""

from __future__ import annotations

from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, BinaryIO

from agent_app.assets import chunks
from agent_app.assets.disk import disk_errors
from agent_app.assets.limits import MAX_BYTES, Limits
from agent_app.assets.shared import SharedIndex
from agent_app.assets.store import AssetStore
from agent_app.assets.tables import AssetDatabase
from agent_app.store.base import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from agent_app.assets.asset import Asset

_IN_MEMORY = 1 << 20


class PostgresAssetStore(AssetStore):
    """Keeps the files of sessions in a PostgreSQL database, for the processes of many machines.

    The tables are in the schema ``agent_assets``, which is made if it is not there.

    Args:
        url: ``postgresql://user@host/database``, or anything else that libpq reads.
        max_bytes: How large one asset may be.
        allowed_types: Media types that are taken, such as ``"image/png"`` or ``"image/*"``; all by default.
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
    """Tables with content and with the index."""

    def __init__(self, database: AssetDatabase) -> None:
        self._database = database
        self.clock = database.now

    @contextmanager
    def receiving(self) -> Iterator[PostgresIncoming]:
        """Make a temporary file to receive data in; a small one is not written to disk."""
        with (
            disk_errors("the folder for temporary files"),
            SpooledTemporaryFile(_IN_MEMORY) as file,
        ):
            yield PostgresIncoming(self._database, file)

    @contextmanager
    def reading(self) -> Iterator[SharedIndex]:
        """Look something up."""
        with self._database.reading() as transaction:
            yield SharedIndex(transaction)

    @contextmanager
    def writing(self, *session_ids: str) -> Iterator[SharedIndex]:
        """Change what sessions have, everything or nothing; nobody else changes these sessions meanwhile."""
        with self._database.changing() as transaction:
            index = SharedIndex(transaction)
            index.lock(*session_ids)
            yield index

    def open(self, asset: Asset) -> BinaryIO:
        """Return the content of an asset."""
        return chunks.open_content(self._database, asset)

    def collect(self) -> Report:
        """Remove content that no session has; what a crash interrupts, the server undoes by itself."""
        removed, more = 0, True
        while more:
            with self._database.changing() as transaction:
                found, more = chunks.collect(transaction)
            removed += found
        return Report({"content": removed, "temporary": 0})

    def damage(self) -> list[str]:
        """Return what the server has noticed to be wrong with the database's files."""
        return self._database.damage()

    def close(self) -> None:
        """Close the connections."""
        self._database.close()


class PostgresIncoming:
    """A temporary file that data is written to before it goes to the server."""

    def __init__(self, database: AssetDatabase, file: IO[bytes]) -> None:
        self._database = database
        self._file = file

    def write(self, piece: bytes) -> None:
        """Write the next piece."""
        self._file.write(piece)

    @contextmanager
    def keeping(self, asset: Asset) -> Iterator[SharedIndex]:
        """Send the content, and only then keep others from its session, until the asset is noted."""
        with self._database.changing() as transaction:
            chunks.keep(transaction, asset, self._file)
            index = SharedIndex(transaction)
            index.lock(asset.session_id, asset.id)
            yield index
