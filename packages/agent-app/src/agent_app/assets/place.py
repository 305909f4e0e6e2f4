"""What an asset store needs of the place where content is kept, and the index of who has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from agent_app.assets.asset import Asset
    from agent_app.store.base import Report


class Index(Protocol):
    """Which session has which asset, as far as one block of reading or writing goes."""

    def add(self, asset: Asset) -> None:
        """Note an asset of a new id, and that its session has it."""

    def refer(self, session_id: str, asset_id: str) -> None:
        """Note that a session has an asset that is known already."""

    def share(self, from_session: str, to_session: str) -> None:
        """Note that a session has what another one has."""

    def drop(self, session_id: str, asset_id: str | None = None) -> int:
        """Forget an asset of a session, or all of them; return how many it had."""

    def get(self, asset_id: str, session_id: str | None = None) -> Asset:
        """Return an asset, as one of a session's if that is given.

        Raises:
            AssetNotFound: If there is none.
        """

    def of_session(self, session_id: str) -> tuple[Asset, ...]:
        """Return the assets of a session, in the order in which they came."""

    def total(self, session_id: str) -> int:
        """Return how many bytes the assets of a session have."""

    def all(self) -> tuple[Asset, ...]:
        """Return all assets, each once."""


class Incoming(Protocol):
    """Data that comes in, and that nobody sees yet."""

    def write(self, piece: bytes) -> None:
        """Take the next piece."""

    def keeping(self, asset: Asset) -> AbstractContextManager[Index]:
        """Let an asset with this content be noted; content and note are kept when the block ends, or neither.

        Nobody else adds anything to its session meanwhile, nor an asset of its id to another one.
        """


class Place(Protocol):
    """Where content and index are.

    Methods raise `StoreUnavailable` if the place cannot be used now; nothing was kept then.
    """

    clock: Callable[[], float]
    """The time by which assets are dated, in seconds since 1970."""

    def receiving(self) -> AbstractContextManager[Incoming]:
        """Take data in; what was not kept is gone afterwards."""

    def reading(self) -> AbstractContextManager[Index]:
        """Look something up."""

    def writing(self, *session_ids: str) -> AbstractContextManager[Index]:
        """Change what sessions have, everything or nothing; nobody else changes these sessions meanwhile."""

    def open(self, asset: Asset) -> BinaryIO:
        """Return the content of an asset.

        Raises:
            AssetNotFound: If it was deleted meanwhile.
            StoreDamaged: If it is gone, or is not what was kept.
        """

    def collect(self) -> Report:
        """Remove content that no session has, and what crashes have left behind."""

    def damage(self) -> list[str]:
        """Return what the database of the index finds wrong with itself."""

    def close(self) -> None:
        """Let go of it."""
