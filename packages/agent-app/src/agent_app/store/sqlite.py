"""SQLite as the database of a session store.

One connection, used by one thread at a time. Writers of other processes are kept apart by SQLite itself.
In write-ahead mode a commit survives the death of the process; it survives a loss of power once the log
was flushed, which a commit of durability "turn" does, for itself and for all before it.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app.errors import StoreDamaged, StoreError, StoreUnavailable
from agent_app.store import checksums, words
from agent_app.store.database import HIGHEST, USAGE
from agent_app.store.processes import Moment, boot_clock
from agent_app.store.sqlite_file import (
    MEMORY,
    ReadOnly,
    can_be_read,
    has_checksums,
    has_log,
    identity,
    log_missing,
    open_file,
    path_of,
    refuse_newer,
    settle_file,
    why_read_only,
    wrong_schema,
)
from agent_app.store.wal import WriteAhead, close_and_keep, leaves_doubt
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from agent_app.store.base import Durability
    from agent_app.store.database import Row

_DAMAGE = ("malformed", "not a database", "corrupt", "Could not decode", "raised exception")
_FEW = 20
_log = get_logger("store")


class SQLiteTransaction:
    """A transaction of SQLite."""

    tenant: str | None = None

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection that it is on."""
        return self._connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Run a statement and return its rows."""
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self._connection.execute(sql, values).rowcount

    def insert(self, sql: str, *values: Any) -> int | None:
        """Run a statement that inserts one row, and return its id; None if it inserted none."""
        cursor = self._connection.execute(sql, values)  # for one row, RETURNING is a long way round
        return cursor.lastrowid if cursor.rowcount else None

    def many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each set of values."""
        head, mark, row = sql.partition(" VALUES ")
        if not mark or not row.endswith("?)") or len(values) > _FEW:
            self._connection.executemany(sql, values)
        elif values:  # some rows at once are one statement
            flat = [value for one in values for value in one]
            self._connection.execute(f"{head} VALUES {', '.join([row] * len(values))}", flat)


@dataclass(slots=True)
class Erasure:
    """What must still be erased after a transaction, so that the files keep nothing that it removed.

    Attributes:
        words: Whether the index of words still has removed words.
        log: Whether the log still has old pages.
    """

    words: bool = False
    log: bool = False


