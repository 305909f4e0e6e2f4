"""Session stores: one contract (`base`), one set of SQL, and a module for each database.

::

    base       what a store promises
    records    a session as rows
    lists      references and the content that they share
    sessions   making, reading, saving, forking
    pages      long sessions, read page by page
    search     lists of sessions, and those with certain words
    leases     who may write
    processes  which process that is, and whether it is alive
    queues     events, inputs, approvals, intents
    grants     permissions that outlive one call
    tenants    a view on a store that has the sessions of one tenant
    migration  from one format to the next, after a copy
    upkeep     checks for damage, removal of what is not used
    database   what all of these need of a database: sqlite, postgres
    replica    a copy of a PostgreSQL database from which events are read
    repair     saves what can be read of a damaged SQLite store
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import ArgumentError

if TYPE_CHECKING:
    from agent_app.store.base import SessionStore


def open_store(url: str, *, replica: str | None = None) -> SessionStore:
    """Open the store that a URL means: ``sqlite:///path``, ``sqlite://`` in memory, or ``postgresql://…``.

    Args:
        replica: The URL of a streaming replica of a PostgreSQL database, from which events are read.

    Raises:
        ArgumentError: If there is no store for such a URL.
        StoreError: If the database cannot be used. The replica may be away.
    """
    scheme = url.partition(":")[0]
    if replica is not None and scheme not in ("postgresql", "postgres"):
        raise ArgumentError(f"only PostgreSQL has replicas, and the store is at a {scheme!r} address")
    if scheme == "sqlite":
        return SqlStore(SQLiteDatabase(url))
    if scheme in ("postgresql", "postgres"):
        from agent_app.store.postgres import PostgresDatabase

        if replica is None:
            return SqlStore(PostgresDatabase(url))
        from agent_app.store.replica import Replica, ReplicaDatabase

        return SqlStore(PostgresDatabase(url), Replica(ReplicaDatabase(replica)))
    raise ArgumentError(
        f"there is no store for {scheme!r} addresses: write sqlite:///path, sqlite:// for memory, or "
        "postgresql://host/database"
    )
