"""DBOS as the durable engine: workflows, queues and steps in PostgreSQL, or in SQLite for one machine.

Each capability has a queue of its own, in which a session is a partition: a session has one run at a time.
Such a queue knows no order between sessions. So jobs that have time wait in another queue, which no worker
serves, and are moved from there, the most urgent first, when there is room.

Limits come before both: a job whose tenant or provider has a limit first passes through the queue of that
limit, where a tiny workflow hands it on. The limits are kept in the database, so a submitter need not know
them.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count as numbers, islice
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, error as dbos_error

from agent_core import AgentError
from agent_core.log import get_logger
from agent_durable import dbos_tables
from agent_durable.database import open_postgres, patiently
from agent_durable.dbos_tables import Progress, Rate
from agent_durable.jobs import Job, JobInfo, Outcome, QueueFull, Tries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

    from dbos import EnqueueOptions, WorkflowStatus
    from dbos._sys_db import SystemDatabase

    from agent_durable.engine import Perform
    from agent_durable.jobs import Bounds, Queue, Status

NAME = "keelwork"
VERSION = "1"
"""The version of the workflows here; versions of agents differ by capability."""

RUN, PASS_ON = "agent_run", "agent_pass_on"
SESSION = "session"
LIMITED = ("tenant:", "provider:")
_POLL_SECONDS = 0.2
_PAGE = 200
_CONNECTIONS = 20
_IDLE_SECONDS = 5  # how long a suspended process may keep the rows of its jobs locked
_LATER = "later:"
_MOST_STAGES = 3  # two limits, and the queue itself
_OPEN = ("ENQUEUED", "DELAYED", "PENDING")
_OVER = ("SUCCESS", "ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED", "CANCELLED")
_STATUS: dict[str, Status] = {
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "PENDING": "running",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
}
_LOOK_AT: dict[Status | None, list[str]] = {
    "waiting": list(_OPEN),
    "running": ["PENDING"],
    "suspended": ["SUCCESS"],
    "done": ["SUCCESS"],
    "failed": ["SUCCESS", "ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"],
    "cancelled": ["SUCCESS", "CANCELLED"],
}
"""Which of DBOS's statuses may stand for one of ours: how a run ended is in its output."""


