"""Who is at work: a row for each worker that it renews all the time, and that others take when it does not.

A row that is gone is also how a worker learns that it was given up: one that had been stopped for a while,
and goes on, must not touch runs that others have by now.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from agent_durable.database import patiently

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """What is known of a worker.

    Attributes:
        name: Program, process and machine, for people.
        capabilities: The agents that it can run, by the names of `agent_durable.capability`.
        age: Seconds since it last said that it is there.
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
        self._engine = sa.create_engine(url, pool_size=2, max_overflow=2, pool_pre_ping=True)
        _metadata.create_all(self._engine, checkfirst=True)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def add(self, worker_id: str, name: str, concurrency: int, capabilities: list[str]) -> None:
        """Note a worker."""
        with self._engine.begin() as connection:
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
        """Say that a worker is there; False if it was given up."""
        with self._engine.begin() as connection:
            change = _workers.update().where(_workers.c.id == worker_id)
            return connection.execute(change.values(beat=_now(connection), draining=draining)).rowcount == 1

    @patiently
    def all(self) -> list[WorkerInfo]:
        """Return all workers, the oldest first."""
        with self._engine.connect() as connection:
            now = _now(connection)
            rows = connection.execute(_workers.select().order_by(_workers.c.started)).mappings()
            return [_read(row, now) for row in rows]

    @contextmanager
    def taking(self, worker_id: str, *, silent: float = 0.0) -> Iterator[bool]:
        """Take a worker off the list, if it was silent for so many seconds; others wait until it is done.

        The row goes when the block ends well. So whoever dies inside of it leaves the worker to the next,
        and the worker itself, should it come back, learns that it was given up.
        """
        with self._engine.begin() as connection:
            due = _workers.c.beat <= _now(connection) - silent
            taken = _workers.delete().where(_workers.c.id == worker_id, due)
            yield connection.execute(taken).rowcount == 1


def _now(connection: sa.Connection) -> float:
    """Return the time of the database, which is the same for all workers."""
    if connection.dialect.name == "postgresql":
        sql = sa.text("SELECT extract(epoch FROM clock_timestamp())::float8")
    else:
        sql = sa.text("SELECT (julianday('now') - 2440587.5) * 86400.0")
    return float(connection.execute(sql).scalar_one())


def _read(row: Any, now: float) -> WorkerInfo:
    return WorkerInfo(
        id=row["id"],
        name=row["name"],
        concurrency=row["concurrency"],
        capabilities=tuple(row["capabilities"]),
        started=row["started"],
        age=max(0.0, now - row["beat"]),
        draining=row["draining"],
    )
