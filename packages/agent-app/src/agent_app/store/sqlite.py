"""SQLite as the database of a session store.

One connection, used by one thread at a time. Writers of other processes are kept apart by SQLite itself.
In write-ahead mode a commit survives the death of the process; it survives a loss of power once the log
was flushed, which a commit of durability "turn" does, for itself and for all before it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app.errors import StoreDamaged, StoreError, StoreTooNew, StoreUnavailable
from agent_app.store import formats, words
from agent_core import ArgumentError
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from agent_app.store.base import Durability
    from agent_app.store.database import Row

FORMAT = 3
"""The format that this version writes; a database of a later one is left alone."""

APPLICATION = 0x61677374
"""The number by which a file is known as ours."""

_BUSY_SECONDS = 10.0
_BLOCK = 1 << 20
_DAMAGE = ("malformed", "not a database", "corrupt")
_MEMORY = ":memory:"
_log = get_logger("store")


class SQLiteTransaction:
    """A transaction of SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

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
        self._connection.executemany(sql, values)


class SQLiteDatabase:
    """One file, or memory.

    Args:
        url: ``sqlite:///relative/path``, ``sqlite:////absolute/path``, or ``sqlite://`` for memory.
        clock: Where the time comes from, in seconds since 1970.

    Raises:
        StoreTooNew: If a later version wrote the file.
        StoreDamaged: If the file is no database of ours.
        StoreUnavailable: If it cannot be opened or written.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        self.url = url
        self._path = _path(url)
        self._clock = clock
        self._lock = threading.RLock()
        self._closed = False
        self._doubtful: list[sqlite3.Connection] = []
        self._connection: sqlite3.Connection | None = None
        self._durability: Durability | None = None  # what the connection was last told
        self._words = words.Words()
        with self._errors():
            self._connect()

    def now(self) -> float:
        """Return the time of the clock."""
        return self._clock()

    def reading(self) -> AbstractContextManager[SQLiteTransaction]:
        """Read a state in which nothing changes meanwhile."""
        return self._transaction("BEGIN", None)

    def writing(
        self,
        durability: Durability = "turn",
        *,
        alone: bool = False,  # noqa: ARG002 - there is only one writer anyway
    ) -> AbstractContextManager[SQLiteTransaction]:
        """Write everything or nothing."""
        return self._transaction("BEGIN IMMEDIATE", durability)

    def glance(self, sql: str, *values: Any) -> Row | None:
        """Return one row if nobody is writing just now: reading it is as quick as reading memory."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            connection = self._connection
            if connection is None or connection.in_transaction:
                return None
            found: Row | None = connection.execute(sql, values).fetchone()
        except sqlite3.Error:
            return None  # whoever reads it in the usual way is told why
        finally:
            self._lock.release()
        return found

    def hold(self, transaction: Any, session_id: str) -> None:
        """Do nothing: whoever writes is alone."""

    def announce(self, transaction: Any, session_id: str) -> None:
        """Do nothing: a file tells nobody of what is written to it."""

    def listen(self, tell: Callable[[str | None], None]) -> Callable[[], None]:  # noqa: ARG002 - nobody to tell
        """Return something that does nothing: whoever follows a session looks at it now and then."""
        return _do_nothing

    def add_words(self, transaction: Any, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find new contents by their words."""
        self._words.add(transaction, texts)

    def add_words_late(self, transaction: Any, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find contents that were there before."""
        words.add_late(transaction, texts)

    def drop_words(self, transaction: Any, content: int, text: str) -> None:
        """Let searches forget a content; the text must be what it was when it was added."""
        words.drop(transaction, content, text)

    def matching(self, transaction: Any, wanted: Sequence[str]) -> tuple[str, Sequence[Any]]:
        """Return a statement for the contents that have all words; the last one may be unfinished."""
        return words.matching(transaction, wanted)

    def damage(self) -> list[str]:
        """Return what SQLite itself finds wrong with the file."""
        with self._lock, self._errors():
            connection = self._connect()
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        return [f"the database reports: {text}" for text in found if text != "ok"] + [
            f"row {row[1]} of {row[0]} refers to nothing" for row in orphans
        ]

    def close(self) -> None:
        """Close the file; what was committed is in it."""
        with self._lock:
            self._closed = True
            self._disconnect()
            while self._doubtful:
                self._doubtful.pop().close()

    @contextmanager
    def _transaction(self, begin: str, durability: Durability | None) -> Iterator[SQLiteTransaction]:
        with self._lock:
            try:
                connection = self._connect()
                inside = connection.in_transaction
                if not inside:
                    self._flush_with(connection, durability)
                connection.execute("SAVEPOINT inside" if inside else begin)
                try:
                    yield SQLiteTransaction(connection)
                    connection.execute("RELEASE inside" if inside else "COMMIT")
                except BaseException:
                    self._undo(connection, inside=inside)
                    raise
            except sqlite3.Error as error:
                raise self._meaning(error) from error

    def _flush_with(self, connection: sqlite3.Connection, durability: Durability | None) -> None:
        """Have the next commit flushed as it must be."""
        if durability is not None and durability != self._durability:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'turn' else 'NORMAL'}")
            self._durability = durability

    def _undo(self, connection: sqlite3.Connection, *, inside: bool) -> None:
        self._words.undone()
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK TO inside" if inside else "ROLLBACK")
            if inside:
                connection.execute("RELEASE inside")

    def _connect(self) -> sqlite3.Connection:
        """Return the connection, made anew after an error that leaves it in doubt."""
        if self._closed:
            raise StoreUnavailable(f"the store at {self._path} was closed: open it again")
        if self._connection is None:
            connection = _open(self._path)
            if self._doubtful:
                _settle(connection, self._path)
            while self._doubtful:
                self._doubtful.pop().close()
            self._connection = connection
            self._durability = None
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what SQLite raises into what it means."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._meaning(error) from error

    def _meaning(self, error: sqlite3.Error) -> StoreError:
        """Return what an error means, and trust the connection no more."""
        if not isinstance(error, sqlite3.IntegrityError) and self._path != _MEMORY:
            if self._connection is not None and _leaves_doubt(error):
                # Not closed yet: the last to close would put a log into the file that is not safe.
                self._doubtful.append(self._connection)
                self._connection = None
            with suppress(sqlite3.Error):
                self._disconnect()
        return _meaning(error, self._path)


