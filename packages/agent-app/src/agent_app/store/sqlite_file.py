"""The file of a SQLite store: opened, migrated to our format, made safe after a failed flush, or only read.

SQLite writes even to read: in write-ahead mode it keeps an index of the log next to the file. Where it may
not write, a file without a log is read as it is, and a file with one is read with the index that is already
there, or copied with its log to a temporary folder.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote

from agent_app.errors import StoreDamaged, StoreTooNew, StoreUnavailable
from agent_app.store import checksums, migration
from agent_app.store.wal import close_and_keep, flush, leaves_doubt, settle, write_again
from agent_core import ArgumentError
from agent_plugin_kit.safe_files import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMAT = 7
"""The format that this version writes; a database of a later one is left alone."""

APPLICATION = 0x61677374
"""The number by which a file is known as ours."""

MEMORY = ":memory:"
_BUSY_SECONDS = 10.0


def path_of(url: str) -> str:
    scheme, mark, path = url.partition("://")
    if scheme == "sqlite" and mark and path in ("", "/:memory:"):
        return MEMORY
    if scheme != "sqlite" or not mark or not path.startswith("/") or path == "/" or "\0" in path:
        raise ArgumentError(
            f"{url!r} is not the address of a SQLite store: write sqlite:///path, sqlite:////absolute/path, "
            "or sqlite:// for memory"
        )
    return str(Path(path.removeprefix("/")).expanduser())


def open_file(path: str) -> sqlite3.Connection:
    if path != MEMORY:
        _prepare_file(Path(path))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN")  # one consistent read: another process may be creating it
        found = _format(connection, path)
        connection.execute("COMMIT")
        checksums.install(connection)
        connection.execute("PRAGMA secure_delete = ON")  # deleted text must not stay readable in the file
        _use_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16000")  # kilobytes: a long session writes all over the file
        if found < FORMAT:
            _migrate(
                connection, path
            )  # it replaces tables, which must not cascade to rows that refer to them
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException as error:
        if leaves_doubt(error):
            connection.close()  # what is in the log may not be on the disk: it goes into the file now
        else:
            close_and_keep(path, [connection], doubt=False)
        raise
    return connection


def _prepare_file(path: Path) -> None:
    """Create the folder and the file, readable by their owner alone: conversations are private."""
    try:
        make_private_folder(path.parent)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        refuse_newer(path)
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be opened: {error.strerror or error}; choose another place"
        ) from error


def refuse_newer(path: Path) -> None:
    """Refuse a file of a later version by its first bytes: opening it could remove its log."""
    with path.open("rb") as file:
        head = file.read(72)
    found, application = (int.from_bytes(head[start : start + 4], "big") for start in (60, 68))
    if application == APPLICATION and found > FORMAT:
        raise StoreTooNew(str(path), found, FORMAT)


def _format(connection: sqlite3.Connection, path: str) -> int:
    """Return the format of a database, 0 for an empty one.

    Raises:
        StoreTooNew: If a later version wrote it.
        StoreDamaged: If it belongs to another program.
    """
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        if application or found or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreDamaged(f"{path} is the database of another program: choose another place")
        return 0
    if found > FORMAT:
        raise StoreTooNew(path, found, FORMAT)
    return found


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead mode; the file remembers it."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.01)  # SQLite does not wait for another process that does the same
        else:
            return


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Migrate a database to our format in one transaction, after copying it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _format(connection, path)  # another process may have done it in between
        if 0 < found < FORMAT and path != MEMORY:
            migration.copy_sqlite(path, f"{path}.format-{found}.backup")
        for statement in migration.statements(_script(found)) if found < FORMAT else ():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _script(found: int) -> str:
    """Return the statements that lead from a format to ours."""
    return migration.script("sqlite", found, FORMAT)


def has_checksums(connection: sqlite3.Connection) -> bool:
    """Say whether rows have checksums: a read-only store of a former format has none."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found == FORMAT


