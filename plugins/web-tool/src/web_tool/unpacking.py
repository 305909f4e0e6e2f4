"""Unpacking what a server compressed, a little at a time.

A kilobyte can unfold into a megabyte, and that again. So nothing is unpacked before somebody asks for it:
each piece is small, and whoever has enough stops asking.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

from web_tool.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPTED = "gzip, deflate"
_PIECE = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_BEGINS = b"\x1f\x8b"
_DEFLATE = 8  # the method, in the low bits of the first byte of a zlib stream (RFC 1950)


class Unpacker(Protocol):
    """Takes a body as it comes and gives it as it was."""

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """Yield what *packed* unfolds to, in pieces of bounded size.

        Raises:
            FetchError: If it is damaged.
        """

    def finish(self) -> None:
        """Say that nothing more will come.

        Raises:
            FetchError: If something is missing.
        """


def unpacker_for(encoding: str) -> Unpacker:
    """Return what unpacks a body with that Content-Encoding.

    Raises:
        FetchError: If it is packed in a way that nobody asked for.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return _AsItIs()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Deflated(is_gzip=encoding != "deflate")
    raise FetchError(f"the server packed the page as {encoding[:40]!r}, which was not asked for")


class _AsItIs:
    def unpack(self, packed: bytes) -> Iterator[bytes]:
        yield packed

    def finish(self) -> None:
        """Nothing can be missing that the connection would not have missed."""


class _Deflated:
    """A deflated stream; one of gzip may consist of several members, one behind the other."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._member: zlib._Decompress | None = None

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        is_full = False  # then there may be more to come of what was taken in already
        while packed or is_full:
            member = self._member_for(packed)
            if member is None:
                return  # some servers fill up the end with something
            try:
                piece = member.decompress(packed, _PIECE)
            except zlib.error as error:
                raise FetchError(f"the page cannot be unpacked: {error}") from error
            packed = member.unused_data if member.eof else member.unconsumed_tail
            is_full = len(piece) == _PIECE and not member.eof
            if piece:
                yield piece

    def finish(self) -> None:
        if self._member is not None and not self._member.eof:
            raise FetchError("the page broke off while it was being unpacked")

    def _member_for(self, packed: bytes) -> zlib._Decompress | None:
        if self._member is None:
            self._member = zlib.decompressobj(self._window(packed))
        elif self._member.eof:
            if not self._is_gzip or not _GZIP_BEGINS.startswith(packed[:2]):
                return None
            self._member = zlib.decompressobj(_GZIP)
        return self._member

    def _window(self, packed: bytes) -> int:
        if self._is_gzip:
            return _GZIP
        # "deflate" means a zlib stream; some servers send one without its frame.
        return zlib.MAX_WBITS if packed[0] & 0x0F == _DEFLATE else -zlib.MAX_WBITS
