"""The asset store: what it promises wherever the content is, and what it needs of the place where that is."""

from __future__ import annotations

from contextlib import contextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO, Protocol

from agent_app.assets.asset import Asset, AssetNotFound, AssetRefused, display_name, hash_of, receive
from agent_app.errors import StoreDamaged, StoreUnavailable
from agent_app.store.base import Report
from agent_app.store.sessions import is_name
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Self

    from agent_app.assets.asset import Limits


class AssetStore:
    """Keeps the files of sessions: content once, by its hash, and an index of who has it.

    `SessionAssetStore` keeps them in a folder, `PostgresAssetStore` in a database that many machines share.
    Any number of threads and processes may use one place.
    """

    def __init__(self, place: Place, limits: Limits) -> None:
        self._place = place
        self.limits = limits

    def of_tenant(self, tenant: str) -> AssetStore:
        """Return this store for one tenant, to which a database shows no assets of others.

        It shares connections with this one, and is closed with it.
        """
        return AssetStore(self._place.of_tenant(tenant), self.limits)

    @property
    def max_bytes(self) -> int:
        """How large one asset may be."""
        return self.limits.max_bytes

    def put(
        self,
        session_id: str,
        data: bytes | BinaryIO,
        *,
        name: str,
        media_type: str | None = None,
        asset_id: str | None = None,
    ) -> Asset:
        """Keep data as an asset of a session; it is safe when this returns.

        Args:
            data: The content, or a file to read it from; no more of it is read than is allowed.
            name: What people call it.
            media_type: The claimed type; believed where the content does not contradict it.
            asset_id: The id that it had before, to restore a deleted asset; a new one by default.

        Raises:
            AssetRefused: If it is too large, exceeds the session's quota, is of a type that is not accepted,
                or if the id belongs to something else.
            StoreUnavailable: If the disk is full, or cannot be written, or the connection is lost;
                nothing was kept.
        """
        _check_session_id(session_id)
        if asset_id is not None and not is_name(asset_id):
            raise ArgumentError(f"{asset_id!r:.80} is not a valid asset id")
        with self._place.receiving() as incoming:
            found = receive(data, incoming.write, check_size=self.limits.check_size, claimed=media_type)
            asset = Asset(
                id=asset_id or f"asset_{token_hex(16)}", name=display_name(name),
                media_type=found.media_type, size=found.size, sha256=found.sha256,
                session_id=session_id, created=self._place.clock(),
            )  # fmt: skip
            self._check(asset)
            with incoming.keeping(asset) as index:
                self._note(index, asset)
                return index.get(asset.id, session_id)

    def get(self, asset_id: str, *, session_id: str | None = None) -> Asset:
        """Return the description of an asset.

        Args:
            session_id: If given, this session must have it.

        Raises:
            AssetNotFound: If there is none.
        """
        if not is_name(asset_id) or not (session_id is None or is_name(session_id)):
            raise AssetNotFound(asset_id)
        with self._place.reading() as index:
            return index.get(asset_id, session_id)

    def open(self, asset_id: str) -> BinaryIO:
        """Return the content of an asset as a file, which the caller closes.

        Raises:
            AssetNotFound: If there is none.
            StoreDamaged: If its content is missing or changed.
        """
        return self._place.open(self.get(asset_id))

    def read(self, asset_id: str, start: int = 0, length: int | None = None) -> bytes:
        """Return the content of an asset from byte *start* on, all of it or *length* bytes.

        Raises:
            ArgumentError: If a number is negative.
        """
        if start < 0 or (length is not None and length < 0):
            raise ArgumentError(
                "start and length count bytes from the beginning: pass numbers that are not negative"
            )
        with self.open(asset_id) as file:
            file.seek(start)
            return file.read() if length is None else file.read(length)

    def list(self, session_id: str) -> tuple[Asset, ...]:
        """Return the assets of a session, oldest first."""
        _check_session_id(session_id)
        with self._place.reading() as index:
            return index.of_session(session_id)

    def share(self, from_session: str, to_session: str) -> tuple[Asset, ...]:
        """Give a session all assets of another one, under the same ids; return its assets.

        For branches, whose messages are those of the other session. Nothing is copied.
        """
        _check_session_id(from_session)
        _check_session_id(to_session)
        with self._place.writing(from_session, to_session) as index:
            index.share(from_session, to_session)
            return index.of_session(to_session)

    def remove(self, session_id: str, asset_id: str) -> bool:
        """Take an asset from a session; False if the session has no such asset."""
        _check_session_id(session_id)
        if not is_name(asset_id):
            return False
        with self._place.writing(session_id) as index:
            return index.drop(session_id, asset_id) > 0

    def delete_session(self, session_id: str) -> int:
        """Take all assets from a session and return how many it had; `collect` frees the space."""
        _check_session_id(session_id)
        with self._place.writing(session_id) as index:
            return index.drop(session_id)

    def collect(self) -> Report:
        """Remove content that no session has, and leftovers of crashes."""
        return self._place.collect()

    def check(self, *, deep: bool = False) -> Report:
        """Check that the content of every asset is there; *deep* also reads and hashes it."""
        problems = self._place.damage()
        with self._place.reading() as index:
            assets = index.all()
        problems += [problem for asset in assets if (problem := self._problem(asset, deep=deep))]
        return Report({"assets": len(assets)}, tuple(problems))

    def close(self) -> None:
        self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _check(self, asset: Asset) -> None:
        """Refuse what can be refused before the content is moved to its place."""
        self.limits.check_type(asset)
        if self.limits.quota is not None:
            with self._place.reading() as index:
                self.limits.check_room(asset, index.total(asset.session_id))

    def _note(self, index: Index, asset: Asset) -> None:
        """Add an asset to the index, if its session has room for it."""
        self.limits.check_room(asset, index.total(asset.session_id))
        try:
            known = index.get(asset.id)
        except AssetNotFound:
            index.add(asset)
            return
        if (known.sha256, known.name) != (asset.sha256, asset.name):
            raise AssetRefused(f"the id {asset.id!r} belongs to another asset: import it with new ids")
        index.refer(asset.session_id, asset.id)

    def _problem(self, asset: Asset, *, deep: bool) -> str | None:
        try:
            with self.open(asset.id) as file:
                if deep and hash_of(file) != asset.sha256:
                    return f"the content of asset {asset.id!r} of session {asset.session_id!r} was changed"
        except AssetNotFound:
            return None  # it was deleted in between
        except StoreDamaged as error:
            return str(error)
        return None