def wrong_schema(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield which tables and indexes differ from those of a new store."""
    with closing(sqlite3.connect(MEMORY, isolation_level=None)) as fresh:
        checksums.install(fresh)
        _migrate(fresh, MEMORY)
        sql = "SELECT type, name, tbl_name, sql FROM sqlite_master"
        wanted, found = (set(one.execute(sql).fetchall()) for one in (fresh, connection))
    for kind, name, _, _ in sorted(wanted - found, key=repr):
        yield f"the {kind} {name} was changed since it was created"


def identity(path: str) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one at the same path; None if there is none."""
    with suppress(OSError):
        found = os.stat(path)  # noqa: PTH116 - before every change, and a Path costs as much as the question
        return found.st_dev, found.st_ino
    return None


def has_log(path: str) -> bool:
    """Say whether there is a log with something in it."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:  # opening it reports the error
        return False


def log_missing(path: str, missed: float) -> str:
    when = f" since {time.strftime('%Y-%m-%d %H:%M', time.localtime(missed))}" if missed else ""
    return (
        f"the log {path}-wal is missing{when}: the last messages before that are lost, unless you find the "
        "log and put it back next to an untouched copy of the file"
    )


def settle_file(connection: sqlite3.Connection, path: str, *, whole: bool) -> None:
    """After a failed flush, make the log safe, then write all of it into the file.

    Systems forget what they could not flush: a later flush succeeds and brings none of it to the disk,
    while reading still shows it. So the log is written again before anyone may rely on it.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")  # no other process writes from here on
        write_again(f"{path}-wal")
        connection.execute("ROLLBACK")
        if whole:
            settle(connection)
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not busy:
            flush(f"{path}-wal")  # a leftover of its beginning would undo what the file has now
    except BaseException:
        connection.close()
        raise
    if busy:
        connection.close()
        raise StoreUnavailable(f"{path} had a disk error and is in use by other processes: try again")


def can_be_read(connection: sqlite3.Connection, path: str) -> bool:
    """Say whether a database can be read as it is: only one in our format."""
    checksums.install(connection)
    return _format(connection, path) == FORMAT


class ReadOnly:
    """A connection that only reads.

    Args:
        path: The file, which exists.
        is_current: Says whether the database of a connection can be read as it is; otherwise it is copied.
        open_copy: Opens a copy, which may be written.

    Raises:
        StoreUnavailable: If another process is writing it now.
    """

    def __init__(
        self,
        path: str,
        is_current: Callable[[sqlite3.Connection, str], bool],
        open_copy: Callable[[str], sqlite3.Connection],
    ) -> None:
        self._path, self._is_current, self._open_copy = path, is_current, open_copy
        self._seen = self._look()
        self._folder: TemporaryDirectory[str] | None = None
        try:
            self.connection = self._connect()
        except BaseException:
            self.close()
            raise

    def is_old(self) -> bool:
        """Say whether the file was written since it was opened."""
        return self._look() != self._seen

    def close(self) -> None:
        """Remove the copy, if there is one; the connection is closed before."""
        if self._folder is not None:
            self._folder.cleanup()

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_state_of(Path(f"{self._path}{ending}")) for ending in ("", "-wal")]

    def _connect(self) -> sqlite3.Connection:
        log = self._seen[1]
        address = f"file:{quote(str(Path(self._path).absolute()))}?mode=ro"
        connection = sqlite3.connect(
            address if log is not None and log[1] else f"{address}&immutable=1",
            uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False,
        )  # fmt: skip
        try:
            if self._is_current(connection, self._path):
                return connection
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            if not name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
                connection.close()
                raise
        except BaseException:
            connection.close()
            raise
        connection.close()
        return self._copied()

    def _copied(self) -> sqlite3.Connection:
        self._folder = TemporaryDirectory(prefix="agent-store-")
        copy = Path(self._folder.name) / Path(self._path).name
        for ending in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{self._path}{ending}", f"{copy}{ending}")
        if self.is_old():
            raise StoreUnavailable(f"{self._path} is being written by another process: try again")
        return self._open_copy(str(copy))


def why_read_only(path: Path) -> str | None:
    """Return why this user cannot write an existing file; None if they can."""
    if not path.exists():
        return None
    for place, what in ((path, "the file"), (path.parent, "its folder")):
        if not os.access(place, os.W_OK):
            return f"{path} can be read, and {what} cannot be written ({_reason(place)})"
    return None


def _reason(place: Path) -> str:
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return "the disk is mounted read-only"
    return f"mode {place.stat().st_mode & 0o777:04o}, owned by user {place.stat().st_uid}"


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
