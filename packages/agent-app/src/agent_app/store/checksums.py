"""Checksums of the rows of a SQLite store: whether the disk still has what was written.

SQLite computes the checksum of a row with every write, by the function `row_sum` of our connections, and
keeps it in the row. So no writer can forget it. Content has its own hash, by which it is found.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHORT = 64
_MOST = 20  # rows of one table are named, the others counted


class Table(NamedTuple):
    """A table whose rows have checksums.

    Attributes:
        key: The columns by which a row is known.
        rest: The others, in the order in which the checksum has them.
    """

    key: tuple[str, ...]
    rest: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns but the checksum."""
        return self.key + self.rest


def _table(key: str, rest: str) -> Table:
    return Table(tuple(key.split()), tuple(rest.split()))


TABLES: Mapping[str, Table] = {
    "lists": _table("id", "parent base"),
    "entries": _table("list seq", "content note link renewed"),
    "sessions": _table(
        "id",
        "title title_folded agent_id created updated revision parent_id messages message_count natives "
        "native_count last_input tenant",
    ),
    "past": _table("highest", ""),
    "metadata": _table("session key_hash", "content"),
    "leases": _table("session", "owner token expires"),
    "events": _table("session seq", "body"),
    "inputs": _table("session seq", "body mode created taken"),
    "approvals": _table("id", "session body created decision used"),
    "intents": _table("session call_hash", "body"),
    "grants": _table("id", "what whose session body created tenant"),
    "feed": _table("position", "session seq body tenant"),
}
"""The tables whose rows have checksums; those that others refer to come first."""


def row_sum(*values: Any) -> int:
    """Return the checksum of a row from its values; 1, 1.0 and "1" are not the same."""
    for value in values:
        if type(value) is bytes and len(value) > _SHORT:
            return _long_sum(values)
    return crc32(repr(values).encode())


def _long_sum(values: tuple[Any, ...]) -> int:
    """Return the checksum of a row with a long body, which is not copied."""
    total = len(values)
    for value in values:
        total = crc32(value if type(value) is bytes else repr(value).encode(), total)
    return total


def install(connection: sqlite3.Connection) -> None:
    """Let a connection write rows that have checksums."""
    connection.create_function("row_sum", -1, row_sum, deterministic=True)
    connection.execute("PRAGMA trusted_schema = ON")  # some systems let no table call a function otherwise


def wrong_rows(
    connection: sqlite3.Connection, checked: dict[str, int], tables: Mapping[str, Table] = TABLES
) -> Iterator[str]:
    """Yield which rows are not what was written; *checked* has then how many there are."""
    checked["rows"] = 0
    for name, table in tables.items():
        try:
            checked["rows"] += connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            yield from _wrong_in(connection, name, table)
        except sqlite3.Error as error:
            yield f"{name} cannot be read ({error})"


def _wrong_in(connection: sqlite3.Connection, name: str, table: Table) -> Iterator[str]:
    found = connection.execute(
        f"SELECT {', '.join(table.key)} FROM {name} WHERE checksum IS NOT row_sum({', '.join(table.columns)})"
    ).fetchall()
    for row in found[:_MOST]:
        yield f"row {', '.join(map(_shown, row))} of {name} is not what it was when it was written"
    if len(found) > _MOST:
        yield f"{len(found) - _MOST} more rows of {name} are not what they were when they were written"


def _shown(value: Any) -> str:
    return value.hex()[:16] if type(value) is bytes else repr(value)
