"""Cutting what a server writes into lines, without ever holding more than one line of the allowed length."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_KEPT: Final = 512
_ID_FIRST: Final = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST: Final = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@dataclass(frozen=True)
class TooLong:
    """A line that was longer than allowed, and was not kept.

    Attributes:
        size: How long it was.
        request_id: The request that it answers, if its beginning or its end says so.
    """

    size: int
    request_id: int | None


class Lines:
    """Takes bytes as they come, and gives lines."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = self._tail = b""

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Return the lines that *data* completes."""
        *complete, rest = data.split(b"\n")
        lines = []
        for piece in complete:
            self._take(piece)
            lines.append(self._line())
        self._take(rest)
        return lines

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._head = (self._head + piece[:_KEPT])[:_KEPT]
        self._tail = (self._tail + piece[-_KEPT:])[-_KEPT:]
        if self._size <= self._longest:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _line(self) -> bytes | TooLong:
        if self._size <= self._longest:
            line: bytes | TooLong = b"".join(self._pieces)
        else:
            found = _ID_FIRST.search(self._head) or _ID_LAST.search(self._tail)
            line = TooLong(self._size, int(found[1]) if found else None)
        self._pieces, self._size, self._head, self._tail = [], 0, b"", b""
        return line
