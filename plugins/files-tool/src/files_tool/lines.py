"""A file of JSON lines that is only ever added to."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAIL = 1 << 16


class Lines:
    """The lines of a file that is open for reading and appending; nobody else writes to it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with os.fdopen(os.dup(self._fd), "rb") as stream:
            stream.seek(0)
            for line in stream:
                yield json.loads(line)

    def append(self, line: dict[str, Any]) -> None:
        """Write one line more; it lasts from the next `flush` on."""
        data = memoryview(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        while data:
            data = data[os.write(self._fd, data) :]

    def flush(self) -> None:
        """Bring everything to the disk."""
        os.fsync(self._fd)

    def last(self) -> dict[str, Any] | None:
        """Return the last line; half a line behind it, which a crash has left, is cut off."""
        size = os.fstat(self._fd).st_size
        reach = _TAIL
        while True:
            start = max(0, size - reach)
            whole, _, half = os.pread(self._fd, size - start, start).rpartition(b"\n")
            if start == 0 or b"\n" in whole:
                break
            reach *= 4
        if half:
            os.ftruncate(self._fd, size - len(half))
        line = whole.rpartition(b"\n")[2]
        return json.loads(line) if line else None
