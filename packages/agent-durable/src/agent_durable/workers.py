"""The list of workers: a row for each, which it renews all the time, and which others take when it does not.

A missing row is also how a worker learns that it was given up: one that was suspended for a while and wakes
up must not touch runs that others have by then.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from agent_durable.database import create_tables, open_postgres, patiently

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECTIONS, _OVERFLOW = 2, 2
_IDLE_SECONDS = 30
_LOCK_SECONDS = 1
_LOCKED = "55P03"  # lock_not_available
_metadata = sa.MetaData()
_workers = sa.Table(
    "agent_workers",
    _metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("concurrency", sa.Integer, nullable=False),
    sa.Column("capabilities", sa.JSON, nullable=False),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("beat", sa.Float, nullable=False),
    sa.Column("draining", sa.Boolean, nullable=False, default=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """One worker.

    Attributes:
        name: Program, process and machine, for people.
        capabilities: The agents that it can run, as capabilities: see `agent_durable.jobs`.
        age: Seconds since it last renewed its row.
        draining: Whether it takes no more runs.
    """

    id: str
    name: str
    concurrency: int
    capabilities: tuple[str, ...]
    started: float
    age: float
    draining: bool

    def is_able(self, capability: str) -> bool:
        """Say whether it takes runs that need a capability."""
        return not self.draining and capability in self.capabilities


class Workers:
    """The list of workers, in the database that they share.

    Args:
        url: The address for SQLAlchemy.
    """

    def __init__(self, url: str) -> None:
        if url.startswith("postgresql"):
            # A worker that was suspended while it renewed its row would keep those who want to take it over
            # from renewing their own, until all of them seem to be gone. So no one waits long for a row.
            self._engine = open_postgres(
                url,
                connections=_CONNECTIONS,
                overflow=_OVERFLOW,
                idle_seconds=_IDLE_SECONDS,
                lock_seconds=_LOCK_SECONDS,
            )
        else:
            self._engine = sa.create_engine(
                url, pool_size=_CONNECTIONS, max_overflow=_OVERFLOW, pool_pre_ping=True
            )
        self._has_table = False

    def close(self) -> None:
        self._engine.dispose()

    @patiently
    def add(self, worker_id: str, name: str, concurrency: int, capabilities: list[str]) -> None:
        with self._open().begin() as connection:
            now = _now(connection)
            connection.execute(
                _workers.insert().values(
                    id=worker_id,
                    name=name,
                    concurrency=concurrency,
                    capabilities=capabilities,
                    started=now,
                    beat=now,
                    draining=False,
                )
            )

    def beat(self, worker_id: str, *, draining: bool = False) -> bool:
        """Renew a worker's row; False if the worker was given up."""
        with self._open().begin() as connection:
            change = _workers.update().where(_workers.c.id == worker_id)
            return connection.execute(change.values(beat=_now(connection), draining=draining)).rowcount == 1

    @patiently
    def all(self) -> list[WorkerInfo]:
        """Return all workers, oldest first."""
        with self._open().connect() as connection:
            now = _now(connection)
            rows = connection.execute(_workers.select().order_by(_workers.c.started)).mappings()
            return [_read(row, now) for row in rows]

    @contextmanager
    def taking(self, worker_id: str, *, silent: float = 0.0) -> Iterator[bool]:
        """Take a worker off the list if it was silent for so many seconds; False if it was not, or is locked.

        The row goes when the block ends well. So a process that dies inside the block leaves the worker to
        the next one, and the worker itself, if it comes back, learns that it was given up.
        """
        with self._open().begin() as connection:
            due = _workers.c.beat <= _now(connection) - silent
            yield _is_taken(connection, _workers.delete().where(_workers.c.id == worker_id, due))

    def _open(self) -> sa.Engine:
        """Return the connections, after creating the table if this is the first worker ever."""
        if not self._has_table:
            create_tables(self._engine, _metadata)
            self._has_table = True
        return self._engine


def _is_taken(connection: sa.Connection, taken: sa.Delete) -> bool:
    """Say whether a row could be deleted; False also while another process has it locked."""
    try:
        return connection.execute(taken).rowcount == 1
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCKED:
            raise
        return False


def _now(connection: sa.Connection) -> float:
    """Return the time of the database, which is the same for all workers."""
    if connection.dialect.name == "postgresql":
        sql = sa.text("SELECT extract(epoch FROM clock_timestamp())::float8")
    else:
        sql = sa.text("SELECT (julianday('now') - 2440587.5) * 86400.0")
    return float(connection.execute(sql).scalar_one())


def _read(row: sa.RowMapping, now: float) -> WorkerInfo:
    return WorkerInfo(
        id=row["id"],
        name=row["name"],
        concurrency=row["concurrency"],
        capabilities=tuple(row["capabilities"]),
        started=row["started"],
        age=max(0.0, now - row["beat"]),
        draining=row["draining"],
    )
