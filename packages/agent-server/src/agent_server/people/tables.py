"""The tables about people, in the database of the sessions: a file next to it, or a schema of its own.

They are small and asked one statement at a time, so there is no more here than connections, a format, and one
way to write parameters for both databases.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent_app.errors import StoreTooNew, StoreUnavailable
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FORMAT = 2
SCHEMA = "agent_people"
_IDLE = 4
_STEPS = (
    # Format 1. Secrets are here as hashes only; `owner` of a key is the person who made it.
    """
    CREATE TABLE people (
        id TEXT PRIMARY KEY, tenant TEXT NOT NULL, role TEXT NOT NULL, name TEXT NOT NULL,
        email TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, disabled INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX people_by_tenant ON people (tenant);
    CREATE INDEX people_by_email ON people (email);
    CREATE TABLE api_keys (
        id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, person TEXT NOT NULL REFERENCES people (id),
        name TEXT NOT NULL, scope TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION,
        revoked DOUBLE PRECISION
    );
    CREATE INDEX api_keys_by_person ON api_keys (person);
    CREATE TABLE shares (
        id TEXT PRIMARY KEY, session TEXT NOT NULL, tenant TEXT NOT NULL, email TEXT, hash TEXT UNIQUE,
        role TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION,
        made_by TEXT NOT NULL, revoked DOUBLE PRECISION
    );
    CREATE INDEX shares_by_session ON shares (session);
    CREATE INDEX shares_by_email ON shares (email);
    CREATE TABLE audit (
        id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, tenant TEXT NOT NULL, person TEXT NOT NULL,
        action TEXT NOT NULL, target TEXT NOT NULL, outcome TEXT NOT NULL, address TEXT NOT NULL
    );
    CREATE INDEX audit_by_time ON audit (tenant, at);
    CREATE TABLE usage (
        person TEXT NOT NULL, day TEXT NOT NULL, runs BIGINT NOT NULL, tokens BIGINT NOT NULL,
        cost DOUBLE PRECISION NOT NULL, PRIMARY KEY (person, day)
    );
    CREATE TABLE provider_keys (
        person TEXT NOT NULL REFERENCES people (id), provider TEXT NOT NULL, sealed TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, PRIMARY KEY (person, provider)
    );
    CREATE TABLE format (number INTEGER NOT NULL);
    INSERT INTO format VALUES (1)
    """,
    # Format 2. What several servers count together; after a crash of the database it may begin anew.
    """
    CREATE UNLOGGED TABLE rates (
        person TEXT PRIMARY KEY, remaining DOUBLE PRECISION NOT NULL, granted INTEGER NOT NULL,
        at DOUBLE PRECISION NOT NULL
    );
    CREATE UNLOGGED TABLE running (
        id TEXT PRIMARY KEY, person TEXT NOT NULL, seen DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX running_by_person ON running (person);
    UPDATE format SET number = 2
    """,
)


class Tables(Protocol):
    """The tables of one server. All methods block."""

    def rows(self, sql: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows."""

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement, and return how many rows it changed; it is safe when this returns."""

    def alone(self, name: str, sql: str, *values: Any) -> int:
        """Do what `run` does while nobody else does anything under the same name."""

    def close(self) -> None:
        """Let go of the connections."""


def open_tables(store_url: str) -> Tables:
    """Open the tables that belong to the store at an address.

    Raises:
        StoreTooNew: If a later version made them.
        StoreUnavailable: If they cannot be reached.
    """
    if store_url.startswith(("postgresql:", "postgres:")):
        return PostgresTables(store_url)
    path = store_url.removeprefix("sqlite://").removeprefix("/")
    return SQLiteTables(f"{path}.people" if path else ":memory:")


def _check_text(values: Sequence[Any]) -> None:
    """Refuse the character that PostgreSQL keeps in no text, for both databases.

    Raises:
        ArgumentError: If a text has it.
    """
    for value in values:
        if isinstance(value, str) and "\0" in value:
            raise ArgumentError(f"{value!r} has a NUL character, which cannot be stored")


class SQLiteTables:
    """A file next to that of the sessions, which this user alone can read."""

    def __init__(self, path: str) -> None:
        if path != ":memory:":
            file = Path(path)
            file.touch(mode=0o600)
            file.chmod(0o600)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute("BEGIN IMMEDIATE")
        there = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'format'").fetchone()
        found = self._connection.execute("SELECT number FROM format").fetchone()[0] if there else 0
        if found > FORMAT:
            self._connection.close()
            raise StoreTooNew(path, found, FORMAT)
        for step in _STEPS[found:]:
            for statement in step.replace("UNLOGGED", "").split(";"):
                self._connection.execute(statement)
        self._connection.execute("COMMIT")

    def rows(self, sql: str, *values: Any) -> Sequence[Sequence[Any]]:
        _check_text(values)
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        _check_text(values)
        with self._lock:
            return self._connection.execute(sql, values).rowcount

    def alone(self, _name: str, sql: str, *values: Any) -> int:
        return self.run(sql, *values)  # a writer is alone

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class PostgresTables:
    """A schema of the database of the sessions."""

    def __init__(self, url: str) -> None:
        import psycopg  # those who keep sessions elsewhere need not have it

        self._url = url
        self._error = psycopg.Error
        self._connect = psycopg.connect
        self._idle: list[Any] = []
        self._closed = False
        self._lock = threading.Lock()
        with self._lent() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(7021790311)")
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.format",)).fetchone()[0]
            found = connection.execute("SELECT number FROM format").fetchone()[0] if there else 0
            if found > FORMAT:
                raise StoreTooNew("the database of people", found, FORMAT)
            for step in _STEPS[found:]:
                connection.execute(step)

    def rows(self, sql: str, *values: Any) -> Sequence[Sequence[Any]]:
        _check_text(values)
        with self._lent() as connection:
            found: Sequence[Sequence[Any]] = connection.execute(sql.replace("?", "%s"), values).fetchall()
            return found

    def run(self, sql: str, *values: Any) -> int:
        _check_text(values)
        with self._lent() as connection:
            return int(connection.execute(sql.replace("?", "%s"), values).rowcount)

    def alone(self, name: str, sql: str, *values: Any) -> int:
        _check_text(values)
        with self._lent() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))
            return int(connection.execute(sql.replace("?", "%s"), values).rowcount)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _lent(self) -> Iterator[Any]:
        """Lend a connection, in which each statement is a transaction."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        try:
            if connection is None or connection.closed:
                connection = self._connect(self._url, autocommit=True, connect_timeout=10)
                connection.execute(f"SET search_path = {SCHEMA}")
            yield connection
        except self._error as error:
            if connection is not None:
                connection.close()
            raise StoreUnavailable(f"the tables about people cannot be used now: {error}") from error
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()
