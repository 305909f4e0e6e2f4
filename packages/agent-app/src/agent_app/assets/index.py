"""Which session has which asset: a small SQLite database next to the files."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app.assets.asset import Asset, AssetNotFound
from agent_app.errors import StoreDamaged, StoreTooNew, StoreUnavailable
from agent_app.store.checksums import Table, install, wrong_rows
from agent_app.store.sqlite_file import ReadOnly, why_read_only

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 2
"""The format that this version writes; an index of a later one is left alone."""

_BUSY_SECONDS = 10.0
# What leads from one format to the next; a step is never changed once it was released.
_STEPS = (
    """
    CREATE TABLE assets (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        media_type TEXT NOT NULL,
        size INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        created REAL NOT NULL
    );
    CREATE INDEX assets_by_content ON assets (sha256);
    CREATE TABLE refs (
        seq INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        asset TEXT NOT NULL REFERENCES assets (id),
        UNIQUE (session, asset)
    );
    CREATE INDEX refs_by_asset ON refs (asset)
    """,
    # Rows get checksums: SQLite cannot add computed columns, so the tables are created again.
    """
    CREATE TABLE assets_2 (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        media_type TEXT NOT NULL,
        size INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        created REAL NOT NULL,
        checksum INTEGER GENERATED ALWAYS AS (row_sum(id, name, media_type, size, sha256, created)) STORED
    );
    INSERT INTO assets_2 (id, name, media_type, size, sha256, created)
        SELECT id, name, media_type, size, sha256, created FROM assets;
    DROP TABLE assets;
    ALTER TABLE assets_2 RENAME TO assets;
    CREATE INDEX assets_by_content ON assets (sha256);
    CREATE TABLE refs_2 (
        seq INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        asset TEXT NOT NULL REFERENCES assets (id),
        checksum INTEGER GENERATED ALWAYS AS (row_sum(seq, session, asset)) STORED,
        UNIQUE (session, asset)
    );
    INSERT INTO refs_2 (seq, session, asset) SELECT seq, session, asset FROM refs;
    DROP TABLE refs;
    ALTER TABLE refs_2 RENAME TO refs;
    CREATE INDEX refs_by_asset ON refs (asset)
    """,
)
_SUMMED = {
    "assets": Table(("id",), ("name", "media_type", "size", "sha256", "created")),
    "refs": Table(("seq",), ("session", "asset")),
}
_JOIN = (
    "SELECT a.id, a.name, a.media_type, a.size, a.sha256, r.session, a.created "
    "FROM refs r JOIN assets a ON a.id = r.asset"
)


class AssetIndex:
    """The index of an asset store; one connection, used by one thread at a time.

    Raises:
        StoreTooNew, StoreDamaged, StoreUnavailable: If the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._read_only = why_read_only(path)
        self._copy: ReadOnly | None = None
        with self._errors():
            if self._read_only is None:
                self._connection = _open(path)
            else:
                self._copy = ReadOnly(str(path), _is_current, lambda copy: _open(Path(copy)))
                self._connection = self._copy.connection

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all or nothing, while no other thread or process can write."""
        if self._read_only is not None:
            raise StoreUnavailable(f"assets are read-only, so nothing was written: {self._read_only}")
        with self._lock, self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def add(self, asset: Asset) -> None:
        self._connection.execute(
            "INSERT INTO assets (id, name, media_type, size, sha256, created) VALUES (?, ?, ?, ?, ?, ?)",
            (asset.id, asset.name, asset.media_type, asset.size, asset.sha256, asset.created),
        )
        self.refer(asset.session_id, asset.id)

    def refer(self, session_id: str, asset_id: str) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO refs (session, asset) VALUES (?, ?)", (session_id, asset_id)
        )

    def share(self, from_session: str, to_session: str) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO refs (session, asset) "
            "SELECT ?, asset FROM refs WHERE session = ? ORDER BY seq",
            (to_session, from_session),
        )

    def drop(self, session_id: str, asset_id: str | None = None) -> int:
        dropped = self._connection.execute(
            "DELETE FROM refs WHERE session = ? AND (? IS NULL OR asset = ?) RETURNING asset",
            (session_id, asset_id, asset_id),
        ).fetchall()
        self._connection.executemany(
            "DELETE FROM assets WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM refs WHERE asset = ?1)", dropped
        )
        return len(dropped)

    def get(self, asset_id: str, session_id: str | None = None) -> Asset:
        found = self._assets(
            _JOIN + " WHERE r.asset = ? AND (? IS NULL OR r.session = ?) ORDER BY r.seq LIMIT 1",
            asset_id, session_id, session_id,
        )  # fmt: skip
        if not found:
            raise AssetNotFound(asset_id)
        return found[0]

    def of_session(self, session_id: str) -> tuple[Asset, ...]:
        return self._assets(_JOIN + " WHERE r.session = ? ORDER BY r.seq", session_id)

    def all(self) -> tuple[Asset, ...]:
        return self._assets(_JOIN + " GROUP BY a.id HAVING min(r.seq)")

    def total(self, session_id: str) -> int:
        return sum(asset.size for asset in self.of_session(session_id))

    def has_content(self, sha256: str) -> bool:
        """Say whether an asset has that content."""
        with self._lock, self._errors():
            found = self._connection.execute("SELECT 1 FROM assets WHERE sha256 = ? LIMIT 1", (sha256,))
            return found.fetchone() is not None

    def damage(self) -> list[str]:
        """Return the problems that SQLite finds in the file, and which rows were changed."""
        with self._lock, self._errors():
            found = [row[0] for row in self._connection.execute("PRAGMA integrity_check")]
            wrong = list(wrong_rows(self._connection, {}, _SUMMED))
        return [f"the index reports: {text}" for text in found if text != "ok"] + wrong

    def close(self) -> None:
        with self._lock:
            self._connection.close()
            if self._copy is not None:
                self._copy.close()

    def _assets(self, sql: str, *values: object) -> tuple[Asset, ...]:
        with self._lock, self._errors():
            rows = self._connection.execute(sql, values).fetchall()
        return tuple(Asset(**dict(zip(Asset.__slots__, row, strict=True))) for row in rows)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(
                f"{self._path} cannot be used now ({error}): nothing was written; "
                "check disk space, rights, and other processes"
            ) from error
        except sqlite3.ProgrammingError as error:
            raise StoreUnavailable(f"{self._path} is closed: open the asset store again") from error
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"{self._path} is damaged ({error}): keep the file, restore a copy") from error


def _open(path: Path) -> sqlite3.Connection:
    if path.is_symlink():
        raise StoreDamaged(f"{path} is a link to another place: remove it, or choose another folder")
    path.touch(mode=0o600, exist_ok=True)
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        found = _format(connection, path)
        install(connection)
        connection.execute("PRAGMA secure_delete = ON")  # deleted names must not stay readable in the file
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if found < FORMAT:
            _make_tables(connection, path)
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_current(connection: sqlite3.Connection, path: str) -> bool:
    install(connection)
    return _format(connection, Path(path)) == FORMAT


def _format(connection: sqlite3.Connection, path: Path) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > FORMAT:
        raise StoreTooNew(str(path), found, FORMAT)
    return found


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    found = _format(connection, path)  # another process may have been faster
    for step in _STEPS[found:]:
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")