def _path(url: str) -> str:
    scheme, mark, path = url.partition("://")
    if scheme == "sqlite" and mark and path in ("", "/:memory:"):
        return _MEMORY
    if scheme != "sqlite" or not mark or not path.startswith("/") or path == "/" or "\0" in path:
        raise ArgumentError(
            f"{url!r} is no address of a SQLite store: write sqlite:///path, sqlite:////absolute/path, or "
            "sqlite:// for memory"
        )
    return str(Path(path.removeprefix("/")).expanduser())


def _open(path: str) -> sqlite3.Connection:
    if path != _MEMORY:
        _prepare_file(Path(path))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN")  # all that is read is of one moment: others may be making it
        found = _format(connection, path)
        connection.execute("COMMIT")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what was deleted is not to be read from the file
        _use_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        if found < FORMAT:
            _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_log(connection: sqlite3.Connection) -> None:
    """Have changes written ahead to a log; a file remembers that."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.01)  # SQLite itself does not wait for others who are doing the same
        else:
            return


def _settle(connection: sqlite3.Connection, path: str) -> None:
    """After a failed flush, make the log safe, then write all of it into the file.

    Systems forget what they could not flush: a later flush succeeds and brings none of it to the disk,
    while reading still shows it. So the log is written once more before anybody may rely on it.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")  # nobody else writes meanwhile
        _write_again(f"{path}-wal")
        connection.execute("ROLLBACK")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not busy:
            _flush(f"{path}-wal")  # what were left of its beginning would undo what the file has now
    except BaseException:
        connection.close()
        raise
    if busy:
        connection.close()
        raise StoreUnavailable(f"{path} had an error of the disk and is in use by others: try again")