class SQLiteDatabase:
    """One file, or memory. A file that this user may not write can be read.

    Args:
        url: ``sqlite:///relative/path``, ``sqlite:////absolute/path``, or ``sqlite://`` for memory.
        clock: Where the time comes from, in seconds since 1970.
        ticks: The clock by which leases end, if not the one that all processes of this machine share.

    Raises:
        StoreTooNew: If a later version wrote the file.
        StoreDamaged: If the file is not one of our databases.
        StoreUnavailable: If it cannot be opened or written.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] | None = None,
    ) -> None:
        self.url = url
        self.one_writer = True
        self.next_position = "(SELECT coalesce(max(position), 0) + 1 FROM feed)"
        # Without statistics SQLite would read the whole log rather than use an index of few of its rows.
        indexed = "events INDEXED BY events_of_usage"
        self.usage_events = f"{indexed} WHERE substr(body, 1, {len(USAGE)}) = x'{USAGE.hex()}'"
        self._path = path_of(url)
        self._place = str(Path(self._path).absolute())  # also if the process changes its folder
        self._clock = clock
        self._ticks = ticks
        self._lock = threading.RLock()
        self._closed = False
        self._doubtful: list[sqlite3.Connection] = []
        self._connection: sqlite3.Connection | None = None
        self._durability: Durability | None = None  # the last setting of the connection
        self._words = words.Words()
        self._erasing = Erasure()
        self._joined = False  # whether the transaction under way takes others in
        self._file: tuple[int, int] | None = None
        self._ahead: WriteAhead | None = None
        self._copy: ReadOnly | None = None
        self.read_only = None if self._path == MEMORY else why_read_only(Path(self._path))
        with self._errors():
            self._connect()

    def now(self) -> float:
        """Return the time of the clock."""
        return self._clock()

    def moment(self) -> Moment:
        """Return the time of the clock, and of the clock for leases, which no one can set."""
        now = self._clock()
        if self._ticks is not None:
            return Moment(now, "given", self._ticks())
        shared = boot_clock()
        # Where no clock is known to be shared, the wall clock has to do.
        return Moment(now, shared, time.monotonic()) if shared else Moment(now, "wall", now)

    def reading(self) -> AbstractContextManager[SQLiteTransaction]:
        """Read a consistent state."""
        return self._transaction("BEGIN", None)

    def writing(
        self,
        durability: Durability = "turn",
        *,
        alone: bool = False,
        joined: bool = False,
    ) -> AbstractContextManager[SQLiteTransaction]:
        """Write all or nothing."""
        if self.read_only is not None:
            raise StoreUnavailable(f"the store is read-only, so nothing was written: {self.read_only}")
        return self._transaction("BEGIN IMMEDIATE", durability, joined=joined)

    def look(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of one statement that reads."""
        with self.reading() as transaction:
            return transaction.rows(sql, *values)

    def glance(self, sql: str, *values: Any) -> Row | None:
        """Return one row if no thread is using the connection: that is as quick as reading memory."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            connection = self._connection
            if connection is None or connection.in_transaction:
                return None
            found: Row | None = connection.execute(sql, values).fetchone()
        except sqlite3.Error:
            return None  # the ordinary way of reading reports the error
        finally:
            self._lock.release()
        return found

    def confine(self, transaction: Any, tenant: str) -> None:
        """Do nothing: here our statements alone keep tenants apart."""

    def hold(self, transaction: Any, session_id: str) -> None:
        """Do nothing: a writer is alone."""

    def announce(self, transaction: Any, session_id: str) -> None:
        """Do nothing: a file notifies no one."""

    def log(self, transaction: Any, session_id: str, insert: str, values: Sequence[Any]) -> list[int]:
        """Write events to a session's log and to the feed, and return their numbers in the log."""
        numbers = sorted(seq for (seq,) in transaction.rows(insert, *values))
        transaction.run(
            "INSERT INTO feed (position, session, seq, tenant) "
            f"SELECT {self.next_position} + seq - ?, session, seq, "
            "(SELECT tenant FROM sessions WHERE id = ?) FROM events WHERE session = ? AND seq >= ?",
            numbers[0], session_id, session_id, numbers[0],
        )  # fmt: skip
        return numbers

    def settled(self, transaction: Any) -> int:
        """Return the end of all positions: they rise from commit to commit."""
        return HIGHEST

    def listen(self, tell: Callable[[str | None], None]) -> Callable[[], None]:
        """Do nothing: followers of a session poll it."""
        return _do_nothing

    def add_words(self, transaction: Any, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find new contents by their words."""
        self._words.add(transaction, texts)

    def add_words_late(self, transaction: Any, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find contents that already existed."""
        words.add_late(transaction, texts)

    def drop_words(self, transaction: Any, content: int, text: str) -> None:
        """Let searches forget a content; the text must be what it was when it was added."""
        self._erasing.words |= words.drop(transaction, content, text)

    def erase_log(self) -> None:
        """After the current transaction, leave nothing that it removed in the log."""
        self._erasing.log = True

    def matching(self, transaction: Any, wanted: Sequence[str]) -> tuple[str, Sequence[Any]]:
        """Return a statement for the contents that have all words; the last one may be unfinished."""
        return words.matching(transaction, wanted)

    def damage(self, checked: dict[str, int], *, deep: bool) -> list[str]:
        """Return what SQLite itself finds wrong; *deep* also which rows are not what was written."""
        with self._lock, self._errors():
            connection = self._connect()
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
            problems = [f"the database reports: {text}" for text in found if text != "ok"] + [
                f"row {row[1]} of {row[0]} refers to nothing" for row in orphans
            ]
            if self._ahead is not None and (missed := self._ahead.missed()) is not None:
                problems.append(log_missing(self._path, missed))
            if deep and has_checksums(connection):
                problems += checksums.wrong_rows(connection, checked)
                problems += wrong_schema(connection)
                problems += words.differences(connection, writable=self.read_only is None)
        return problems

    def close(self) -> None:
        """Close the file; what was committed is in it."""
        with self._lock:
            if self._doubtful:
                with suppress(StoreError, sqlite3.Error):
                    self._connect()  # the disk may be sound again: then the log is made safe before it goes
            self._closed = True
            self._disconnect()
            if self._doubtful:
                close_and_keep(self._path, self._doubtful, doubt=True)
                self._doubtful.clear()
            if self._copy is not None:
                self._copy.close()

    @contextmanager
    def _transaction(
        self, begin: str, durability: Durability | None, *, joined: bool = False
    ) -> Iterator[SQLiteTransaction]:
        with self._lock:
            try:
                connection = self._connect()
                inside = connection.in_transaction
                if inside and self._joined:
                    yield SQLiteTransaction(connection)
                    return
                if durability is not None and not inside:
                    self._check_in_place()
                log = None if inside or durability is None else self._ahead
                if log is not None and log.due:
                    self._flush_with(connection, "soon")
                    log.begin(self.now())
                if not inside:
                    self._flush_with(connection, durability)
                connection.execute("SAVEPOINT inside" if inside else begin)
                try:
                    self._joined = joined
                    transaction = SQLiteTransaction(connection)
                    yield transaction
                    if not inside and self._erasing.words:  # of most stores, the whole index is rewritten so
                        self._erasing.words = words.merge(transaction)
                    connection.execute("RELEASE inside" if inside else "COMMIT")
                except BaseException:
                    self._undo(connection, inside=inside)
                    raise
                finally:
                    self._joined = False
                if log is not None:
                    log.committed()
                    if self._erasing.words or self._erasing.log:
                        self._erase(transaction)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._meaning(error) from error

    def _flush_with(self, connection: sqlite3.Connection, durability: Durability | None) -> None:
        """Set how the next commit is flushed."""
        if durability is not None and durability != self._durability:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'turn' else 'NORMAL'}")
            self._durability = durability

    def _erase(self, transaction: SQLiteTransaction) -> None:
        """Erase what was deleted from the rest of the index and from the log, after the commit."""
        erasing, self._erasing = self._erasing, Erasure()
        try:
            if erasing.words:
                self._flush_with(transaction.connection, "soon")
                while words.merge(transaction):  # each time in a transaction of its own
                    pass
            if erasing.log and self._ahead is not None and not self._ahead.empty():
                _log.info("store_log_in_use", store=self._path)
        except sqlite3.Error as error:  # the deletion itself is done; the next one erases the rest
            _log.warning("store_not_erased", store=self._path, error=str(error))

    def _undo(self, connection: sqlite3.Connection, *, inside: bool) -> None:
        self._words.undone()
        if not inside:
            self._erasing = Erasure()
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK TO inside" if inside else "ROLLBACK")
            if inside:
                connection.execute("RELEASE inside")

    def _connect(self) -> sqlite3.Connection:
        """Return the connection, opened again after an error that leaves its state unknown."""
        if self._closed:
            raise StoreUnavailable(f"the store at {self._path} was closed: open it again")
        if self.read_only is not None:
            return self._connect_to_read()
        if self._connection is None:
            there = has_log(self._path)
            connection = open_file(self._path)
            if self._doubtful:
                settle_file(connection, self._path, whole=self._ahead is None or not self._ahead.missing)
                there = False
            while self._doubtful:
                self._doubtful.pop().close()
            self._connection = connection
            self._durability = None
            if self._path != MEMORY:
                self._file = identity(self._place)
                self._ahead = WriteAhead(connection, there=there)
                if self._ahead.missing:
                    _log.warning("store_log_missing", store=self._path, problem=log_missing(self._path, 0.0))
        return self._connection

    def _check_in_place(self) -> None:
        """Refuse to write to a file that is no longer at its path: SQLite would not notice.

        Raises:
            StoreUnavailable: If it was deleted, moved, or replaced by another one.
        """
        if self._path != MEMORY and identity(self._place) != self._file:
            raise StoreUnavailable(
                f"{self._path} was deleted, moved or replaced while it was in use: this change was not "
                "written; put the file back or open the store again"
            )

    def _connect_to_read(self) -> sqlite3.Connection:
        """Return a connection that only reads, opened again when another user has written."""
        if self._copy is not None and self._copy.is_old() and not self._in_transaction():
            self._disconnect()
            self._copy.close()
            self._connection = self._copy = None
        if self._connection is None:
            if not Path(self._path).exists():
                raise StoreUnavailable(f"there is no store at {self._path}, and none can be created there")
            refuse_newer(Path(self._path))
            self._copy = ReadOnly(self._path, can_be_read, open_file)
            self._connection = self._copy.connection
        return self._connection

    def _in_transaction(self) -> bool:
        return self._connection is not None and self._connection.in_transaction

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        problem = None if self._ahead is None else self._ahead.settle()
        if problem is None:
            connection.close()
        else:
            close_and_keep(self._path, [connection], doubt=leaves_doubt(problem))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._meaning(error) from error

    def _meaning(self, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
        """Return our error for one of SQLite, and stop using the connection."""
        if isinstance(error, UnicodeDecodeError):  # the driver stumbles over a message that quotes damage
            return _damaged(self._path, "its text cannot be read")
        if not isinstance(error, sqlite3.IntegrityError) and self._path != MEMORY:
            if self._connection is not None and leaves_doubt(error):
                # Not closed yet: closing the last one would copy a log into the file that may not be on disk.
                self._doubtful.append(self._connection)
                self._connection = None
            with suppress(sqlite3.Error):
                self._disconnect()
        return _meaning(error, self._path)


def _do_nothing() -> None:
    """Stop listening, which never began."""


def _sign(error: sqlite3.Error) -> str:
    """Return SQLite's own name of an error."""
    name: str = getattr(error, "sqlite_errorname", "")
    return name


def _damaged(path: str, problem: str) -> StoreDamaged:
    if any(sign in problem for sign in words.DAMAGE):
        return StoreDamaged(
            f"the search index in {path} is damaged ({problem}), and the sessions may be whole: "
            f"`agent sessions repair {path}` saves them into a new file with a new index"
        )
    return StoreDamaged(
        f"{path} is damaged ({problem}): restore a copy, or save what can be read with "
        f"`agent sessions repair {path}`"
    )


def _meaning(error: sqlite3.Error, path: str) -> StoreError:
    text = str(error)
    if any(sign in text for sign in (*_DAMAGE, *words.DAMAGE)):
        return _damaged(path, text)
    if "locked" in text or "busy" in text:
        return StoreUnavailable(f"{path} was in use by another process for too long: try again")
    if leaves_doubt(error):
        return StoreUnavailable(
            f"{path} cannot be used now ({text}): the last change may be stored or not, so read it "
            "before you try again; check the disk"
        )
    if _sign(error) == "SQLITE_ERROR":  # a mistake of ours, not of the disk
        return StoreError(f"{path}: {text}")
    if isinstance(error, sqlite3.OperationalError):
        is_full = _sign(error) == "SQLITE_FULL"
        problem = f"the disk of {path} is full" if is_full else f"{path} cannot be used now ({text})"
        todo = "make room on it, then try again" if is_full else "check disk space and rights"
        return StoreUnavailable(f"{problem}: this change was not written; earlier changes are safe; {todo}")
    return StoreError(f"{path}: {text}")
