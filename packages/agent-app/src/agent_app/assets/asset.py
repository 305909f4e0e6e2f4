"""Assets: what is known of one, which ones are accepted, and what is found out while its data comes in.

Name and kind come from outside, and neither is believed. The kind is read from the content; a claim counts
where the content does not contradict it. A name is for showing: whatever could fool a reader is taken out of
it.
"""

from __future__ import annotations

import codecs
import io
import re
import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple

from agent_app.errors import StoreError
from agent_app.store.base import Record
from agent_core import ArgumentError
from agent_core.clean_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset(Record):
    """A file that belongs to a session.

    Attributes:
        id: Its id, random so that no one can guess the ids of another session.
        name: What people call it. For showing only: it is never a path.
        media_type: The kind of data, as far as the content shows it.
        size: How many bytes it has.
        sha256: The hash of its content, in hexadecimal digits.
        session_id: The session that has it.
        created: When it was stored, in seconds since 1970.
    """

    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    session_id: str
    created: float


class AssetNotFound(StoreError, KeyError):
    """No session has an asset with that id."""

    def __init__(self, asset_id: str) -> None:
        self.asset_id = asset_id
        super().__init__(
            f"there is no asset {asset_id!r} here: list(session_id) returns the assets of a session"
        )


class AssetRefused(StoreError, ValueError):
    """Data is larger than allowed, or of a type that is not accepted; nothing was kept."""


MAX_BYTES = 50_000_000
"""How large one asset may be by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is accepted; see `SessionAssetStore` for the fields.

    Raises:
        ArgumentError: If the media types are not a list.
    """

    max_bytes: int
    allowed_types: Collection[str] | None
    quota: int | None

    def __post_init__(self) -> None:
        if isinstance(self.allowed_types, str):
            raise ArgumentError(
                f"allowed_types must be a list of media types, such as [{self.allowed_types!r}]"
            )

    def check_size(self, size: int) -> None:
        """Raise `AssetRefused` if that is too large for one asset."""
        if size > self.max_bytes:
            raise AssetRefused(f"an asset may have {self.max_bytes} bytes, and this one has more")

    def check_type(self, asset: Asset) -> None:
        """Raise `AssetRefused` if assets of its type are not accepted."""
        self.check_kind(asset.name, asset.media_type)

    def check_kind(self, name: str, kind: str) -> None:
        """Raise `AssetRefused` if a media type is not accepted."""
        allowed = self.allowed_types
        if allowed is None or kind in allowed or f"{kind.partition('/')[0]}/*" in allowed:
            return
        raise AssetRefused(
            f"{name!r} is {kind}, and only these types are accepted: {', '.join(sorted(allowed))}"
        )

    def check_room(self, asset: Asset, had: int) -> None:
        """Raise `AssetRefused` if a session that has *had* bytes has no room for an asset."""
        if self.quota is not None and had + asset.size > self.quota:
            raise AssetRefused(
                f"{asset.name!r} has {asset.size} bytes, and session {asset.session_id!r} has room for "
                f"{max(0, self.quota - had)} more: delete something first"
            )


PIECE = 1 << 18
"""How many bytes of an asset are in memory at a time."""


class Received(NamedTuple):
    """What was found out about data as it came in."""

    sha256: str
    size: int
    media_type: str


def receive(
    data: bytes | BinaryIO,
    write: Callable[[bytes], None],
    *,
    check_size: Callable[[int], None],
    claimed: str | None,
) -> Received:
    """Pass data on piece by piece and return what was found out; *check_size* may raise to end that."""
    source = io.BytesIO(data) if isinstance(data, (bytes, bytearray, memoryview)) else data
    digest, sniffer, size = sha256(), Sniffer(), 0
    for piece in pieces(source):
        size += len(piece)
        check_size(size)
        digest.update(piece)
        sniffer.feed(piece)
        write(piece)
    return Received(digest.hexdigest(), size, sniffer.media_type(claimed))


def pieces(source: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file, a piece at a time.

    Raises:
        ArgumentError: If it cannot be read, or yields text instead of bytes.
    """
    while piece := _read(source):
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise ArgumentError(
                f"an asset is read as bytes, not as {type(piece).__name__}: open it with 'rb'"
            )
        yield bytes(piece)


def hash_of(file: IO[bytes]) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits."""
    digest = sha256()
    for piece in pieces(file):
        digest.update(piece)
    return digest.hexdigest()


def _read(source: IO[bytes]) -> bytes:
    try:
        return source.read(PIECE)
    except OSError as error:
        raise ArgumentError(f"the data of an asset cannot be read: {error}") from error


TEXT = "text/plain"
UNKNOWN = "application/octet-stream"
_LONGEST_NAME = 120
_NAMELESS = "file"
_HEAD = 16
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_TEXTUAL = re.compile(
    r"text/.*|.*\+(?:json|xml|yaml)|application/"
    r"(?:json|xml|yaml|x-yaml|toml|x-ndjson|jsonl|javascript|x-sh|sql|x-python|rtf)"
)
_NOT_IN_A_NAME = re.compile(r'[<>:"|?*]')
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_KNOWN_BY_BEGINNING = frozenset({media_type for _, media_type in _BEGINNINGS} | {"image/webp"})


class Sniffer:
    """Looks at content as it comes in and tells its kind."""

    def __init__(self) -> None:
        self._head = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_text = True

    def feed(self, piece: bytes) -> None:
        if len(self._head) < _HEAD:
            self._head += piece[:_HEAD]
        if self._is_text:
            self._is_text = b"\0" not in piece and self._decodes(piece, final=False)

    def media_type(self, claimed: str | None = None) -> str:
        """Return the kind of the whole content: the claimed one if the content does not contradict it."""
        known = _by_beginning(self._head)
        if known is not None:
            return known
        is_text = self._is_text and self._decodes(b"", final=True)
        claim = read_media_type(claimed)
        if claim is None or claim in _KNOWN_BY_BEGINNING or is_textual(claim) != is_text:
            return TEXT if is_text else UNKNOWN
        return claim

    def _decodes(self, piece: bytes, *, final: bool) -> bool:
        try:
            self._decoder.decode(piece, final)
        except UnicodeDecodeError:
            return False
        return True


def _by_beginning(head: bytes) -> str | None:
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for begin, media_type in _BEGINNINGS if head.startswith(begin)), None)


def read_media_type(claimed: object) -> str | None:
    """Return a media type without its parameters, or None if it is not well-formed."""
    bare = claimed.partition(";")[0].strip().lower() if isinstance(claimed, str) else ""
    return bare if _MEDIA_TYPE.fullmatch(bare) else None


def is_textual(media_type: str) -> bool:
    """Say whether data of a media type is text."""
    return _TEXTUAL.fullmatch(media_type) is not None


def display_name(name: object) -> str:
    """Return a name that can be shown and offered for saving.

    Folders, control characters, marks that change the direction of writing, and characters that some file
    systems forbid are removed; the rest is cut to a length, and keeps its extension.
    """
    text = name if isinstance(name, str) else ""
    last = unicodedata.normalize("NFC", text.replace("\\", "/").rstrip("/").rpartition("/")[2])
    cleaned = _NOT_IN_A_NAME.sub("_", one_line(last)).strip(". ")
    return _shortened(cleaned) or _NAMELESS


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > _LONGEST_NAME // 4:
        return name[:_LONGEST_NAME].rstrip(". ")
    return stem[: _LONGEST_NAME - len(ending) - 1].rstrip(". ") + dot + ending
