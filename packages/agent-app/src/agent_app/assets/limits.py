"""How much an asset store takes, and of which kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_app.assets.asset import AssetRefused
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_app.assets.asset import Asset

MAX_BYTES = 50_000_000
"""How large one asset may be where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is taken and what is refused; see `SessionAssetStore` for the fields.

    Raises:
        ArgumentError: If the media types are not a list.
    """

    max_bytes: int
    allowed_types: Collection[str] | None
    quota: int | None

    def __post_init__(self) -> None:
        if isinstance(self.allowed_types, str):
            raise ArgumentError(f"allowed_types is a list of media types, such as [{self.allowed_types!r}]")

    def check_size(self, size: int) -> None:
        """Raise `AssetRefused` if one asset may not be so large."""
        if size > self.max_bytes:
            raise AssetRefused(f"an asset may have {self.max_bytes} bytes, and this one has more")

    def check_type(self, asset: Asset) -> None:
        """Raise `AssetRefused` if assets of its type are not taken."""
        self.check_kind(asset.name, asset.media_type)

    def check_kind(self, name: str, kind: str) -> None:
        """Raise `AssetRefused` if a media type is not taken."""
        allowed = self.allowed_types
        if allowed is None or kind in allowed or f"{kind.partition('/')[0]}/*" in allowed:
            return
        raise AssetRefused(f"{name!r} is {kind}, and only these are taken here: {', '.join(sorted(allowed))}")

    def check_room(self, asset: Asset, had: int) -> None:
        """Raise `AssetRefused` if a session that has *had* bytes may not have an asset as well."""
        if self.quota is not None and had + asset.size > self.quota:
            raise AssetRefused(
                f"{asset.name!r} has {asset.size} bytes, and session {asset.session_id!r} may have only "
                f"{max(0, self.quota - had)} more: delete something first"
            )
