"""DBOS as the durable engine: workflows, queues and steps in PostgreSQL, or in SQLite for one machine.

Each capability has a queue of its own, in which a session is a partition: of one session, one run goes on
at a time. Such a queue knows no order between sessions. So jobs that have time wait in another one, which
nobody serves, and are moved from there, the most urgent first, when there is room.

Limits stand before both: a job whose tenant or provider has one passes through that one's queue
first, where a tiny workflow hands it on. Which limits there are stands in the database, so that whoever
submits a job need not know.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count as numbers, islice
from typing import TYPE_CHECKING, Any

from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, error as dbos_error

from agent_core import AgentError
from agent_durable import dbos_log, dbos_tables
from agent_durable.database import open_postgres, patiently
from agent_durable.dbos_tables import Progress, Rate
from agent_durable.jobs import Job, JobInfo, Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    import sqlalchemy as sa
    from dbos import EnqueueOptions, WorkflowStatus

    from agent_durable.engine import Perform
    from agent_durable.jobs import Queue, Status

NAME = "agent-platform"
VERSION = "1"
"""The version of the workflows here. What the agents are is told apart by capability, not by this."""

RUN, PASS_ON = "agent_run", "agent_pass_on"
SESSION = "session"
LIMITED = ("tenant:", "provider:")
_POLL_SECONDS = 0.2
_PAGE = 200
_CONNECTIONS = 20
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
"""Where DBOS's statuses must be looked at for ours: what a run came to is in its output."""


