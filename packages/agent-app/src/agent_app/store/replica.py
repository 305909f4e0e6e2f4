"""A streaming replica of a PostgreSQL store, from which events are read in place of the primary.

A replica has what the primary had a moment ago. Events are only ever added, and the feed shows nothing of
transactions that may still be under way, so what a replica shows is a beginning of what the primary shows:
never something else, and nothing out of order. What it does not have yet is asked of the primary.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agent_app.errors import SessionNotFound, StoreError, StoreUnavailable
from agent_app.store.postgres import FORMAT, PostgresDatabase
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_app.store.database import Database, Transaction
    from agent_app.store.postgres import PostgresTransaction

T = TypeVar("T")
_AWAY_SECONDS, _CONNECT_SECONDS = 10.0, 2
_PAUSES = (0.0, 0.01, 0.03)
"""How long a replica is given to show what was announced: the primary announces before it has sent it."""
_log = get_logger("store")


class ReplicaDatabase(PostgresDatabase):
    """A replica of a PostgreSQL database. It need not be there when it is opened."""

    def __init__(self, url: str) -> None:
        self._checked = False
        patience = conninfo_to_dict(url).get("connect_timeout", _CONNECT_SECONDS)
        super().__init__(make_conninfo(url, connect_timeout=patience))

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """Read a consistent state, as it was on the primary a moment ago.

        Raises:
            StoreUnavailable: If the tables there do not have our format, or not yet.
        """
        with super().reading() as transaction:
            if not self._checked:
                found = transaction.rows("SELECT number FROM format")[0][0]
                if found != FORMAT:
                    raise StoreUnavailable(f"the replica has tables of format {found}, not {FORMAT}")
                self._checked = True
            yield transaction

    def _migrate(self) -> None:
        """Do nothing: nobody can write a replica."""


class Replica:
    """Answers from a replica as long as it can be reached.

    Args:
        database: The replica, or a tenant's view of it.
        state: What views share: until when the replica is left alone.
    """

    def __init__(self, database: Database, state: _State | None = None) -> None:
        self.database = database
        self._state = state or _State()

    def view(self, database: Database) -> Replica:
        """Return the same replica with a view of its database."""
        return Replica(database, self._state)

    def ask(self, read: Callable[[Database, Transaction], Sequence[T]]) -> list[T]:
        """Return what is read there; nothing if the replica is away, or has no such session yet."""
        if not self._state.is_there():
            return []
        try:
            with self.database.reading() as transaction:
                return list(read(self.database, transaction))
        except SessionNotFound:
            return []
        except StoreError as error:
            self._state.leave_alone(error)
            return []

    def ask_patiently(self, read: Callable[[Database, Transaction], Sequence[T]]) -> list[T]:
        """Do the same, and look again a few times if there is nothing: it may be on its way."""
        for pause in _PAUSES:
            time.sleep(pause)
            if found := self.ask(read):
                return found
            if not self._state.is_there():
                break
        return []


class _State:
    """Whether the replica can be reached, as far as is known."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._away_until = 0.0

    def is_there(self) -> bool:
        return time.monotonic() >= self._away_until

    def leave_alone(self, error: Exception) -> None:
        """Ask the primary alone for some seconds."""
        with self._lock:
            if self.is_there():
                _log.warning("replica_not_used", seconds=_AWAY_SECONDS, error=str(error))
            self._away_until = time.monotonic() + _AWAY_SECONDS