def _write_again(path: str) -> None:
    """Write the content of a file to where it stands, and flush it."""
    with suppress(FileNotFoundError):
        content = Path(path).read_bytes()
        _flush(path, content)


def _flush(path: str, content: bytes = b"") -> None:
    """Flush a file, after writing its content anew if that is given.

    Raises:
        StoreUnavailable: If the disk still cannot do it.
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


def _format(connection: sqlite3.Connection, path: str) -> int:
    """Return the format of a database, 0 for an empty one.

    Raises:
        StoreTooNew: If we do not know the format.
        StoreDamaged: If it is a database of something else.
    """
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        if application or found or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreDamaged(f"{path} is a database of another program: choose another place")
        return 0
    if found > FORMAT:
        raise StoreTooNew(path, found, FORMAT)
    return found


def _prepare_file(path: Path) -> None:
    """Make the folder and the file, readable by their owner alone: conversations are nobody else's."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        _refuse_newer(path)
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be opened: {error.strerror or error}; choose another place"
        ) from error


def _refuse_newer(path: Path) -> None:
    """Refuse a file that a later version wrote by its first bytes: opening it would tidy its log away."""
    with path.open("rb") as file:
        head = file.read(72)
    found, application = (int.from_bytes(head[start : start + 4], "big") for start in (60, 68))
    if application == APPLICATION and found > FORMAT:
        raise StoreTooNew(str(path), found, FORMAT)


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring a database to our format in one transaction, after putting a copy of it aside."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _format(connection, path)  # another process may have done it meanwhile
        if 0 < found < FORMAT and path != _MEMORY:
            _put_aside(path, f"{path}.format-{found}.backup")
        for statement in _statements(_script(found)) if found < FORMAT else ():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _put_aside(path: str, copy: str) -> None:
    """Copy a database that nobody else writes now; the copy is there whole or not at all."""
    unfinished = Path(f"{copy}.unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    # A connection of its own: the other one has a transaction under way, and this is no part of it.
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as reader:
        reader.execute("VACUUM INTO ?", (str(unfinished),))
    unfinished.replace(copy)
    _log.info("store_put_aside", store=path, copy=copy)


def _do_nothing() -> None:
    """End what was never begun."""


def _script(found: int) -> str:
    """Return the statements that lead from a format to ours."""
    return formats.script("sqlite", found, FORMAT)


def _statements(script: str) -> Iterator[str]:
    """Yield the statements one by one: `executescript` would end our transaction."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("--"))
    for statement in code.split(";"):
        if statement.strip():
            yield statement


def _leaves_doubt(error: sqlite3.Error) -> bool:
    """Say whether nobody knows what reached the disk: a commit that was not flushed can come back."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_IOERR_FSYNC"


def _meaning(error: sqlite3.Error, path: str) -> StoreError:
    text = str(error)
    if any(sign in text for sign in _DAMAGE):
        return StoreDamaged(
            f"{path} is damaged ({text}): keep the file, restore a copy, or read what can be read with "
            "`sqlite3 FILE .recover`"
        )
    if "locked" in text or "busy" in text:
        return StoreUnavailable(f"{path} was in use by another process for too long: try again")
    if _leaves_doubt(error):
        return StoreUnavailable(
            f"{path} cannot be used now ({text}): what was being written may be there or not, so read it "
            "before you try again; check the disk"
        )
    if getattr(error, "sqlite_errorname", "") == "SQLITE_ERROR":  # a mistake of ours, not of the disk
        return StoreError(f"{path}: {text}")
    if isinstance(error, sqlite3.OperationalError):
        return StoreUnavailable(
            f"{path} cannot be used now ({text}): nothing was written; check disk space and rights"
        )
    return StoreError(f"{path}: {text}")