class DbosEngine:
    """Jobs as workflows of DBOS.

    Args:
        url: Where DBOS keeps its tables, as SQLAlchemy writes addresses.
        limits: How many runs may begin in how many seconds, by "tenant:NAME" or "provider:NAME"; None lifts
            a limit. They count for all from when somebody who has them begins to serve.
    """

    def __init__(self, url: str, *, limits: Mapping[str, Rate | None] | None = None) -> None:
        dbos_log.adopt()
        self._url = url
        self._limits = dict(limits or {})
        self._client: DBOSClient | None = None
        self._pool = open_postgres(url, connections=_CONNECTIONS) if url.startswith("postgresql") else None
        self._serving = False

    # For those who submit and watch

    def submit(self, job: Job) -> str:
        """Put a job into the queue and return its run id; the same id again changes nothing."""
        options, arguments = _entry(job, self._stages(job))
        self._enqueue(options, *arguments)
        return job.run_id

    def jobs(self, *, status: Status | None = None, limit: int = 100) -> Sequence[JobInfo]:
        """Return jobs, the latest first."""
        infos = (_info(one) for one in self._found(_LOOK_AT.get(status)))
        return self._with_progress(
            list(islice((info for info in infos if status in (None, info.status)), limit))
        )

    def job(self, run_id: str) -> JobInfo | None:
        """Return one job, or None if there is none of that id."""
        found = self._stages_of(run_id)
        return self._with_progress([_info(found[0])])[0] if found else None

    def last_job(self, session_id: str) -> JobInfo | None:
        """Return the job of a session that was submitted last, or None if there is none."""
        found = self._list(
            attributes={SESSION: session_id}, limit=_MOST_STAGES, sort_desc=True, whole=True
        )  # all stages of the last one, at most
        return next((_info(one) for one in found if not _is_passed(one)), None)

    def steps(self, run_id: str) -> Sequence[Outcome]:
        """Return what the steps of a job came to, in order."""
        steps = patiently(self._open().list_workflow_steps)(run_id)
        return [Outcome.from_dict(step["output"]) for step in steps if isinstance(step["output"], dict)]

    def queue(self) -> Queue:
        """Return how many jobs wait, and for how long."""
        return dbos_tables.queue(self._database(), RUN, PASS_ON)

    def cancel(self, run_id: str) -> bool:
        """Stop a job, wherever it runs; False if it is over."""
        was_open = False
        while found := [one for one in self._stages_of(run_id) if one.status in _OPEN]:
            patiently(self._open().cancel_workflows)([one.workflow_id for one in found])
            was_open = True  # and once more: it may have gone to its next stage meanwhile
        return was_open

    def cancelled(self, run_ids: Sequence[str]) -> list[str]:
        """Return which of the jobs were cancelled."""
        if not run_ids:
            return []
        found = self._list(workflow_ids=list(run_ids), status="CANCELLED")
        return [one.workflow_id for one in found]

    def forget(self, *, before: float) -> int:
        """Forget the jobs that were over at a moment, in seconds since 1970; return how many were."""
        moment = datetime.fromtimestamp(before, UTC).isoformat()
        count = 0
        while found := self._list(
            name=[RUN, PASS_ON], status=list(_OVER), completed_before=moment, limit=_PAGE
        ):
            patiently(self._open().delete_workflows)([one.workflow_id for one in found])
            count += sum(one.name == RUN for one in found)
        return count

    def at_work(self) -> set[str]:
        """Return the workers that have jobs, also those that nobody knows any more."""
        return dbos_tables.at_work(self._database(), [RUN, PASS_ON])

    def sessions_of(self, worker: str) -> Sequence[str]:
        """Return the sessions whose jobs a worker has."""
        found = self._list(name=RUN, executor_id=worker, status="PENDING")
        return [one.queue_partition_key for one in found if one.queue_partition_key]

    def open_runs(self, session_id: str) -> Sequence[str]:
        """Return the jobs of a session that are not over."""
        found = self._list(attributes={SESSION: session_id}, status=list(_OPEN))
        return sorted({_run_id(one) for one in found})

    def take_from(self, worker: str) -> Sequence[str]:
        """Put the jobs of a worker that has died back into the queue, and return their run ids."""
        found = self._list(executor_id=worker, status="PENDING")
        # `resume_workflow` would revive what was cancelled just now, and forget how often it was tried.
        put_back = patiently(self._open()._sys_db.reenqueue_for_recovery)  # noqa: SLF001
        return [one.workflow_id for one in found if put_back(one.workflow_id, [worker], one.queue_name or "")]

    # For workers

    def serve(self, perform: Perform, capabilities: Sequence[str], *, worker: str, concurrency: int) -> None:
        """Begin to take jobs from the queue, those only that are within the capabilities; returns at once."""
        DBOS(config=_config(self._url, worker, self._pool))
        _register(perform)
        own = [_queue(one) for one in capabilities]
        DBOS.listen_queues([*own, *{**self.limits(), **self._limits}])
        DBOS.launch()
        self._serving = True
        for name in own:
            _add_queue(name, worker_concurrency=concurrency, partition_concurrency=1)
        for name, rate in self._limits.items():
            _add_queue(name, limiter=None if rate is None else {"limit": rate[0], "period": rate[1]})

    def limits(self) -> dict[str, Rate | None]:
        """Return the limits that count, and those that were lifted, as None."""
        return dbos_tables.limits(self._database(), LIMITED)

    def later(self) -> Sequence[str]:
        """Return the capabilities of which jobs wait until there is room for them, since they have time."""
        return [name.removeprefix(_LATER) for name in dbos_tables.waiting_in(self._database(), _LATER)]

    def begin_later(self, capability: str, capacity: int) -> int:
        """Let the most urgent of such jobs begin, as many as there is room for, and return how many."""
        return dbos_tables.move(self._database(), _later(capability), _queue(capability), capacity)

    def stop(self, *, seconds: float = 0.0) -> None:
        """Take no more jobs, give those under way so much time, and let go."""
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
        """Return workflows; what they were given and what they returned only if they are wanted whole."""
        return self._open().list_workflows(**query, load_input=whole, load_output=whole)

    @patiently
    def _enqueue(self, options: EnqueueOptions, *arguments: Any) -> None:
        self._open().enqueue(options, *arguments)

    @patiently
    def _open(self) -> DBOSClient:
        if self._client is None:
            try:
                DBOS.migrate(self._url)  # whoever comes first, a worker or not, makes the tables
                self._client = DBOSClient(
                    system_database_url=self._url,
                    system_database_engine=self._pool,
                    serializer=DBOSPortableJSONSerializer(),
                    application_name=NAME,
                    retry_connection_errors=False,  # without end, and whoever asks could not be told
                )
            except dbos_error.DBOSException as error:
                raise AgentError(
                    f"the queue of runs cannot be opened: {error}; is the database another application's?"
                ) from error
        return self._client

    def _database(self) -> sa.Engine:
        return self._open()._sys_db.engine  # noqa: SLF001 - one pool of connections is enough

    def _stages(self, job: Job) -> list[str]:
        """Return the queues that a job passes through: one for each limit that it is under, then its own."""
        named = (f"tenant:{job.tenant}", f"provider:{job.provider}")
        own = _later(job.capability) if job.priority else _queue(job.capability)
        limits = self.limits()
        return [*(name for name in named if limits.get(name) is not None), own]

    def _stages_of(self, run_id: str) -> list[WorkflowStatus]:
        """Return where a job is; nothing of the stages that it has passed."""
        ids = [run_id, *(f"{run_id}~{number}" for number in range(2, _MOST_STAGES + 1))]
        return [one for one in self._list(workflow_ids=ids, whole=True) if not _is_passed(one)]

    def _found(self, statuses: list[str] | None) -> Iterator[WorkflowStatus]:
        """Yield jobs, the latest first, read page by page."""
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
        known = dbos_tables.progress(self._database(), [info.job.run_id for info in infos])
        return [replace(info, **known.get(info.job.run_id, Progress())._asdict()) for info in infos]


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
    """Return how a job is put into the first of its stages, and what the workflow there is given."""
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
        "attributes": {SESSION: job.session_id},
    }
    if job.priority:  # none is the highest there is
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
    @DBOS.workflow(name=RUN)
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
    """Say whether this is only a stage of a job that has come further."""
    return found.name == PASS_ON and found.status == "SUCCESS"
