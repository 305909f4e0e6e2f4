"""Data as it comes in: read piece by piece, counted, hashed and looked at on its way."""

from __future__ import annotations

import io
from hashlib import sha256
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple

from agent_app.assets.media import Sniffer
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE = 1 << 18
"""How many bytes of an asset are in memory at a time."""


class Received(NamedTuple):
    """What is known of data that has come by."""

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
    """Hand data on piece by piece and return what is known of it; *check_size* may end that by raising."""
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
    """Yield what a file has, a piece at a time.

    Raises:
        ArgumentError: If it cannot be read, or has no bytes but text.
    """
    while piece := _read(source):
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise ArgumentError(
                f"an asset is read as bytes, not as {type(piece).__name__}: open it with 'rb'"
            )
        yield bytes(piece)


def hash_of(file: IO[bytes]) -> str:
    """Return the hash of all that a file has, in hexadecimal digits."""
    digest = sha256()
    for piece in pieces(file):
        digest.update(piece)
    return digest.hexdigest()


def _read(source: IO[bytes]) -> bytes:
    try:
        return source.read(PIECE)
    except OSError as error:
        raise ArgumentError(f"the data of an asset cannot be read: {error}") from error
