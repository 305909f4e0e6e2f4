"""What is known of an asset, and what can go wrong with one."""

from __future__ import annotations

from dataclasses import dataclass

from agent_app.errors import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file that belongs to a session.

    Attributes:
        id: By what it is asked for; random, so that nobody can guess the one of another session.
        name: What people call it. For showing only: it is never a path.
        media_type: What kind of data it is, as far as its content allows that.
        size: How many bytes it has.
        sha256: The hash of its content, in hexadecimal digits.
        session_id: The session in which it was found.
        created: When it was put there, in seconds since 1970.
    """

    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    session_id: str
    created: float


class AssetNotFound(StoreError, KeyError):  # noqa: N818 - named like SessionNotFound
    """No session has an asset of that id."""

    def __init__(self, asset_id: str) -> None:
        self.asset_id = asset_id
        super().__init__(
            f"Asset {asset_id!r} is not kept here; list(session_id) has those that a session has"
        )


class AssetRefused(StoreError, ValueError):  # noqa: N818 - named like WriteRefused
    """Data is larger than allowed, or of a type that is not; nothing was kept."""
