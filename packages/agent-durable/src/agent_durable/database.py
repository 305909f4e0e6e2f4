"""The database behind the queue: how it is opened, and how a short absence of it is waited out."""

from __future__ import annotations

import time
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import psycopg
import sqlalchemy as sa

from agent_app.errors import StoreUnavailable
from agent_app.store.postgres import place_of

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
PATIENCE_SECONDS = 20.0
"""How long a question waits for a database that is being restarted."""

REPORT_SECONDS = 30.0
"""How often a user who waits for a database reads that it is still away."""

_PAUSE = 0.5
_KNOCK_SECONDS = 5
_REFUSALS = ("FATAL", "no password supplied", "does not support SSL")
_TEMPORARY = ("starting up", "shutting down", "recovery mode", "too many", "connection slots", "terminating")
CONNECT_SECONDS = 10


def open_postgres(
    url: str, *, connections: int, overflow: int = 0, idle_seconds: int, lock_seconds: int | None = None
) -> sa.Engine:
    """Return a pool of connections to PostgreSQL that no stopped process can block for long.

    Args:
        connections: How many are kept open.
        overflow: How many more there may be for a moment.
        idle_seconds: After how long the server ends a transaction whose process does nothing, such as one
            that was suspended in the middle of it. Until then its row locks keep others waiting.
        lock_seconds: How long a statement waits for a row lock; as long as it takes by default.
    """
    engine = sa.create_engine(
        url,
        pool_size=connections,
        max_overflow=overflow,
        pool_pre_ping=True,
        connect_args={"application_name": "keelwork", "connect_timeout": CONNECT_SECONDS},
    )

    def set_limits(connection: psycopg.Connection, _record: object) -> None:
        connection.execute(f"SET idle_in_transaction_session_timeout = {idle_seconds * 1000}")
        if lock_seconds is not None:
            connection.execute(f"SET lock_timeout = {lock_seconds * 1000}")
        connection.commit()  # the pool rolls back, and that would undo it

    sa.event.listen(engine, "connect", set_limits)
    return engine


def wait_for(url: str, *, seconds: float, tell: Callable[[str], None]) -> None:
    """Wait until the server of a database accepts connections; a file needs no server.

    Args:
        url: The address, as libpq reads it.
        seconds: How long at most.
        tell: Called with a sentence for people when the wait begins, and every 30 seconds after that.

    Raises:
        StoreUnavailable: If the server stays away, or if it refuses, which waiting would not change.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        return
    place = place_of(url)
    began = time.monotonic()
    reported = -REPORT_SECONDS
    while True:
        try:
            psycopg.connect(url, connect_timeout=_KNOCK_SECONDS).close()
        except psycopg.OperationalError as error:
            cause = _first_line(error)
            waited = time.monotonic() - began
            if _is_refusal(error):
                raise StoreUnavailable(f"{place} refuses the connection ({cause})") from error
            if waited >= seconds:
                raise StoreUnavailable(
                    f"{place} cannot be reached after {waited:.0f} s ({cause}): is the server running, and "
                    "is the address right?"
                ) from error
            if waited - reported >= REPORT_SECONDS:
                reported = waited
                tell(f"waiting for {place}, for {seconds - waited:.0f} s at most ({cause})")
        else:
            return
        time.sleep(min(_PAUSE, max(0.0, seconds - (time.monotonic() - began))))


def create_tables(engine: sa.Engine, tables: sa.MetaData) -> None:
    """Create tables that do not exist."""
    try:
        tables.create_all(engine, checkfirst=True)
    except sa.exc.DBAPIError:  # another process was creating them at the same moment
        tables.create_all(engine, checkfirst=True)


def patiently(ask: Callable[P, R]) -> Callable[P, R]:
    """Let a function that may be called twice wait out a database that is away for a moment.

    Raises:
        StoreUnavailable: If it stays away.
    """

    @wraps(ask)
    def again(*given: P.args, **named: P.kwargs) -> R:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return ask(*given, **named)
            except sa.exc.DBAPIError as error:
                if not is_away(error):
                    raise
                if time.monotonic() > until or _is_refusal(error.orig):
                    cause = _first_line(error.orig)
                    raise StoreUnavailable(
                        f"the queue of runs cannot be reached now ({cause}): is the database running?"
                    ) from error
            time.sleep(_PAUSE)

    return again


def is_away(error: sa.exc.DBAPIError) -> bool:
    """Say whether an error means that the database is away, and not that the question was wrong."""
    return error.connection_invalidated or isinstance(error, sa.exc.OperationalError)


def _is_refusal(error: BaseException | None) -> bool:
    """Say whether a server answered and refused the connection; the driver has no code for that."""
    text = str(error)
    if getattr(error, "sqlstate", None) is not None:
        return False
    return any(word in text for word in _REFUSALS) and not any(word in text for word in _TEMPORARY)


def _first_line(error: BaseException | None) -> str:
    """Return the first line of a driver's message; it names the server and never a password."""
    return str(error).strip().partition("\n")[0]
