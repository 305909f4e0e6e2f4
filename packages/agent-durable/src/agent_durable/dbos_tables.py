"""Queries on DBOS's own tables, and two tables of ours next to them.

One query reads what DBOS's interface would need one call per run for. Our tables have how many runs may wait,
and which workers a run has lost.

DBOS counts every worker that begins a run, also after an ordinary stop. A run that kills its workers shows
only in our table of losses: one row for each worker that died with the run. A worker dies once, so a loss
that two others notice is one row.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from dbos import DBOSPortableJSONSerializer

from agent_durable.database import create_tables, patiently
from agent_durable.jobs import Bounds, Outcome, Queue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Rate = tuple[int, float]
"""How many runs may begin in how many seconds."""

TENANT = "tenant"
_WAITING = ("ENQUEUED", "DELAYED")
_metadata = sa.MetaData()
_bounds = sa.Table(
    "agent_queue_bounds",
    _metadata,
    sa.Column("whom", sa.Text, primary_key=True),
    sa.Column("most", sa.Integer, nullable=False),
)
_losses = sa.Table(
    "agent_run_losses",
    _metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("counts", sa.Boolean, nullable=False),
)
_read = DBOSPortableJSONSerializer().deserialize


class Progress(NamedTuple):
    """How far a run has come: how many steps are done, and what the last of them did."""

    steps: int = 0
    last: str = ""


@patiently
def progress(engine: sa.Engine, run_ids: Sequence[str]) -> dict[str, Progress]:
    """Return how far runs have come; runs without a step are not listed."""
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
    """Return how many runs wait, and how long the oldest of them has been in its present queue."""
    rows = _table(engine, "workflow_status", "name", "status", "created_at")
    waiting = _is_waiting(rows, run, pass_on)
    with engine.connect() as connection:
        count, oldest = connection.execute(
            sa.select(sa.func.count(), sa.func.min(rows.c.created_at)).where(waiting)
        ).one()
        now = connection.execute(_now_ms(engine)).scalar_one()
    return Queue(count, 0.0 if oldest is None else max(0.0, (float(now) - oldest) / 1000))


@patiently
def count_waiting(engine: sa.Engine, run: str, pass_on: str, tenant: str) -> tuple[int, int]:
    """Return how many runs wait, in all and of one tenant; runs without a tenant are not counted apart."""
    rows = _table(engine, "workflow_status", "name", "status", "attributes")
    waiting = sa.select(sa.func.count()).where(_is_waiting(rows, run, pass_on))
    theirs = sa.type_coerce(rows.c.attributes, sa.JSON)[TENANT].as_string() == tenant
    with engine.connect() as connection:
        total: int = connection.execute(waiting).scalar_one()
        return total, connection.execute(waiting.where(theirs)).scalar_one() if tenant else 0


def _is_waiting(rows: sa.TableClause, run: str, pass_on: str) -> sa.ColumnElement[bool]:
    """Return the condition for runs that wait, including those on their way through a limit.

    The statuses are written out, not bound: only then does PostgreSQL use its partial index of unfinished
    workflows instead of reading all finished ones.
    """
    not_over = sa.text("status IN ('ENQUEUED', 'PENDING')")
    at_limit = sa.or_(rows.c.status == "ENQUEUED", rows.c.name == pass_on)
    return sa.and_(not_over, at_limit, rows.c.name.in_([run, pass_on]))


def create(engine: sa.Engine) -> None:
    """Create our tables, unless they exist."""
    create_tables(engine, _metadata)


@patiently
def bounds(engine: sa.Engine) -> Bounds:
    """Return how many runs may wait, with the defaults where nothing was set."""
    with engine.connect() as connection:
        known: dict[str, int] = {row.whom: row.most for row in connection.execute(_bounds.select())}
    default = Bounds()
    return Bounds(known.get("total", default.total), known.get("tenant", default.tenant))


@patiently
def set_bounds(engine: sa.Engine, bounds: Mapping[str, int]) -> None:
    """Set how many runs may wait, by the fields of `Bounds`."""
    with engine.begin() as connection:
        connection.execute(_bounds.delete().where(_bounds.c.whom.in_(bounds)))
        connection.execute(_bounds.insert(), [{"whom": name, "most": most} for name, most in bounds.items()])


@patiently
def idle_queues(engine: sa.Engine, prefix: str) -> list[str]:
    """Return the queues with a prefix in which nothing waits or runs."""
    queues = _table(engine, "queues", "name")
    rows = _table(engine, "workflow_status", "queue_name", "status")
    used = sa.and_(rows.c.queue_name == queues.c.name, rows.c.status.in_([*_WAITING, "PENDING"]))
    idle = sa.and_(
        queues.c.name.startswith(prefix, autoescape=True), ~sa.exists().where(used).correlate(queues)
    )
    with engine.connect() as connection:
        return list(connection.execute(sa.select(queues.c.name).where(idle)).scalars())


@patiently
def at_work(engine: sa.Engine, names: Sequence[str]) -> set[str]:
    """Return the executors that run workflows with these names."""
    rows = _table(engine, "workflow_status", "name", "status", "executor_id")
    theirs = sa.and_(rows.c.status == "PENDING", rows.c.name.in_(names), rows.c.executor_id.is_not(None))
    with engine.connect() as connection:
        return set(connection.execute(sa.select(rows.c.executor_id).where(theirs).distinct()).scalars())


@patiently
def of_session(engine: sa.Engine, attribute: str, session_id: str) -> list[str]:
    """Return the ids of the workflows that have a session as an attribute."""
    rows = _table(engine, "workflow_status", "workflow_uuid", "attributes")
    theirs = sa.type_coerce(rows.c.attributes, sa.JSON)[attribute].as_string() == session_id
    with engine.connect() as connection:
        return list(connection.execute(sa.select(rows.c.workflow_uuid).where(theirs)).scalars())


@patiently
def attempts(engine: sa.Engine, run_id: str) -> int:
    """Return how often executors began a workflow."""
    rows = _table(engine, "workflow_status", "workflow_uuid", "recovery_attempts")
    with engine.connect() as connection:
        query = sa.select(rows.c.recovery_attempts).where(rows.c.workflow_uuid == run_id)
        return connection.execute(query).scalar() or 0


@patiently
def cancelled(engine: sa.Engine, run_ids: Sequence[str]) -> list[str]:
    """Return which workflows were cancelled; every worker asks that of all its runs, again and again."""
    rows = _table(engine, "workflow_status", "workflow_uuid", "status")
    query = sa.select(rows.c.workflow_uuid).where(
        rows.c.workflow_uuid.in_(run_ids), rows.c.status == "CANCELLED"
    )
    with engine.connect() as connection:
        return list(connection.execute(query).scalars())


@patiently
def waiting_in(engine: sa.Engine, prefix: str) -> list[str]:
    """Return the queues with a prefix in which a workflow waits."""
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
    """Move the most urgent workflows to another queue until that is full; return how many were moved."""
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
            .with_for_update(skip_locked=True)  # another worker is moving those
        )
        found = list(connection.execute(first).scalars())
        # Checked again: SQLite locks no rows, so one may have been cancelled since.
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


# Losses


@patiently
def add_losses(engine: sa.Engine, run_ids: Sequence[str], worker: str) -> None:
    """Record that a worker died with these runs; the ones it had not begun do not count."""
    _insert_losses(engine, run_ids, worker, counts=True)


@patiently
def excuse(engine: sa.Engine, run_id: str, worker: str) -> None:
    """Record that a worker has a run and has not begun it: if it dies now, the run is not the cause."""
    _insert_losses(engine, [run_id], worker, counts=False)


@patiently
def begin(engine: sa.Engine, run_id: str, worker: str) -> None:
    """Record that a worker begins a run that it had excused."""
    excused = sa.and_(_losses.c.run_id == run_id, _losses.c.worker == worker, sa.not_(_losses.c.counts))
    with engine.begin() as connection:
        connection.execute(_losses.delete().where(excused))


@patiently
def count_losses(engine: sa.Engine, run_ids: Sequence[str]) -> dict[str, int]:
    """Return how many workers died with each run; runs that lost none are not listed."""
    theirs = sa.and_(_losses.c.run_id.in_(run_ids), _losses.c.counts)
    query = (
        sa.select(_losses.c.run_id, sa.func.count().label("number")).where(theirs).group_by(_losses.c.run_id)
    )
    with engine.connect() as connection:
        return {row.run_id: row.number for row in connection.execute(query)}


@patiently
def forget_losses(engine: sa.Engine, run_ids: Sequence[str]) -> None:
    with engine.begin() as connection:
        connection.execute(_losses.delete().where(_losses.c.run_id.in_(run_ids)))


def _insert_losses(engine: sa.Engine, run_ids: Sequence[str], worker: str, *, counts: bool) -> None:
    with engine.begin() as connection:
        recorded = sa.select(_losses.c.run_id).where(
            _losses.c.run_id.in_(run_ids), _losses.c.worker == worker
        )
        known = set(connection.execute(recorded).scalars())
        new = [
            {"run_id": run_id, "worker": worker, "at": time.time(), "counts": counts}
            for run_id in run_ids
            if run_id not in known
        ]
        if new:
            connection.execute(_losses.insert(), new)
