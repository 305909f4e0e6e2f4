"""The feed: the events of all sessions, and those of none, in one order that every reader sees alike.

A position is given while its transaction is under way, and transactions do not end in the order in which they
began. A reader who has seen position 7 must never miss a 6 that comes later. SQLite has one writer at a time,
so there positions simply rise. PostgreSQL has many: there a position begins with the number of a transaction,
and nothing is read of transactions that began after the oldest one that is still under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app.store.records import decode_stored as decode, encode
from agent_app.store.tenants import condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app.store.database import Database, Transaction


def add_own(
    database: Database,
    transaction: Transaction,
    events: Sequence[Mapping[str, Any]],
    tenant: str | None = None,
) -> None:
    """Write events that belong to no session's log, for a tenant or for that of the transaction."""
    whose = (transaction.tenant or "") if tenant is None else tenant
    for event in events:
        sql = f"INSERT INTO feed (position, body, tenant) SELECT {database.next_position}, ?, ?"
        transaction.run(sql, encode(dict(event)), whose)


def read(database: Database, transaction: Transaction, after: int, limit: int) -> list[dict[str, Any]]:
    """Return the events behind a position, each with its `cursor`, its `session_id` and its `seq` there."""
    own, tenant = condition(transaction, "f.tenant")
    rows = transaction.rows(
        "SELECT f.position, f.session, f.seq, coalesce(f.body, e.body), f.tenant FROM feed f "
        "LEFT JOIN events e ON e.session = f.session AND e.seq = f.seq "
        f"WHERE f.position > ? AND f.position < ? AND {own} ORDER BY f.position LIMIT ?",
        after, database.settled(transaction), *tenant, limit,
    )  # fmt: skip
    return [_event(*row) for row in rows]


def _event(
    position: int, session_id: str | None, seq: int | None, body: bytes, tenant: str
) -> dict[str, Any]:
    event: dict[str, Any] = {**decode(body), "cursor": str(position)}
    if session_id is not None:
        event |= {"session_id": session_id, "seq": seq}
    if tenant:
        event["tenant"] = tenant
    return event


def end(database: Database, transaction: Transaction) -> int:
    """Return the position of the last event that can be read now; 0 if there is none."""
    own, tenant = condition(transaction, "tenant")
    sql = f"SELECT max(position) FROM feed WHERE position < ? AND {own}"
    last: int | None = transaction.rows(sql, database.settled(transaction), *tenant)[0][0]
    return last or 0
