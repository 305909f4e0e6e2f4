"""PostgreSQL as the database of a session store, for several processes and machines.

Sessions are written side by side. What belongs to one session is written by one transaction at a time: it
locks the session's row first, and so sees what those before it have written. Every writer also shares a
lock on the whole store, which garbage collection and exports take exclusively.

All tables are in a schema of their own. Time is the server's, which is the same for all machines. Text is
split into words here and not by the server, whose idea of a letter depends on how it was installed.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from agent_app.errors import StoreDamaged, StoreError, StoreTooNew, StoreUnavailable
from agent_app.store import migration, records
from agent_app.store.database import USAGE
from agent_app.store.notifications import Listening
from agent_app.store.processes import Moment
from agent_core import ArgumentError
from agent_core.log import get_logger

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise ArgumentError("PostgreSQL stores need psycopg: pip install 'keelwork-app[postgres]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_app.store.base import Durability
    from agent_app.store.database import Row

FORMAT = 7
"""The format that this version writes; a database of a later one is left alone."""

SCHEMA = "agent_store"
"""The schema of all our tables."""

_CONNECTIONS = 8
_CONNECT_SECONDS = 10
_BUSY_SECONDS = 10.0
_FAREWELL_SECONDS = 1.0
_WRITERS, _MIGRATION = 0x61677374_0001, 0x61677374_0002  # keys of advisory locks
_BITS = 20  # so many of a position in the feed count within its transaction
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
_NEXT_POSITION = (
    "(SELECT coalesce(max(f.position) + 1, min(own.start)) FROM "
    f"(SELECT (pg_current_xact_id()::text::bigint + added) << {_BITS} AS start FROM feed_start) own "
    f"LEFT JOIN feed f ON f.position >= own.start AND f.position < own.start + (1::bigint << {_BITS}))"
)
_NEXT_TRANSACTION = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
# In a database that was restored on another server, there may be positions of transactions yet to come.
_AFTER_RESTORE = (
    "UPDATE feed_start SET added = "
    f"(SELECT max(position) FROM feed) / (1::bigint << {_BITS}) + 1 - {_NEXT_TRANSACTION} "
    f"WHERE (SELECT max(position) FROM feed) >= ({_NEXT_TRANSACTION} + added) << {_BITS}"
)
# The name of the channel of notifications is a secret of those who may read the tables.
_MAKE_CHANNEL = (
    "CREATE TABLE channel (name text NOT NULL, single boolean PRIMARY KEY DEFAULT true CHECK (single)); "
    "INSERT INTO channel (name) VALUES ('agent_store_' || replace(gen_random_uuid()::text, '-', ''))"
)
_LONGEST_WORD = 250
_WORD_BYTES = 1_000_000  # a tsvector has room for a little more
_log = get_logger("store")


class PostgresTransaction:
    """A transaction of PostgreSQL."""

    tenant: str | None = None

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Run a statement and return its rows."""
        return list(self._connection.execute(_translated(sql), values).fetchall())

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self._connection.execute(_translated(sql), values).rowcount

    def insert(self, sql: str, *values: Any) -> int | None:
        """Run a statement that inserts one row, and return its id; None if it inserted none."""
        made = self.rows(f"{sql} RETURNING id", *values)
        return made[0][0] if made else None

    def many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each set of values."""
        if values:
            with self._connection.cursor() as cursor:
                cursor.executemany(_translated(sql), values)


class PostgresDatabase:
    """One database of a server, by a few connections; a thread has one of them at a time.

    Args:
        url: ``postgresql://user@host/database``, or anything else that libpq reads.
        clock: Where the time comes from instead of the server, in seconds since 1970.

    Raises:
        StoreTooNew: If a later version made the tables.
        StoreUnavailable: If the server cannot be reached.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None) -> None:
        self.url = url
        self.read_only: str | None = None
        self.one_writer = False
        self.next_position = _NEXT_POSITION
        self.usage_events = f"events WHERE substr(body, 1, {len(USAGE)}) = '\\x{USAGE.hex()}'::bytea"
        self._place = place_of(url)
        self._clock = clock
        self._idle: list[psycopg.Connection] = []
        self._listening: list[Listening] = []
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_CONNECTIONS)
        self._mine = threading.local()
        self._closed = False
        self._channel = ""
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    def now(self) -> float:
        """Return when the transaction began by the server, or the time of the clock that was given."""
        if self._clock is not None:
            return self._clock()
        if self._mine_now() is None:
            with self.reading():
                return self.now()
        began: float = self._mine.began
        return began

    def moment(self) -> Moment:
        """Return the time of the server, by which all leases end."""
        now = self.now()
        return Moment(now, "server", now)

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """Read a consistent state."""
        with self._transaction(_READ) as transaction:
            yield transaction

    @contextmanager
    def writing(
        self, durability: Durability = "turn", *, alone: bool = False, joined: bool = False
    ) -> Iterator[PostgresTransaction]:
        """Write all or nothing."""
        soon = "SET LOCAL synchronous_commit = off; " if durability == "soon" else ""
        lock = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        with self._transaction(f"{_WRITE}; {soon}SELECT {lock}({_WRITERS})") as transaction:
            self._mine.joined = joined
            try:
                yield transaction
            finally:
                self._mine.joined = False

    def look(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of one statement that reads, which the server takes for a whole transaction."""
        own = self._mine_now()
        with self._errors():
            if own is not None:
                return PostgresTransaction(own).rows(sql, *values)
            with self._slots:
                connection, cursor = self._first(_translated(sql), values)
                rows = list(cursor.fetchall())
                self._give_back(connection)
                return rows

    def glance(self, sql: str, *values: Any) -> Row | None:
        """Return nothing: any question must wait for the server."""
        return None

    def confine(self, transaction: Any, tenant: str) -> None:
        """Have the server keep the rows of other tenants away, besides what our statements do."""
        transaction.rows("SELECT set_config('agent_store.tenant', ?, true)", f"t:{tenant}")

    def hold(self, transaction: Any, session_id: str) -> None:
        """Lock a session's row; statements that follow see what others have committed until then."""
        transaction.rows("SELECT 1 FROM sessions WHERE id = ? FOR UPDATE", session_id)

    def announce(self, transaction: Any, session_id: str) -> None:
        """Have the server notify those who listen, when it commits."""
        transaction.rows("SELECT pg_notify(?, ?)", self._channel, session_id)

    def log(self, transaction: Any, session_id: str, insert: str, values: Sequence[Any]) -> list[int]:
        """Write events to a session's log and to the feed, and have the server notify those who listen."""
        rows = transaction.rows(
            f"WITH added AS ({insert}), placed AS (INSERT INTO feed (position, session, seq, tenant) "
            f"SELECT {self.next_position} + seq - (SELECT min(seq) FROM added), ?, seq, "
            "(SELECT tenant FROM sessions WHERE id = ?) FROM added) SELECT seq, pg_notify(?, ?) FROM added",
            *values, session_id, session_id, self._channel, session_id,
        )  # fmt: skip
        return sorted(row[0] for row in rows)

    def settled(self, transaction: Any) -> int:
        """Return where the positions begin of the oldest transaction that is still under way."""
        oldest = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
        found: int = transaction.rows(f"SELECT ({oldest} + added) << {_BITS} FROM feed_start")[0][0]
        return found

    def listen(self, tell: Callable[[str | None], None]) -> Callable[[], None]:
        """Listen on a connection of its own until what this returns is called, or the database is closed."""
        listening = Listening(partial(_connected, self.url), self._channel, tell)
        with self._lock:
            self._listening = [one for one in self._listening if one.is_open]
            self._listening.append(listening)
            closed = self._closed
        if closed:
            listening.close()
        return listening.close

    def add_words(self, transaction: Any, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find new contents by their words."""
        transaction.many(
            "INSERT INTO words (content, words) VALUES (?, array_to_tsvector(?::text[]))",
            [(content, _lexemes(text)) for content, text in texts],
        )

    def add_words_late(self, transaction: Any, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find contents that already existed."""
        self.add_words(transaction, texts)

    def drop_words(self, transaction: Any, content: int, text: str) -> None:
        """Let searches forget a content."""
        transaction.run("DELETE FROM words WHERE content = ?", content)

    def erase_log(self) -> None:
        """Do nothing: the server's log is its own, and is used again in time."""

    def matching(self, transaction: Any, wanted: Sequence[str]) -> tuple[str, Sequence[Any]]:
        """Return a statement for the contents that have all words; the last one may be unfinished."""
        query = " & ".join(f"'{_lexeme(word)}'" for word in wanted)
        return "SELECT content AS id FROM words WHERE words @@ ?::tsquery", [f"{query}:*"]

    def damage(self, checked: dict[str, int], *, deep: bool) -> list[str]:
        """Return what the server itself has noticed to be wrong with the database's files."""
        with self.reading() as transaction:
            found = transaction.rows(
                "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
            )[0][0]
        return [f"the server reports {found} damaged pages"] if found else []

    def close(self) -> None:
        """Close the connections; those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            listening, self._listening = self._listening, []
        for connection in idle:
            connection.close()
        for one in listening:
            one.close()
        for one in listening:
            one.join(_FAREWELL_SECONDS)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresTransaction]:
        connection = self._mine_now()
        with self._errors():
            if connection is not None and getattr(self._mine, "joined", False):
                yield PostgresTransaction(connection)
                return
            if connection is not None:
                with connection.transaction():  # a savepoint, since one is under way
                    yield PostgresTransaction(connection)
                return
            with self._slots, self._begun(begin) as connection:
                yield PostgresTransaction(connection)
                _commit(connection, self._place)

    def _mine_now(self) -> psycopg.Connection | None:
        """Return the connection on which this thread has a transaction under way."""
        return getattr(self._mine, "connection", None)

    @contextmanager
    def _begun(self, begin: str) -> Iterator[psycopg.Connection]:
        """Lend this thread a connection with a transaction under way; what is not committed is undone."""
        connection, self._mine.began = self._begin(begin)
        self._mine.connection = connection
        try:
            yield connection
        finally:
            self._mine.connection = None
            self._give_back(connection)

    def _begin(self, begin: str) -> tuple[psycopg.Connection, float]:
        """Return a connection in a transaction, and when that began."""
        connection, cursor = self._first(f"{begin}; {_NOW}")
        while cursor.nextset():
            pass
        return connection, cursor.fetchall()[0][0]

    def _first(self, sql: Any, values: Sequence[Any] | None = None) -> tuple[psycopg.Connection, Any]:
        """Run a statement on a free connection, and return both; one that died while idle is replaced."""
        while True:
            with self._lock:
                if self._closed:
                    raise StoreUnavailable(f"the store at {self._place} was closed: open it again")
                idle = self._idle.pop() if self._idle else None
            connection = idle or _connected(self.url)
            try:
                return connection, connection.execute(sql, values)
            except psycopg.Error:
                died = connection.closed
                self._give_back(connection)
                if idle is None or not died:
                    raise

    def _give_back(self, connection: psycopg.Connection) -> None:
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        with self._lock:
            if not (self._closed or connection.closed):
                self._idle.append(connection)
                return
        connection.close()

    def _migrate(self) -> None:
        """Migrate the tables to our format, one process at a time, all or nothing."""
        with self._transaction(f"{_WRITE}; SELECT pg_advisory_xact_lock({_MIGRATION})") as transaction:
            _refuse_strangers(transaction, self._place)
            there = transaction.rows("SELECT to_regclass(?) IS NOT NULL", f"{SCHEMA}.format")[0][0]
            found: int = transaction.rows("SELECT number FROM format")[0][0] if there else 0
            if found > FORMAT:
                raise StoreTooNew(self._place, found, FORMAT)
            if found < FORMAT:
                transaction.rows("SELECT pg_advisory_xact_lock(?)", _WRITERS)  # also of earlier versions
                transaction.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                copy = migration.copy_postgres(transaction, SCHEMA, found) if found else None
                transaction.run(_script(found))
                _log.info("store_migrated", store=self._place, found=found, now=FORMAT, copy=copy)
            transaction.run(_AFTER_RESTORE)
            if not transaction.rows("SELECT to_regclass(?) IS NOT NULL", f"{SCHEMA}.channel")[0][0]:
                transaction.run(_MAKE_CHANNEL)
            self._channel = str(transaction.rows("SELECT name FROM channel")[0][0])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        try:
            yield
        except psycopg.Error as error:
            raise _meaning(error, self._place) from error


def _refuse_strangers(transaction: Any, place: str) -> None:
    """Refuse a schema that a role made to which we do not belong: its tables and triggers would be theirs.

    Raises:
        StoreUnavailable: If it is such a schema.
    """
    found = transaction.rows(
        "SELECT pg_get_userbyid(nspowner), current_user, pg_has_role(current_user, nspowner, 'MEMBER') "
        "FROM pg_namespace WHERE nspname = ?",
        SCHEMA,
    )
    if found and not found[0][2]:
        owner, user, _ = found[0]
        raise StoreUnavailable(
            f"the schema {SCHEMA} of {place} belongs to the role {owner}, to which {user} does not belong: "
            f"make {user} a member of {owner}, or use another database"
        )


@lru_cache(maxsize=256)
def _translated(sql: str) -> Any:
    """Return a statement with the driver's own marks for parameters."""
    return sql.replace("%", "%%").replace("?", "%s")


def place_of(url: str) -> str:
    """Return the address of a PostgreSQL database for people, without secrets.

    Raises:
        ArgumentError: If it cannot be read.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ArgumentError(
            "the address of the database cannot be read: write postgresql://user@host:port/database"
        ) from error
    port = f":{parts['port']}" if "port" in parts else ""
    return f"database {parts.get('dbname', 'of the user')} on {parts.get('host', 'this machine')}{port}"


def _connected(url: str) -> psycopg.Connection:
    patience = conninfo_to_dict(url).get("connect_timeout", _CONNECT_SECONDS)
    address = make_conninfo(url, connect_timeout=patience, client_encoding="utf8")
    connection = psycopg.connect(address, autocommit=True)
    connection.execute(f"SET search_path = {SCHEMA}; SET lock_timeout = {int(_BUSY_SECONDS * 1000)}")
    return connection


def _commit(connection: psycopg.Connection, place: str) -> None:
    try:
        status = connection.execute("COMMIT").statusmessage
    except psycopg.OperationalError as error:
        raise StoreUnavailable(
            f"the connection to {place} was lost while it was writing: load the session again to see whether "
            "the last change is there"
        ) from error
    if status != "COMMIT":
        raise StoreError(f"{place} has not kept the change, because a statement in it had failed; try again")


def _script(found: int) -> str:
    """Return the statements that lead from a format to ours."""
    return migration.script("postgres", found, FORMAT)


def _lexeme(word: str) -> str:
    return records.folded(word)[:_LONGEST_WORD]


def _lexemes(text: str) -> list[str]:
    """Return the different words of a text, as many as a row has room for."""
    found: list[str] = []
    room = _WORD_BYTES
    for word in dict.fromkeys(map(_lexeme, records.words(text))):
        room -= len(word.encode())
        if room < 0:
            break
        found.append(word)
    return found


def _meaning(error: psycopg.Error, place: str) -> StoreError:
    text = " ".join(str(error).split())
    if isinstance(error, (psycopg.errors.DataCorrupted, psycopg.errors.UndefinedTable)):
        return StoreDamaged(f"{place} is damaged ({text}): restore a copy of it; nothing was changed")
    if isinstance(error, (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)):
        return StoreUnavailable(f"{place} was in use by another process for too long: try again")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)):
        return StoreUnavailable(
            f"{place} cannot be used now ({text}): this change was not written; earlier changes "
            "are safe; try again"
        )
    return StoreError(f"{place}: {text}")
