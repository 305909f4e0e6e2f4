"""Files that belong to sessions: attachments, and tool output that is too long for a message.

::

    asset      what is known of one, and what can go wrong
    media      what kind of data it is, and what it is called
    limits     how much is taken, and of which kinds
    receiving  data that comes in: counted, hashed and looked at on its way
    store      AssetStore: what all of them promise, on top of a place
    place      what a store needs of the place where content and index are
    files      SessionAssetStore: a folder, for one machine
      folder     files below one folder, whatever happens to the folder meanwhile
      index      which session has which asset, in a small database
      disk       what the system says about files
    postgres   PostgresAssetStore: a database, for many machines
      tables     the tables of each format, and how to come from one to the next
      shared     which session has which asset, in those tables
      chunks     content in rows of a bounded size
"""

from __future__ import annotations

from pathlib import Path

from agent_app.assets.asset import Asset, AssetNotFound, AssetRefused
from agent_app.assets.files import SessionAssetStore
from agent_app.assets.store import AssetStore
from agent_core import ArgumentError

__all__ = ["Asset", "AssetNotFound", "AssetRefused", "AssetStore", "SessionAssetStore", "open_assets"]

_SHARED = ("postgresql://", "postgres://")


def open_assets(where: Path | str) -> AssetStore:
    """Open the asset store that a folder means, or the URL of a database: ``postgresql://…``.

    Raises:
        ArgumentError: If there is no asset store for such a URL.
        StoreError: If the place cannot be used.
    """
    if isinstance(where, Path) or "://" not in where:
        return SessionAssetStore(where)
    if not where.startswith(_SHARED):
        raise ArgumentError(
            f"there is no asset store for {where.partition(':')[0]!r} addresses: "
            "write a folder, or postgresql://host/database"
        )
    from agent_app.assets.postgres import PostgresAssetStore

    return PostgresAssetStore(where)
