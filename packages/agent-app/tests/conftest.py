"""Stores to test with: SQLite in a file and in memory, and PostgreSQL on the server of the test run."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from agent_app.assets import SessionAssetStore
from agent_app.errors import StoreUnavailable
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_app.testing.postgres import create_database, shared_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_app.assets import Asset, AssetStore

# A store in memory runs the code of one in a file, without the file.
KINDS = ("sqlite file", pytest.param("sqlite memory", marks=pytest.mark.slow), "postgres")
ASSET_KINDS = ("folder", "postgres")


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store in a file: copying it is faster than creating its tables again."""
    path = tmp_path_factory.mktemp("empty") / "store.db"
    SQLiteDatabase(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def address(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of an empty store; in memory, it is a new one each time it is opened."""
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    if kind == "sqlite memory":
        return "sqlite://"
    shutil.copy(request.getfixturevalue("empty_file"), tmp_path / "store.db")
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def open_again(address: str, clock: Clock) -> Iterator[Callable[[], SqlStore]]:
    """Open the store once more, as another process would."""
    opened: list[SqlStore] = []

    def open_it() -> SqlStore:
        opened.append(SqlStore(_database(address, clock)))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_again: Callable[[], SqlStore]) -> SqlStore:
    return open_again()


def _database(url: str, clock: Clock) -> Any:
    if url.startswith("sqlite"):
        return SQLiteDatabase(url, clock=clock, ticks=clock)
    from agent_app.store.postgres import PostgresDatabase

    return PostgresDatabase(url, clock=clock)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of a PostgreSQL database whose store is empty."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('agent_store.past')").fetchone() == (None,):
            connection.execute("DROP SCHEMA IF EXISTS agent_store CASCADE")
        else:  # faster than making the tables again
            connection.execute("; ".join(f"DELETE FROM agent_store.{table}" for table in _TABLES))
            connection.execute("UPDATE agent_store.past SET highest = 0")
    return postgres_server


_TABLES = ("feed", "grants", "sessions", "entries", "lists", "words", "content")


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of a database that this process has to itself, on the server of the test run."""
    try:
        return create_database(shared_server())
    except StoreUnavailable as error:
        pytest.skip(str(error))


class AssetHome(Protocol):
    """A place for assets that can be looked at, and damaged, from outside."""

    address: str

    def open(self, **limits: Any) -> AssetStore:
        """Open the store there, once more."""

    def kept(self) -> list[str]:
        """Return the hashes by which content is kept."""

    def spoil(self, asset: Asset, data: bytes | None) -> None:
        """Put other data in the place of an asset's content, or none."""


class FolderHome:
    """A folder with assets."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.address = str(root)

    def open(self, **limits: Any) -> AssetStore:
        return SessionAssetStore(self.root, **limits)

    def kept(self) -> list[str]:
        """Return the names of all files, whatever they are, but the index."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return sorted(path.name for path in files if not path.name.startswith("assets.db"))

    def spoil(self, asset: Asset, data: bytes | None) -> None:
        content = self.root / "content" / asset.sha256[:2] / asset.sha256
        if data is None:
            content.unlink()
        else:
            content.write_bytes(data)


class PostgresHome:
    """A database with assets."""

    def __init__(self, url: str) -> None:
        self.address = url

    def open(self, **limits: Any) -> AssetStore:
        from agent_app.assets.postgres import PostgresAssetStore

        return PostgresAssetStore(self.address, **limits)

    def kept(self) -> list[str]:
        """Return the hashes of what the rows have, whether they are known or not."""
        return [row[0] for row in self.rows(
            "SELECT encode(sha256(coalesce(string_agg(d.data, ''::bytea ORDER BY d.start), '')), 'hex') "
            "FROM agent_assets.content c FULL JOIN agent_assets.chunks d ON d.content = c.id "
            "GROUP BY coalesce(c.id, d.content) ORDER BY 1"
        )]  # fmt: skip

    def spoil(self, asset: Asset, data: bytes | None) -> None:
        chosen = "WHERE content = (SELECT id FROM agent_assets.content WHERE sha256 = %s)"
        if data is None:
            self.rows(f"DELETE FROM agent_assets.chunks {chosen}", asset.sha256)
        else:
            self.rows(f"UPDATE agent_assets.chunks SET data = %s {chosen}", data, asset.sha256)

    def rows(self, sql: Any, *values: Any) -> list[Any]:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def postgres_assets(postgres_server: str) -> PostgresHome:
    """A PostgreSQL database without assets."""
    home = PostgresHome(postgres_server)
    if home.rows("SELECT to_regclass('agent_assets.format')") == [(None,)]:
        home.rows("DROP SCHEMA IF EXISTS agent_assets CASCADE")
    else:  # faster than making the tables again
        home.rows("DELETE FROM agent_assets.assets; DELETE FROM agent_assets.content")
    return home


@pytest.fixture(params=ASSET_KINDS)
def asset_home(request: pytest.FixtureRequest, tmp_path: Path) -> AssetHome:
    if request.param == "folder":
        return FolderHome(tmp_path / "assets")
    found: AssetHome = request.getfixturevalue("postgres_assets")
    return found