def _check_session_id(session_id: object) -> None:
    if not is_name(session_id):
        raise ArgumentError(f"{session_id!r:.80} is not a valid session id")


class Index(Protocol):
    """Which session has which asset, as one block of reading or writing sees it."""

    def add(self, asset: Asset) -> None:
        """Add an asset with a new id to its session."""

    def refer(self, session_id: str, asset_id: str) -> None:
        """Give a session an asset that another session has."""

    def share(self, from_session: str, to_session: str) -> None:
        """Give a session all assets of another one."""

    def drop(self, session_id: str, asset_id: str | None = None) -> int:
        """Take an asset, or all of them, from a session; return how many it had."""

    def get(self, asset_id: str, session_id: str | None = None) -> Asset:
        """Return an asset; if a session is given, one of its own.

        Raises:
            AssetNotFound: If there is none.
        """

    def of_session(self, session_id: str) -> tuple[Asset, ...]:
        """Return the assets of a session, oldest first."""

    def total(self, session_id: str) -> int:
        """Return how many bytes the assets of a session have."""

    def all(self) -> tuple[Asset, ...]:
        """Return all assets, each once."""


class Incoming(Protocol):
    """Data that comes in, not yet visible to others."""

    def write(self, piece: bytes) -> None:
        """Write the next piece."""

    def keeping(self, asset: Asset) -> AbstractContextManager[Index]:
        """Let the block add an asset with this content; both are kept when it ends, or neither.

        Until then no one else can add to its session, or add an asset with its id to another one.
        """


class Place(Protocol):
    """Where content and index are.

    Methods raise `StoreUnavailable` if the place cannot be used now; nothing was kept then.
    """

    clock: Callable[[], float]
    """The time that assets are dated with, in seconds since 1970."""

    def receiving(self) -> AbstractContextManager[Incoming]:
        """Receive data; what was not kept is removed afterwards."""

    def reading(self) -> AbstractContextManager[Index]:
        """Look something up."""

    def writing(self, *session_ids: str) -> AbstractContextManager[Index]:
        """Change the assets of sessions, all or nothing, while no one else can change these sessions."""

    def open(self, asset: Asset) -> BinaryIO:
        """Return the content of an asset.

        Raises:
            AssetNotFound: If the asset was deleted.
            StoreDamaged: If its content is missing or changed.
        """

    def of_tenant(self, tenant: str) -> Place:
        """Return this place for those who may read what one tenant has, where the place can tell."""

    def collect(self) -> Report:
        """Remove content that no session has, and leftovers of crashes."""

    def damage(self) -> list[str]:
        """Return the problems that the database of the index finds in itself."""

    def close(self) -> None:
        """Let go of it."""


@contextmanager
def disk_errors(place: object) -> Iterator[None]:
    """Raise `StoreUnavailable` for what goes wrong with the files of *place*."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"{place} cannot be used now ({error.strerror or error}): nothing was kept; "
            "check disk space, rights, and links in it"
        ) from error
