"""Which session has which asset, in tables that many machines share.

Whoever changes what a session has holds the lock of that session, and whoever brings an id the lock of
that id, until the transaction ends. Locks are taken in one order, so that nobody waits in a ring.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from agent_app.assets.asset import Asset, AssetNotFound

if TYPE_CHECKING:
    from agent_app.store.postgres import PostgresTransaction

_LOCKS = 0x61677374  # the first half of our keys of advisory locks
_ASSETS = (
    "SELECT a.id, a.name, a.media_type, c.size, c.sha256, a.session, a.created "
    "FROM agent_assets.assets a JOIN agent_assets.content c ON c.id = a.content"
)
_COPY = (
    "INSERT INTO agent_assets.assets (session, id, name, media_type, content, created) "
    "SELECT ?, id, name, media_type, content, created FROM agent_assets.assets"
)


class SharedIndex:
    """The index of an asset store, as one transaction sees it."""

    def __init__(self, transaction: PostgresTransaction) -> None:
        self._transaction = transaction

    def lock(self, *names: str) -> None:
        """Let nobody else change these sessions, or bring these ids, until the transaction ends."""
        for key in sorted(set(map(_key, names))):
            self._transaction.rows("SELECT pg_advisory_xact_lock(?::int, ?::int)", _LOCKS, key)

    def add(self, asset: Asset) -> None:
        """Note an asset whose content is there, and that its session has it."""
        self._transaction.run(
            "INSERT INTO agent_assets.assets (session, id, name, media_type, content, created) "
            "SELECT ?, ?, ?, ?, id, ? FROM agent_assets.content WHERE sha256 = ?",
            asset.session_id, asset.id, asset.name, asset.media_type, asset.created, asset.sha256,
        )  # fmt: skip

    def refer(self, session_id: str, asset_id: str) -> None:
        """Note that a session has an asset that is known already."""
        self._transaction.run(
            f"{_COPY} WHERE id = ? ORDER BY seq LIMIT 1 ON CONFLICT DO NOTHING", session_id, asset_id
        )

    def share(self, from_session: str, to_session: str) -> None:
        """Note that a session has what another one has."""
        self._transaction.run(
            f"{_COPY} WHERE session = ? ORDER BY seq ON CONFLICT DO NOTHING", to_session, from_session
        )

    def drop(self, session_id: str, asset_id: str | None = None) -> int:
        """Forget an asset of a session, or all of them; return how many it had."""
        return self._transaction.run(
            "DELETE FROM agent_assets.assets WHERE session = ? AND (?::text IS NULL OR id = ?)",
            session_id, asset_id, asset_id,
        )  # fmt: skip

    def get(self, asset_id: str, session_id: str | None = None) -> Asset:
        """Return an asset, as one of a session's if that is given.

        Raises:
            AssetNotFound: If there is none.
        """
        found = self._assets(
            "WHERE a.id = ? AND (?::text IS NULL OR a.session = ?) ORDER BY a.seq LIMIT 1",
            asset_id, session_id, session_id,
        )  # fmt: skip
        if not found:
            raise AssetNotFound(asset_id)
        return found[0]

    def of_session(self, session_id: str) -> tuple[Asset, ...]:
        """Return the assets of a session, in the order in which they came."""
        return self._assets("WHERE a.session = ? ORDER BY a.seq", session_id)

    def total(self, session_id: str) -> int:
        """Return how many bytes the assets of a session have."""
        found: int = self._transaction.rows(
            "SELECT coalesce(sum(c.size), 0)::bigint FROM agent_assets.assets a "
            "JOIN agent_assets.content c ON c.id = a.content WHERE a.session = ?",
            session_id,
        )[0][0]
        return found

    def all(self) -> tuple[Asset, ...]:
        """Return all assets, each once."""
        return self._assets(
            "WHERE NOT EXISTS (SELECT 1 FROM agent_assets.assets b WHERE b.id = a.id AND b.seq < a.seq) "
            "ORDER BY a.seq"
        )

    def _assets(self, condition: str, *values: object) -> tuple[Asset, ...]:
        rows = self._transaction.rows(f"{_ASSETS} {condition}", *values)
        return tuple(Asset(**dict(zip(Asset.__slots__, row, strict=True))) for row in rows)


def _key(name: str) -> int:
    """Return the second half of the key that a name is locked by; two of one key only wait for each other."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], signed=True)