class DbosEngine:
    """Jobs as workflows of DBOS.

    Args:
        url: Where DBOS keeps its tables, as SQLAlchemy writes addresses.
        limits: How many runs may begin in how many seconds, by "tenant:NAME" or "provider:NAME"; None lifts
            a limit. They apply to everyone from the moment when a worker with them begins to serve.
        bounds: How many jobs may wait, by the fields of `Bounds`; others stay as they are. They apply from
            then on as well.
    """

    def __init__(
        self,
        url: str,
        *,
        limits: Mapping[str, Rate | None] | None = None,
        bounds: Mapping[str, int] | None = None,
    ) -> None:
        _adopt_log()
        self._url = url
        self._limits = dict(limits or {})
        self._bounds = dict(bounds or {})
        self._dbos: Any = None
        self._client: DBOSClient | None = None
        self._pool: sa.Engine | None = None
        if url.startswith("postgresql"):
            self._pool = open_postgres(url, connections=_CONNECTIONS, idle_seconds=_IDLE_SECONDS)
            sa.event.listen(self._pool, "handle_error", _call_lost)
        self._serving = False

    # For those who submit and watch

    def submit(self, job: Job) -> str:
        options, arguments = _entry(job, self._stages(job))
        self._enqueue(options, *arguments)
        return job.run_id

    def jobs(self, *, status: Status | None = None, limit: int = 100) -> Sequence[JobInfo]:
        infos = (_info(one) for one in self._found(_LOOK_AT.get(status)))
        return self._with_progress(
            list(islice((info for info in infos if status in (None, info.status)), limit))
        )

    def job(self, run_id: str) -> JobInfo | None:
        found = self._stages_of(run_id)
        return self._with_progress([_info(found[0])])[0] if found else None

    def last_job(self, session_id: str) -> JobInfo | None:
        found = self._of_session(
            session_id, limit=_MOST_STAGES, sort_desc=True, whole=True
        )  # all stages of the last one, at most
        return next((_info(one) for one in found if not _is_passed(one)), None)

    def steps(self, run_id: str) -> Sequence[Outcome]:
        steps = patiently(self._open().list_workflow_steps)(run_id)
        return [Outcome.from_dict(step["output"]) for step in steps if isinstance(step["output"], dict)]

    def queue(self) -> Queue:
        return dbos_tables.queue(self._database(), RUN, PASS_ON)

    def bounds(self) -> Bounds:
        return dbos_tables.bounds(self._database())

    def check_room(self, tenant: str) -> None:
        bounds = self.bounds()
        total, theirs = dbos_tables.count_waiting(self._database(), RUN, PASS_ON, tenant)
        if total >= bounds.total:
            raise QueueFull("all runs", bounds.total, total)
        if tenant and theirs >= bounds.tenant:
            raise QueueFull(f"tenant:{tenant}", bounds.tenant, theirs)

    def cancel(self, run_id: str) -> bool:
        was_open = False
        while found := [one for one in self._stages_of(run_id) if one.status in _OPEN]:
            patiently(self._open().cancel_workflows)([one.workflow_id for one in found])
            was_open = True  # look again: it may have gone to its next stage since
        return was_open

    def cancelled(self, run_ids: Sequence[str]) -> list[str]:
        return dbos_tables.cancelled(self._database(), run_ids) if run_ids else []

    def forget(self, *, before: float) -> int:
        moment = datetime.fromtimestamp(before, UTC).isoformat()
        count = 0
        while found := self._list(
            name=[RUN, PASS_ON], status=list(_OVER), completed_before=moment, limit=_PAGE
        ):
            over = [one.workflow_id for one in found]
            patiently(self._open().delete_workflows)(over)
            dbos_tables.forget_losses(self._database(), over)
            count += sum(one.name == RUN for one in found)
        return count

    def at_work(self) -> set[str]:
        return dbos_tables.at_work(self._database(), [RUN, PASS_ON])

    def sessions_of(self, worker: str) -> Sequence[str]:
        found = self._list(name=RUN, executor_id=worker, status="PENDING")
        return [one.queue_partition_key for one in found if one.queue_partition_key]

    def open_runs(self, session_id: str) -> Sequence[str]:
        found = self._of_session(session_id, status=list(_OPEN))
        return sorted({_run_id(one) for one in found})

    def take_from(self, worker: str, *, lost: bool = False) -> Sequence[str]:
        found = self._list(executor_id=worker, status="PENDING")
        if lost:  # first: a process that dies here leaves jobs that are counted and still the dead worker's
            dbos_tables.add_losses(
                self._database(), [one.workflow_id for one in found if one.name == RUN], worker
            )
        # `resume_workflow` would revive what was cancelled just now, and forget how often it was tried.
        put_back = patiently(_system_of(self._open()).reenqueue_for_recovery)
        return [one.workflow_id for one in found if put_back(one.workflow_id, [worker], one.queue_name or "")]

    def tries(self, run_id: str) -> Tries:
        lost = dbos_tables.count_losses(self._database(), [run_id]).get(run_id, 0)
        return Tries(dbos_tables.attempts(self._database(), run_id), lost)

    def excuse(self, run_id: str, worker: str) -> None:
        dbos_tables.excuse(self._database(), run_id, worker)

    def begin(self, run_id: str, worker: str) -> None:
        dbos_tables.begin(self._database(), run_id, worker)

    # For workers

    def serve(self, perform: Perform, capabilities: Sequence[str], *, worker: str, concurrency: int) -> None:
        self._dbos = DBOS(config=_config(self._url, worker, self._pool))
        _register(perform)
        own = [_queue(one) for one in capabilities]
        DBOS.listen_queues([*own, *{**self.limits(), **self._limits}])
        DBOS.launch()
        self._serving = True
        for name in own:
            _add_queue(name, worker_concurrency=concurrency, partition_concurrency=1)
        for name, rate in self._limits.items():
            _add_queue(name, limiter=None if rate is None else {"limit": rate[0], "period": rate[1]})
        if self._bounds:
            dbos_tables.set_bounds(self._database(), self._bounds)

    def follow_limits(self) -> None:
        # Otherwise a job would wait for ever if its limit came with a worker that has stopped.
        # DBOS looks at the list again every second; its interface takes it only once.
        listening = self._dbos._listening_queues  # noqa: SLF001
        listening += sorted(set(self.limits()) - set(listening))

    def drop_queues(self, able: Collection[str]) -> int:
        kept = {_queue(one) for one in able}
        idle = [name for name in dbos_tables.idle_queues(self._database(), _queue("")) if name not in kept]
        for name in idle:
            patiently(self._open().delete_queue)(name)
        return len(idle)

    def limits(self) -> dict[str, Rate | None]:
        return dbos_tables.limits(self._database(), LIMITED)

    def later(self) -> Sequence[str]:
        return [name.removeprefix(_LATER) for name in dbos_tables.waiting_in(self._database(), _LATER)]

    def begin_later(self, capability: str, capacity: int) -> int:
        return dbos_tables.move(self._database(), _later(capability), _queue(capability), capacity)

    def stop(self, *, seconds: float = 0.0) -> None:
        if self._serving:
            DBOS.destroy(workflow_completion_timeout_sec=int(seconds), destroy_registry=True)
            self._serving = False
        if self._client is not None:
            self._client.destroy()
            self._client = None
        if self._pool is not None:
            self._pool.dispose()

    @patiently
    def _list(self, *, whole: bool = False, **query: Any) -> list[WorkflowStatus]:
        """Return workflows; their arguments and results only if *whole*."""
        return self._open().list_workflows(**query, load_input=whole, load_output=whole)

    def _of_session(self, session_id: str, **query: Any) -> list[WorkflowStatus]:
        """Return workflows of a session; on SQLite, DBOS cannot search by attributes."""
        if self._pool is not None:
            return self._list(attributes={SESSION: session_id}, **query)
        ids = dbos_tables.of_session(self._database(), SESSION, session_id)
        return self._list(workflow_ids=ids, **query) if ids else []

    @patiently
    def _enqueue(self, options: EnqueueOptions, *arguments: Any) -> None:
        self._open().enqueue(options, *arguments)

    @patiently
    def _open(self) -> DBOSClient:
        if self._client is None:
            try:
                DBOS.migrate(self._url)  # whichever process comes first creates the tables
                client = DBOSClient(
                    system_database_url=self._url,
                    system_database_engine=self._pool,
                    serializer=DBOSPortableJSONSerializer(),
                    application_name=NAME,
                    retry_connection_errors=False,  # it would do so for ever without a word
                )
                dbos_tables.create(_system_of(client).engine)
                self._client = client
            except dbos_error.DBOSException as error:
                raise AgentError(
                    f"the queue of runs cannot be opened: {error}; check that the database is not another "
                    "application's"
                ) from error
        return self._client

    def _database(self) -> sa.Engine:
        return _system_of(self._open()).engine

    def _stages(self, job: Job) -> list[str]:
        """Return the queues that a job passes through: one for each of its limits, then its own."""
        named = (f"tenant:{job.tenant}", f"provider:{job.provider}")
        own = _later(job.capability) if job.priority else _queue(job.capability)
        limits = self.limits()
        return [*(name for name in named if limits.get(name) is not None), own]

    def _stages_of(self, run_id: str) -> list[WorkflowStatus]:
        """Return the stage that a job is in; the stages behind it are not returned."""
        ids = [run_id, *(f"{run_id}~{number}" for number in range(2, _MOST_STAGES + 1))]
        return [one for one in self._list(workflow_ids=ids, whole=True) if not _is_passed(one)]

    def _found(self, statuses: list[str] | None) -> Iterator[WorkflowStatus]:
        """Yield jobs, latest first, read page by page."""
        seen: set[str] = set()
        for offset in numbers(0, _PAGE):
            page = self._list(
                name=[RUN, PASS_ON], status=statuses, limit=_PAGE, offset=offset, sort_desc=True, whole=True
            )
            for one in page:
                if not _is_passed(one) and _run_id(one) not in seen:
                    seen.add(_run_id(one))
                    yield one
            if len(page) < _PAGE:
                return

    def _with_progress(self, infos: list[JobInfo]) -> list[JobInfo]:
        run_ids = [info.job.run_id for info in infos]
        known = dbos_tables.progress(self._database(), run_ids)
        lost = dbos_tables.count_losses(self._database(), run_ids)
        return [
            replace(
                info,
                losses=lost.get(info.job.run_id, 0),
                **known.get(info.job.run_id, Progress())._asdict(),
            )
            for info in infos
        ]


