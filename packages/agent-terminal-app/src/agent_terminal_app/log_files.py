"""Where log lines go: JSON, one object per line, in files that only their owner can read.

All commands of a person share the newest file. Each line is one write at the end of the file, so lines of two
processes never mix. A full file is followed by one with the next number, and only the newest are kept.

Before a line is written, secrets are taken out of it: every value that the key store gave out or the
environment has under a name that says so, and whatever looks like a key. That happens while texts are whole;
only then are long ones cut.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from agent_app.redaction import Redactor

LARGEST_FILE = 10 << 20
"""How many bytes a file may have."""
KEPT = 10
"""How many files are kept."""
LONGEST_TEXT = 8_000
"""How many characters of one text are written."""
LONGEST_LINE = 64_000
"""How many bytes a line may have."""

_PATTERN = "agent-*.jsonl"


class LogHandler(logging.Handler):
    """Writes records of `logging` to files, and is silent whatever happens.

    Args:
        folder: Where the files are.
        secrets: Values that must not be seen; it may grow.
    """

    def __init__(self, folder: Path, secrets: Collection[str] = ()) -> None:
        super().__init__()
        self._files = LogFiles(folder)
        self._secrets = secrets
        self._redactor: tuple[int, Redactor] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a log that cannot be written must not cost anybody their work."""
        with suppress(Exception):  # whom could it be told? the log is broken, and the screen is theirs
            self._files.write(as_line(record, self._current_redactor()))

    def close(self) -> None:
        """Let go of the file."""
        self._files.close()
        super().close()

    def _current_redactor(self) -> Redactor:
        known = len(self._secrets)
        if self._redactor is None or self._redactor[0] != known:
            from agent_app.redaction import Redactor

            self._redactor = (known, Redactor.from_environment(secrets=tuple(self._secrets)))
        return self._redactor[1]


class LogFiles:
    """Numbered files in a folder, of which the newest takes the lines."""

    def __init__(self, folder: Path, *, largest: int = LARGEST_FILE, kept: int = KEPT) -> None:
        self._folder = folder
        self._largest = largest
        self._kept = kept
        self._file: int | None = None
        self._torn = False

    def write(self, line: bytes) -> None:
        """Write a line with its end.

        Raises:
            OSError: If that cannot be done.
        """
        file = self._open_for(len(line))
        whole = b"\n" + line if self._torn else line  # half a line stays alone
        self._torn = os.write(file, whole) < len(whole)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open_for(self, size: int) -> int:
        """Return a file that has room: the one that is open, the newest, or a new one."""
        if self._file is not None and not self._has_room(self._file, size):
            self.close()
        if self._file is None:
            self._file = self._open_newest(size)
        return self._file

    def _has_room(self, file: int, size: int) -> bool:
        about = os.fstat(file)
        return about.st_nlink > 0 and about.st_size + size <= self._largest

    def _open_newest(self, size: int) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = sorted(self._folder.glob(_PATTERN))
        if there:
            file = _opened(there[-1])
            if self._has_room(file, size):
                return file
            os.close(file)
        number = int(there[-1].stem.rpartition("-")[2]) + 1 if there else 1
        file = _opened(self._folder / f"agent-{number:06}.jsonl")
        for old in there[: max(0, len(there) + 1 - self._kept)]:
            old.unlink(missing_ok=True)
        return file


def _opened(path: Path) -> int:
    """Open a file to write at its end; nobody else can read it, and a link is not followed."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(file, 0o600)
    return file


def as_line(record: logging.LogRecord, redactor: Redactor) -> bytes:
    """Return a record as it is written: one JSON object, without secrets, not too long."""
    told = redactor.data(_plain(_told(record)))
    line = json.dumps(_cut(told)).encode()
    if len(line) > LONGEST_LINE:
        line = json.dumps({**_cut(redactor.data(_head(record))), "too_long": len(line)}).encode()
    return line + b"\n"


def _told(record: logging.LogRecord) -> dict[str, Any]:
    head, fields = _head(record), getattr(record, "fields", None)
    told = head | {key: value for key, value in (fields or {}).items() if key not in head}
    if record.exc_info and record.exc_info[1] is not None:
        import traceback

        told["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
    return told


def _head(record: logging.LogRecord) -> dict[str, Any]:
    return {
        "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "pid": record.process,
        "event": getattr(record, "event", None) or record.getMessage(),
    }


def _plain(value: Any) -> Any:
    """Return what JSON can hold: what is taken out must be seen as text first."""
    return json.loads(json.dumps(value, default=str, skipkeys=True))


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value
