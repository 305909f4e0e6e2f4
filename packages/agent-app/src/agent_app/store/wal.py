"""The write-ahead log of a SQLite store, and how its loss is noticed.

The newest changes are in the log (``-wal``) alone until they are copied into the file. If someone deletes
the log, or copies the file without it, what is left is an intact database of an earlier moment. So
the file itself says that it needs its log: whenever the log begins, `NEEDED` is written through to the file,
and after it `WHOLE` to the log alone. A reader with both sees `WHOLE`; with the file alone, `NEEDED`.
No crash removes the log; SQLite does, once all of it is in the file. A copy that SQLite makes is whole.

It costs two small writes each time the log has grown to some megabytes.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDED, WHOLE = 1, 2
_BLOCK = 1 << 20
_TRIES, _PAUSE = 30, 0.01
_MOMENT = 250  # milliseconds that a deletion waits for readers
_COMMITS, _ROWS = 500, 4_000  # after so many, the log is copied into the file
_LONGEST = 4_000  # pages: SQLite copies by itself then, whatever we have counted


class WriteAhead:
    """The log of one connection.

    Args:
        there: Whether the log was there, with something in it, before the connection was opened.
    """

    def __init__(self, connection: sqlite3.Connection, *, there: bool) -> None:
        self._connection = connection
        self._due = not there
        self._commits = self._rows = 0
        self.missing = not there and self._needed()
        if there:
            self.settle()
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST}")

    def settle(self) -> sqlite3.Error | None:
        """Go on where somebody was stopped between the two writes: this log is whole.

        Returns:
            Why the log still does not say so; then it must not be removed.
        """
        try:
            if not self.missing:
                settle(self._connection)
        except sqlite3.Error as error:  # the disk is full or broken, or somebody else writes, and does it
            return error
        return None

    def _needed(self) -> bool:
        """Say whether the file lacks its log; another process may just be beginning one."""
        for _ in range(_TRIES):
            if self._state()[0] != NEEDED:
                return False
            time.sleep(_PAUSE)
        return True

    def _state(self) -> tuple[int, float | None]:
        rows = self._connection.execute("SELECT state, missed FROM log").fetchall()
        return rows[0] if rows else (WHOLE, None)

    def missed(self) -> float | None:
        """Return when the log was first found missing, if it ever was; 0 if that is just now."""
        return self._state()[1] or (0.0 if self.missing else None)

    @property
    def due(self) -> bool:
        """Whether the log must begin again before the next change."""
        return self._due

    def begin(self, now: float) -> None:
        """Copy the log into the file, as far as readers allow, and begin a new one."""
        run = self._connection.execute
        if self.missing:
            run("UPDATE log SET missed = coalesce(missed, ?)", (now,))
            self.missing = False
        run("UPDATE log SET state = ?", (NEEDED,))
        try:
            run("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            run("UPDATE log SET state = ?", (WHOLE,))
        self._due = False
        self._commits, self._rows = 0, self._connection.total_changes

    def committed(self) -> None:
        """Count a commit."""
        self._commits += 1
        if self._commits >= _COMMITS or self._connection.total_changes - self._rows >= _ROWS:
            self._due = True

    def empty(self) -> bool:
        """Copy the log into the file and cut it off, so that nothing that was deleted is left in it.

        Returns:
            False if another process is reading; what was deleted stays in the log until that begins again.
        """
        run = self._connection.execute
        patience: int = run("PRAGMA busy_timeout").fetchone()[0]
        run(f"PRAGMA busy_timeout = {_MOMENT}")
        try:
            busy: int = run("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            run(f"PRAGMA busy_timeout = {patience}")
        self._due = self._due or not busy
        return not busy


def settle(connection: sqlite3.Connection) -> None:
    """Have a log say that it is whole, before all of it is copied into the file and it is removed."""
    if connection.execute("SELECT 1 FROM log WHERE state = ?", (NEEDED,)).fetchone():
        connection.execute("UPDATE log SET state = ? WHERE state = ?", (WHOLE, NEEDED))


def leaves_doubt(error: BaseException) -> bool:
    """Say whether it is unknown what reached the disk: a commit that was not flushed may reappear."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_IOERR_FSYNC"


def close_and_keep(path: str, connections: Sequence[sqlite3.Connection], *, doubt: bool) -> None:
    """Close connections so that their log stays where it is.

    The last one to close copies the log into the file and removes it, unless it may only read. A log that
    stays is continued by whoever opens the store next, so all of it must be on the disk.

    Args:
        doubt: Whether a flush has failed. The log is written again then; if that fails too, it goes.
    """
    guard = None
    with suppress(sqlite3.Error, StoreUnavailable):
        if doubt:
            connections[0].execute("BEGIN IMMEDIATE")  # no other process writes from here on
            write_again(f"{path}-wal")
            connections[0].execute("ROLLBACK")
        guard = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
        guard.execute("SELECT state FROM log").fetchall()
    for connection in connections:
        connection.close()
    if guard is not None:
        guard.close()


def write_again(path: str) -> None:
    """Write the content of a file over itself, and flush it."""
    with suppress(FileNotFoundError):
        content = Path(path).read_bytes()
        flush(path, content)


def flush(path: str, content: bytes = b"") -> None:
    """Flush a file, after writing its content again if that is given.

    Raises:
        StoreUnavailable: If the disk still fails.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        for at in range(0, len(content), _BLOCK):
            os.pwrite(descriptor, content[at : at + _BLOCK], at)
        os.fsync(descriptor)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be flushed ({error.strerror}): check the disk") from error
    finally:
        os.close(descriptor)