def _system_of(client: DBOSClient) -> SystemDatabase:
    """Return the client's own database: a second pool of connections would be a waste."""
    return client._sys_db  # noqa: SLF001 - there is no other way to it


def _call_lost(context: sa.engine.ExceptionContext) -> None:
    """Call a connection that could not be made lost: behind a socket DBOS would take that for a final error.

    DBOS looks for the words that the driver uses for a server on a port. Without this a run would fail for
    good because its database was restarted.
    """
    error = context.original_exception
    if context.connection is None and isinstance(context.sqlalchemy_exception, sa.exc.OperationalError):
        context.is_disconnect = context.is_disconnect or getattr(error, "sqlstate", None) is None


def _info(found: WorkflowStatus) -> JobInfo:
    job = Job.from_dict(_job_of(found))
    outcome = Outcome.from_dict(found.output) if isinstance(found.output, dict) else None
    if outcome is not None:
        status = outcome.status
    elif found.name == PASS_ON and found.status in _OPEN:
        status = "waiting"
    else:
        status = _STATUS.get(found.status, "done")
    return JobInfo(
        job=job,
        status=status,
        worker=found.executor_id or "",
        attempts=(found.recovery_attempts or 0) if found.name == RUN else 0,
        created=job.submitted or (found.created_at or 0) / 1000,
        updated=(found.updated_at or 0) / 1000,
        code=outcome.code if outcome is not None else "",
        text=outcome.text if outcome is not None else str(found.error or ""),
    )


