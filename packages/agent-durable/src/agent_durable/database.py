"""The database behind the queue: how it is opened, and how its absence for a moment is sat out."""

from __future__ import annotations

import time
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import sqlalchemy as sa

from agent_app.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
PATIENCE_SECONDS = 20.0
"""How long whoever asks waits for a database that is being restarted."""

_PAUSE = 0.5
_CONNECT_SECONDS = 10
_IDLE_MILLISECONDS = 5000


def open_postgres(url: str, *, connections: int) -> sa.Engine:
    """Return a pool of connections to PostgreSQL of which DBOS knows when it is worth to try again."""
    engine = sa.create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"application_name": "agent-platform", "connect_timeout": _CONNECT_SECONDS},
    )
    sa.event.listen(engine, "connect", _limit_idle)
    sa.event.listen(engine, "handle_error", _call_lost)
    return engine


def patiently(ask: Callable[P, R]) -> Callable[P, R]:
    """Let a function, which may be called again, sit out a database that is away for a moment."""

    @wraps(ask)
    def again(*given: P.args, **named: P.kwargs) -> R:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return ask(*given, **named)
            except sa.exc.DBAPIError as error:
                if not is_away(error):
                    raise
                if time.monotonic() > until:
                    raise StoreUnavailable(
                        "the queue of runs cannot be reached now: is the database there?"
                    ) from error
            time.sleep(_PAUSE)

    return again


def is_away(error: sa.exc.DBAPIError) -> bool:
    """Say whether an error tells of the database's absence, and not of what it was asked."""
    return error.connection_invalidated or isinstance(error, sa.exc.OperationalError)


def _limit_idle(connection: Any, _record: object) -> None:
    """Have a process that was stopped in the middle of a transaction not hold its jobs' rows for long."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = {_IDLE_MILLISECONDS}")
    connection.commit()  # the pool rolls back, and that would undo it


def _call_lost(context: sa.engine.ExceptionContext) -> None:
    """Call a connection lost that could not be made: behind a socket DBOS would take that for a final error.

    It looks for the words that the driver has for a server on a port, and a run would fail for good because
    its database was restarted.
    """
    error = context.original_exception
    if context.connection is None and isinstance(context.sqlalchemy_exception, sa.exc.OperationalError):
        context.is_disconnect = context.is_disconnect or getattr(error, "sqlstate", None) is None
