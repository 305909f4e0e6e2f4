"""What is read from DBOS's own tables in one question, where its interface would take one for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from dbos import DBOSPortableJSONSerializer

from agent_durable.database import patiently
from agent_durable.jobs import Outcome, Queue

if TYPE_CHECKING:
    from collections.abc import Sequence

Rate = tuple[int, float]
"""How many runs may begin in how many seconds."""

_WAITING = ("ENQUEUED", "DELAYED")
_read = DBOSPortableJSONSerializer().deserialize


class Progress(NamedTuple):
    """How far a run has come: how many steps are done, and what the last of them did."""

    steps: int = 0
    last: str = ""


@patiently
def progress(engine: sa.Engine, run_ids: Sequence[str]) -> dict[str, Progress]:
    """Return how far runs have come; those that have made no step are left out."""
    steps = _table(engine, "operation_outputs", "workflow_uuid", "function_id", "output")
    ends = (
        sa.select(
            steps.c.workflow_uuid,
            sa.func.count().label("steps"),
            sa.func.max(steps.c.function_id).label("last"),
        )
        .where(steps.c.workflow_uuid.in_(run_ids))
        .group_by(steps.c.workflow_uuid)
        .subquery()
    )
    is_last = sa.and_(steps.c.workflow_uuid == ends.c.workflow_uuid, steps.c.function_id == ends.c.last)
    query = sa.select(steps.c.workflow_uuid, ends.c.steps, steps.c.output).join(ends, is_last)
    with engine.connect() as connection:
        return {run_id: Progress(count, _done(output)) for run_id, count, output in connection.execute(query)}


@patiently
def queue(engine: sa.Engine, run: str, pass_on: str) -> Queue:
    """Return how many runs wait, and for how long the oldest of them, in the queue where it is now."""
    rows = _table(engine, "workflow_status", "name", "status", "created_at")
    at_limit = sa.and_(rows.c.name == pass_on, rows.c.status == "PENDING")
    waiting = sa.or_(sa.and_(rows.c.name.in_([run, pass_on]), rows.c.status.in_(_WAITING)), at_limit)
    with engine.connect() as connection:
        count, oldest = connection.execute(
            sa.select(sa.func.count(), sa.func.min(rows.c.created_at)).where(waiting)
        ).one()
        now = connection.execute(_now_ms(engine)).scalar_one()
    return Queue(count, 0.0 if oldest is None else max(0.0, (float(now) - oldest) / 1000))


@patiently
def at_work(engine: sa.Engine, names: Sequence[str]) -> set[str]:
    """Return the executors that have workflows of some names."""
    rows = _table(engine, "workflow_status", "name", "status", "executor_id")
    theirs = sa.and_(rows.c.status == "PENDING", rows.c.name.in_(names), rows.c.executor_id.is_not(None))
    with engine.connect() as connection:
        return set(connection.execute(sa.select(rows.c.executor_id).where(theirs).distinct()).scalars())


@patiently
def waiting_in(engine: sa.Engine, prefix: str) -> list[str]:
    """Return the queues that begin with a prefix and in which somebody waits."""
    rows = _table(engine, "workflow_status", "queue_name", "status")
    waits = sa.and_(rows.c.status == "ENQUEUED", rows.c.queue_name.startswith(prefix, autoescape=True))
    with engine.connect() as connection:
        return list(connection.execute(sa.select(rows.c.queue_name).where(waits).distinct()).scalars())


@patiently
def limits(engine: sa.Engine, kinds: Sequence[str]) -> dict[str, Rate | None]:
    """Return the rates of the queues whose names begin with a kind; None for one that was lifted."""
    rows = _table(engine, "queues", "name", "rate_limit_max", "rate_limit_period_sec")
    theirs = sa.or_(*(rows.c.name.startswith(kind, autoescape=True) for kind in kinds))
    with engine.connect() as connection:
        found = connection.execute(rows.select().where(theirs))
        return {name: None if count is None else (count, seconds) for name, count, seconds in found}


def move(engine: sa.Engine, source: str, target: str, capacity: int) -> int:
    """Move those with the smallest priority to another queue, until that is full; return how many."""
    rows = _table(
        engine, "workflow_status", "workflow_uuid", "queue_name", "status", "priority", "created_at"
    )
    in_target = sa.and_(rows.c.queue_name == target, rows.c.status.in_(["ENQUEUED", "PENDING"]))
    waits = sa.and_(rows.c.queue_name == source, rows.c.status == "ENQUEUED")
    with engine.begin() as connection:
        room = capacity - connection.execute(sa.select(sa.func.count()).where(in_target)).scalar_one()
        first = (
            sa.select(rows.c.workflow_uuid)
            .where(waits)
            .order_by(rows.c.priority, rows.c.created_at)
            .limit(max(0, room))
            .with_for_update(skip_locked=True)  # another worker moves them just now
        )
        found = list(connection.execute(first).scalars())
        # The condition stands here as well: somebody may have cancelled it, where rows are not locked.
        change = rows.update().where(rows.c.workflow_uuid.in_(found), waits).values(queue_name=target)
        return connection.execute(change).rowcount if found else 0


def _table(engine: sa.Engine, name: str, *columns: str) -> sa.TableClause:
    schema = "dbos" if engine.dialect.name == "postgresql" else None
    return sa.table(name, *(sa.column(column) for column in columns), schema=schema)


def _now_ms(engine: sa.Engine) -> sa.TextClause:
    if engine.dialect.name == "postgresql":
        return sa.text("SELECT extract(epoch FROM clock_timestamp()) * 1000")
    return sa.text("SELECT (julianday('now') - 2440587.5) * 86400000.0")


def _done(output: str | None) -> str:
    found = _read(output)
    if not isinstance(found, dict):
        return ""
    outcome = Outcome.from_dict(found)
    return outcome.units[-1] if outcome.units and not outcome.over else outcome.code
