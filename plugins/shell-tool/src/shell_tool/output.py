"""The output of a command, in bounded memory.

A little of it is kept in memory, more of it in a temporary file without a name, and of the rest only its
length and its end. The file is gone when nobody holds it, also after a crash.
"""

from __future__ import annotations

import codecs
import io
import threading
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


_IN_MEMORY = 64 * 1024
_CONTINUES = range(0x80, 0xC0)
_LONGEST_CHARACTER = 4


class Output:
    """What a command has written so far; any thread may read it.

    Args:
        keep: How many bytes are kept to be read again.
        tail: How many bytes of the end are known in any case.
        file: Where to keep them; a temporary file by default.
    """

    def __init__(self, keep: int, tail: int, file: IO[bytes] | None = None) -> None:
        self._lock = threading.Lock()
        self._file: IO[bytes] = file or SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `close`
        self._keep = keep
        self._tail_size = tail
        self._tail = b""
        self.total = 0
        self.kept = 0
        self.problem = ""

    @property
    def is_full(self) -> bool:
        """Whether nothing more is kept."""
        with self._lock:
            return self.kept < self.total

    def write(self, piece: bytes) -> None:
        """Take what the command wrote; a disk that is full costs what does not fit, and nothing else."""
        with self._lock:
            self._store(piece)
            self._tail = (self._tail + piece)[-self._tail_size :]
            self.total += len(piece)

    def read(self, start: int, size: int) -> bytes:
        """Return what is kept, from byte *start* on."""
        with self._lock:
            self._file.seek(min(start, self.kept))
            return self._file.read(max(0, min(size, self.kept - start)))

    def tail(self, size: int) -> bytes:
        """Return the last bytes."""
        with self._lock:
            return self._tail[-size:] if size else b""

    def close(self) -> None:
        """Let go of what is kept."""
        with self._lock:
            self.kept = 0
            self._file.close()

    def file(self) -> IO[bytes]:
        """Return what is kept as a file to read, which is nobody else's."""
        return io.BufferedReader(_Reading(self))

    def _store(self, piece: bytes) -> None:
        fitting = piece[: self._keep - self.kept] if self.kept == self.total else b""
        if not fitting or self.problem:
            return
        try:
            self._file.seek(self.kept)
            self._file.write(fitting)
            self._file.flush()
        except OSError as error:
            self.problem = f"no more of the output could be kept: {error.strerror or error}"
        else:
            self.kept += len(fitting)


class _Reading(io.RawIOBase):
    """An output as a file."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._output.read(self._at, len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


class Decoder:
    """Makes text of bytes that arrive in pieces, cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def text(self, piece: bytes, *, last: bool = False) -> str:
        """Return the characters that are complete."""
        return _without_nul(self._decoder.decode(piece, last))


def decoded(data: bytes) -> str:
    """Return bytes as text; what is not UTF-8, and NUL, which not every store takes, is shown by a sign."""
    return _without_nul(data.decode("utf-8", "replace"))


def whole_characters(data: bytes) -> bytes:
    """Return *data* up to the last character that is complete."""
    for size in range(1, min(_LONGEST_CHARACTER, len(data) + 1)):
        first = data[-size]
        if first not in _CONTINUES:
            needed = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)  # noqa: PLR2004 - of UTF-8
            return data[:-size] if needed > size else data
    return data


def from_character(data: bytes) -> bytes:
    """Return *data* from the first byte on with which a character begins."""
    begins = (at for at in range(min(_LONGEST_CHARACTER, len(data))) if data[at] not in _CONTINUES)
    return data[next(begins, 0) :]


def _without_nul(text: str) -> str:
    return text.replace("\0", "\N{SYMBOL FOR NULL}")


_NAME = "shell-output.txt"
_KIND = "text/plain"


class Whole:
    """Keeps the output of one command, if it is more than the model reads at once.

    It is done when the command ends, whoever ended it and whether anybody waits: a command in the background
    may be asked about later, or never.

    Args:
        context: The context of the call; it has the store, if there is one.
        session_id: Whose output it is.
        limit: How many bytes the model reads.

    Attributes:
        fields: What results say about it; empty if there is nothing to say.
    """

    def __init__(self, context: Mapping[str, Any] | None, session_id: str, limit: int) -> None:
        self.fields: dict[str, Any] = {}
        self._store = (context or {}).get("session_asset_store")
        self._session_id = session_id
        self._limit = limit

    def keep(self, output: Output) -> None:
        """Put what there is of an output into the store."""
        is_short = output.total <= self._limit and not output.is_full
        if self._store is None or not self._session_id or is_short:
            return
        try:
            with output.file() as whole:
                asset = self._store.put(self._session_id, whole, name=_NAME, media_type=_KIND)
        except Exception as error:  # a stranger's store; the command has run, whatever it says
            self.fields = {"asset_problem": f"the whole output could not be kept: {error}"}
        else:
            self.fields = {"asset_id": asset.id}