def _queue(capability: str) -> str:
    return f"agent:{capability}"


def _later(capability: str) -> str:
    return f"{_LATER}{capability}"


def _add_queue(name: str, **limits: Any) -> None:
    DBOS.register_queue(name, polling_interval_sec=_POLL_SECONDS, on_conflict="always_update", **limits)


def _entry(job: Job, stages: list[str]) -> tuple[EnqueueOptions, list[Any]]:
    """Return how a job enters its first stage, and the arguments of the workflow there."""
    if len(stages) == 1:
        return _options(job, stages[0], RUN), [job.to_dict()]
    options = _options(job, stages[0], PASS_ON)
    options["workflow_id"] = f"{job.run_id}~{len(stages)}"
    return options, [job.to_dict(), stages[1:]]


def _options(job: Job, queue: str, workflow: str) -> EnqueueOptions:
    options: EnqueueOptions = {
        "workflow_name": workflow,
        "queue_name": queue,
        "workflow_id": job.run_id,
        "app_version": VERSION,
        "attributes": {SESSION: job.session_id, dbos_tables.TENANT: job.tenant},
    }
    if job.priority:  # for DBOS, no priority is the highest
        options["priority"] = job.priority
    if workflow == RUN:
        options["queue_partition_key"] = job.session_id
    return options


def _config(url: str, worker: str, pool: sa.Engine | None) -> Any:
    return {
        "name": NAME,
        "system_database_url": url,
        "system_database_engine": pool,
        "application_version": VERSION,
        "executor_id": worker,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "WARNING",
        "notification_listener_polling_interval_sec": _POLL_SECONDS,
    }


def _register(perform: Perform) -> None:
    @DBOS.workflow(name=RUN, max_recovery_attempts=None)  # our own worker stops such a run, and says why
    async def agent_run(data: dict[str, Any]) -> dict[str, Any]:
        outcome = await perform(Job.from_dict(data), _step)
        return outcome.to_dict()

    @DBOS.workflow(name=PASS_ON)
    async def agent_pass_on(data: dict[str, Any], stages: list[str]) -> None:
        options, arguments = _entry(Job.from_dict(data), stages)
        await DBOS.enqueue_workflow_with_options_async(options, *arguments)


async def _step(name: str, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    async def once() -> dict[str, Any]:
        return (await work()).to_dict()

    return Outcome.from_dict(await DBOS.run_step_async({"name": name}, once))


def _job_of(found: WorkflowStatus) -> dict[str, Any]:
    arguments = found.input["args"] if found.input else ()
    return dict(arguments[0]) if arguments else {}


def _run_id(found: WorkflowStatus) -> str:
    return found.workflow_id.partition("~")[0]


def _is_passed(found: WorkflowStatus) -> bool:
    """Say whether this is a stage that its job has already left."""
    return found.name == PASS_ON and found.status == "SUCCESS"


_CANCELLED = (dbos_error.DBOSAwaitedWorkflowCancelledError, dbos_error.DBOSWorkflowCancelledError)
_dbos = logging.getLogger("dbos")
_log = get_logger("durable")


class _Lines(logging.Handler):
    """Writes one line of our log for each record of DBOS: errors as warnings, since runs outlive them."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, _CANCELLED):
            return  # a user asked for it
        write = _log.warning if record.levelno >= logging.ERROR else _log.info
        write("dbos_says", text=record.getMessage(), error=None if error is None else str(error))


def _adopt_log() -> None:
    """Take over DBOS's log records: by itself it would write tracebacks to the terminal."""
    if not _dbos.handlers:  # DBOS writes to the terminal only if there are none
        _dbos.propagate = False
        _dbos.addHandler(_Lines())
