"""Files that belong to sessions: attachments, and tool output that is too long for a message.

::

    asset     what is known of one, which ones are accepted, and what its data says
    store     AssetStore: what all of them promise, on top of a place
    folder    SessionAssetStore: a folder, for one machine
    index     which session has which asset, in a small database in that folder
    postgres  PostgresAssetStore: a database, for many machines
    tables    which session has which asset, in that database
"""

from __future__ import annotations

import os

from agent_app.assets.asset import Asset, AssetNotFound, AssetRefused
from agent_app.assets.folder import SessionAssetStore
from agent_app.assets.store import AssetStore
from agent_core import ArgumentError

__all__ = ["Asset", "AssetNotFound", "AssetRefused", "AssetStore", "SessionAssetStore", "open_assets"]

_SHARED = ("postgresql://", "postgres://")


def open_assets(where: str | os.PathLike[str]) -> AssetStore:
    """Open the asset store that a folder means, or the URL of a database: ``postgresql://…``.

    Raises:
        ArgumentError: If there is no asset store for such a URL.
        StoreError: If the place cannot be used.
    """
    if isinstance(where, os.PathLike) or "://" not in where:
        return SessionAssetStore(where)
    if not where.startswith(_SHARED):
        raise ArgumentError(
            f"there is no asset store for {where.partition(':')[0]!r} addresses: "
            "write a folder, or postgresql://host/database"
        )
    from agent_app.assets.postgres import PostgresAssetStore

    return PostgresAssetStore(where)
