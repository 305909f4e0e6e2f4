"""A copy of a PostgreSQL store in a schema beside it, made before the tables are changed.

The copy has the tables, keys and numbering of the format that the store is in, so that it becomes the store
again by its schema's name alone. It is made in the transaction of the change, with no program from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_app.store import formats

if TYPE_CHECKING:
    from agent_app.store.database import Transaction


def put_aside(transaction: Transaction, schema: str, found: int) -> str:
    """Copy all tables of a store that nobody writes now, and return the name of the copy's schema.

    Args:
        schema: The schema that the store is in; statements that follow are about it again.
        found: The format that the store is in.
    """
    copy = _name(transaction, schema, found)
    transaction.run(f"CREATE SCHEMA {copy}")
    transaction.run(f"SET LOCAL search_path = {copy}")
    transaction.run(formats.script("postgres", 0, found))
    for table in _tables(transaction, copy):
        _fill(transaction, schema, copy, table)
    transaction.run(f"SET LOCAL search_path = {schema}")
    return copy


def _name(transaction: Transaction, schema: str, found: int) -> str:
    """Return a name that says what the copy is of, and when it was made."""
    moment = "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD_HH24MISS')"
    made: str = transaction.rows(f"SELECT {moment}")[0][0]
    return f"{schema}_format_{found}_{made}"


def _tables(transaction: Transaction, schema: str) -> list[str]:
    """Return the tables in the order in which they were made: those that others refer to come first."""
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
    transaction.run(f"DELETE FROM {copy}.{table}")  # noqa: S608 - names of our own
    transaction.run(
        f"INSERT INTO {copy}.{table} ({names}) OVERRIDING SYSTEM VALUE "  # noqa: S608
        f"SELECT {names} FROM {schema}.{table}"
    )
    for name in (name for name, numbered in columns if numbered):
        transaction.rows(
            f"SELECT setval(pg_get_serial_sequence(?, ?), coalesce(max({name}), 1)) FROM {schema}.{table}",  # noqa: S608
            f"{copy}.{table}", name,
        )  # fmt: skip
