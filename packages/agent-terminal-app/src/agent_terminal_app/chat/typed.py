"""What was typed before, for the Up key and Ctrl+R: kept in a file that only its owner reads."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_MOST = 1_000
_LARGEST = 1_000_000


def open_history(path: Path | None) -> History:
    """Return the history in a file; one that is forgotten at the end, if there is no place for it."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(_open(path), "rb"):
            pass
    except OSError:  # what was typed is a comfort; a full or foreign disk must not prevent a chat
        return InMemoryHistory()
    _shorten(path)
    return TypedHistory(path)


class TypedHistory(FileHistory):
    """What was typed, the last thousand lines of it; what begins with a space is not kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        """Return what was typed, the last line first."""
        with suppress(OSError):
            return islice(super().load_history_strings(), _MOST)
        return ()

    def store_string(self, string: str) -> None:
        """Add a line, in one write, so that two chats do not mix theirs."""
        if string.startswith(" "):
            return
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        entry = f"\n# {datetime.now(tz=UTC).isoformat()}\n{lines}"
        with suppress(OSError), os.fdopen(_open(self._path), "ab") as file:
            file.write(entry.encode(errors="replace"))


def _open(path: Path) -> int:
    """Open the file to append to it; it is its owner's alone, also if it was there before."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    os.fchmod(handle, 0o600)
    return handle


def _shorten(path: Path) -> None:
    """Drop the older half of a file that has become large."""
    with suppress(OSError):
        if path.stat().st_size <= _LARGEST:
            return
        data = path.read_bytes()
        start = data.find(b"\n# ", len(data) // 2)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_bytes(data[max(start, 0) :])
        fresh.replace(path)
