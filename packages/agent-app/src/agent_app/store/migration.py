"""How a database comes from one format to the next: the steps, and a copy of it before they are taken.

The steps are SQL files in ``formats/``, for each database. A step never changes once it was released:
databases exist in every format that there ever was. A copy is in the format that the store had, so it can
become the store again: SQLite's by its file name, PostgreSQL's by its schema name alone.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app.store import checksums
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app.store.database import Transaction

_BUSY_SECONDS = 10.0
_log = get_logger("store")


def script(database: str, after: int, upto: int) -> str:
    """Return the statements that lead a database from one format to another, step by step."""
    folder = files("agent_app.store") / "formats"
    steps = (folder / f"{database}-{number}.sql" for number in range(after + 1, upto + 1))
    return "\n".join(step.read_text(encoding="utf-8") for step in steps)


def statements(script: str) -> Iterator[str]:
    """Yield the statements one by one: `executescript` would end our transaction."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("--"))
    for statement in code.split(";"):
        if statement.strip():
            yield statement


def copy_sqlite(path: str, copy: str) -> None:
    """Copy a database that no one else is writing; the copy is complete or not there at all."""
    unfinished = Path(f"{copy}.unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    # A connection of its own, since the other one is in a transaction.
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as reader:
        checksums.install(reader)
        reader.execute("VACUUM INTO ?", (str(unfinished),))
    unfinished.replace(copy)
    _log.info("store_put_aside", store=path, copy=copy)


def copy_postgres(transaction: Transaction, schema: str, found: int) -> str:
    """Copy all tables of a store that no one else is writing, and return the schema of the copy.

    It needs no program from outside, and is part of the transaction.

    Args:
        schema: The schema of the store, and the search path again afterwards.
        found: The format of the store.
    """
    copy = _name(transaction, schema, found)
    transaction.run(f"CREATE SCHEMA {copy}")
    transaction.run(f"SET LOCAL search_path = {copy}")
    transaction.run(script("postgres", 0, found))
    for table in _tables(transaction, copy):
        _fill(transaction, schema, copy, table)
    transaction.run(f"SET LOCAL search_path = {schema}")
    return copy


def _name(transaction: Transaction, schema: str, found: int) -> str:
    """Return a schema name with the format and the time of the copy."""
    moment = "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD_HH24MISS')"
    made: str = transaction.rows(f"SELECT {moment}")[0][0]
    return f"{schema}_format_{found}_{made}"


def _tables(transaction: Transaction, schema: str) -> list[str]:
    """Return the tables in the order of their creation: those that others refer to come first."""
    rows = transaction.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = ?::regnamespace AND relkind = 'r' ORDER BY oid",
        schema,
    )
    return [row[0] for row in rows]


def _fill(transaction: Transaction, schema: str, copy: str, table: str) -> None:
    columns = transaction.rows(
        "SELECT quote_ident(attname), attidentity <> '' FROM pg_attribute "
        "WHERE attrelid = ?::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        f"{copy}.{table}",
    )
    names = ", ".join(name for name, _ in columns)
    transaction.run(f"DELETE FROM {copy}.{table}")
    transaction.run(
        f"INSERT INTO {copy}.{table} ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM {schema}.{table}"
    )
    for name in (name for name, numbered in columns if numbered):
        transaction.rows(
            f"SELECT setval(pg_get_serial_sequence(?, ?), coalesce(max({name}), 1)) FROM {schema}.{table}",
            f"{copy}.{table}", name,
        )  # fmt: skip
