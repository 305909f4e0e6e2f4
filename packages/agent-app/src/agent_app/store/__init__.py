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
    repair     saves what can be read of a damaged SQLite store
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import ArgumentError

if TYPE_CHECKING:
    from agent_app.store.base import SessionStore


def open_store(url: str) -> SessionStore:
    """Open the store that a URL means: ``sqlite:///path``, ``sqlite://`` in memory, or ``postgresql://…``.

    Raises:
        ArgumentError: If there is no store for such a URL.
        StoreError: If the database cannot be used.
    """
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return SqlStore(SQLiteDatabase(url))
    if scheme in ("postgresql", "postgres"):
        from agent_app.store.postgres import PostgresDatabase

        return SqlStore(PostgresDatabase(url))
    raise ArgumentError(
        f"there is no store for {scheme!r} addresses: write sqlite:///path, sqlite:// for memory, or "
        "postgresql://host/database"
    )
