"""Session stores: one contract (`base`), one set of SQL, and a module for each database.

::

    base       what a store promises
    records    a session as rows
    lists      references and the content that they share
    sessions   making, reading, saving, forking
    search     lists of sessions, and those that have some words
    leases     who may write
    queues     events, inputs, approvals, intents
    grants     permissions that outlive one call
    formats    the tables of each format, and how to come from one to the next
    copying    what PostgreSQL keeps of a store before that
    upkeep     looking for damage, removing what nobody refers to
    database   what all of these need of a database: sqlite, postgres
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core import ArgumentError

if TYPE_CHECKING:
    from agent_app.store.base import SessionStore


def open_store(url: str) -> SessionStore:
    """Open the store that a URL means: ``sqlite:///path``, ``sqlite://`` in memory, or ``postgresql://…``.

    Raises:
        ArgumentError: If there is no store for such a URL.
        StoreError: If the database cannot be used.
    """
    from agent_app.store.sql import SqlStore

    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from agent_app.store.sqlite import SQLiteDatabase

        return SqlStore(SQLiteDatabase(url))
    if scheme in ("postgresql", "postgres"):
        from agent_app.store.postgres import PostgresDatabase

        return SqlStore(PostgresDatabase(url))
    raise ArgumentError(
        f"there is no store for {scheme!r} addresses: write sqlite:///path, sqlite:// for memory, or "
        "postgresql://host/database"
    )
