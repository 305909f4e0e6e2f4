"""DBOS as the durable engine: workflows, queues and steps in PostgreSQL, or in SQLite for one machine.

Each capability has a queue of its own, in which a session is a partition: of one session, one run goes on
at a time. Limits stand before it: a job whose tenant or provider has one passes through that one's queue
first, where a tiny workflow hands it on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, error as dbos_error

from agent_core import AgentError
from agent_core.log import get_logger
from agent_durable.jobs import Job, JobInfo, Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from dbos import EnqueueOptions, WorkflowStatus

    from agent_durable.engine import Perform
    from agent_durable.jobs import Status

NAME = "agent-platform"
VERSION = "1"
"""The version of the workflows here. What the agents are is told apart by capability, not by this."""

RUN, PASS_ON = "agent_run", "agent_pass_on"
_POLL_SECONDS = 0.2
_STATUS: dict[str, Status] = {
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "PENDING": "running",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
}
_log = get_logger("durable")


class DbosEngine:
    """Jobs as workflows of DBOS.

    Args:
        url: Where DBOS keeps its tables, as SQLAlchemy writes addresses.
        limits: How many runs may begin in how many seconds, by "tenant:NAME" or "provider:NAME".
    """

    def __init__(self, url: str, *, limits: Mapping[str, tuple[int, float]] | None = None) -> None:
        self._url = url
        self._limits = dict(limits or {})
        self._client: DBOSClient | None = None
        self._serving = False

    # For those who submit and watch

    def submit(self, job: Job) -> str:
        """Put a job into the queue and return its run id; the same id again changes nothing."""
        stages = self._stages(job)
        options = _options(job, stages[0], PASS_ON if len(stages) > 1 else RUN)
        if len(stages) > 1:
            self._open().enqueue({**options, "workflow_id": f"{job.run_id}~0"}, job.to_dict(), stages[1:])
        else:
            self._open().enqueue(options, job.to_dict())
        return job.run_id

    def jobs(self, *, status: Status | None = None, limit: int = 100) -> Sequence[JobInfo]:
        """Return jobs, the latest first."""
        found = self._open().list_workflows(name=[RUN, PASS_ON], limit=limit * 2, sort_desc=True)
        infos = [self._info(one) for one in _without_passed(found)]
        return [info for info in infos if status is None or info.status == status][:limit]

    def job(self, run_id: str) -> JobInfo | None:
        """Return one job, or None if there is none of that id."""
        found = self._open().list_workflows(workflow_ids=[run_id]) or self._open().list_workflows(
            workflow_id_prefix=f"{run_id}~", sort_desc=True, limit=1
        )
        return self._info(found[0]) if found else None

    def steps(self, run_id: str) -> Sequence[Outcome]:
        """Return what the steps of a job came to, in order."""
        steps = self._open().list_workflow_steps(run_id)
        return [Outcome.from_dict(step["output"]) for step in steps if isinstance(step["output"], dict)]

    def cancel(self, run_id: str) -> bool:
        """Stop a job, wherever it runs; False if it is over."""
        info = self.job(run_id)
        if info is None or info.status not in ("waiting", "running"):
            return False
        for one in self._open().list_workflows(workflow_id_prefix=run_id, status=["ENQUEUED", "PENDING"]):
            self._open().cancel_workflow(one.workflow_id)
        return True

    def cancelled(self, run_ids: Sequence[str]) -> list[str]:
        """Return which of the jobs were cancelled."""
        if not run_ids:
            return []
        found = self._open().list_workflows(workflow_ids=list(run_ids), status="CANCELLED", load_input=False)
        return [one.workflow_id for one in found]

    def take_from(self, worker: str) -> Sequence[str]:
        """Put the jobs of a worker that has died back into the queue, and return their run ids."""
        taken = self._open().list_workflows(executor_id=worker, status="PENDING", load_input=False)
        for one in taken:
            self._open().resume_workflow(one.workflow_id, queue_name=one.queue_name)
        return [one.workflow_id for one in taken]

    # For workers

    def serve(self, perform: Perform, capabilities: Sequence[str], *, worker: str, concurrency: int) -> None:
        """Begin to take jobs from the queue, those only that are within the capabilities; returns at once."""
        DBOS(config=_config(self._url, worker))
        _register(perform)
        queues = [*(_queue(one) for one in capabilities), *self._limits]
        DBOS.listen_queues(queues)
        DBOS.launch()
        self._serving = True
        for name in capabilities:
            DBOS.register_queue(
                _queue(name),
                worker_concurrency=concurrency,
                partition_concurrency=1,
                polling_interval_sec=_POLL_SECONDS,
                on_conflict="always_update",
            )
        for name, (count, seconds) in self._limits.items():
            DBOS.register_queue(
                name,
                limiter={"limit": count, "period": seconds},
                polling_interval_sec=_POLL_SECONDS,
                on_conflict="always_update",
            )

    def stop(self, *, seconds: float = 0.0) -> None:
        """Take no more jobs, give those under way so much time, and let go."""
        if self._serving:
            DBOS.destroy(workflow_completion_timeout_sec=int(seconds), destroy_registry=True)
            self._serving = False
        if self._client is not None:
            self._client.destroy()
            self._client = None

    def _open(self) -> DBOSClient:
        if self._client is None:
            try:
                self._client = DBOSClient(
                    system_database_url=self._url,
                    serializer=DBOSPortableJSONSerializer(),
                    application_name=NAME,
                )
            except dbos_error.DBOSException as error:
                raise AgentError(
                    f"the queue of runs cannot be opened: {error}; start a worker first"
                ) from error
        return self._client

    def _stages(self, job: Job) -> list[str]:
        """Return the queues that a job passes through: one for each limit that it is under, then its own."""
        named = (f"tenant:{job.tenant}", f"provider:{job.provider}")
        return [*(name for name in named if name in self._limits), _queue(job.capability)]

    def _info(self, found: WorkflowStatus) -> JobInfo:
        job = Job.from_dict(_job_of(found))
        outcome = Outcome.from_dict(found.output) if isinstance(found.output, dict) else None
        if found.name == PASS_ON and found.status == "SUCCESS":
            status: Status = "waiting"
        else:
            status = outcome.status if outcome is not None else _STATUS.get(found.status, "done")
        return JobInfo(
            job=job,
            status=status,
            worker=found.executor_id or "",
            attempts=found.recovery_attempts or 0,
            created=(found.created_at or 0) / 1000,
            updated=(found.updated_at or 0) / 1000,
            text=outcome.text if outcome is not None else str(found.error or ""),
        )


def _queue(capability: str) -> str:
    return f"agent:{capability}"


def _options(job: Job, queue: str, workflow: str) -> EnqueueOptions:
    options: EnqueueOptions = {
        "workflow_name": workflow,
        "queue_name": queue,
        "workflow_id": job.run_id,
        "app_version": VERSION,
    }
    if job.priority:  # none is the highest there is
        options["priority"] = job.priority
    if workflow == RUN:
        options["queue_partition_key"] = job.session_id
    return options


def _config(url: str, worker: str) -> Any:
    return {
        "name": NAME,
        "system_database_url": url,
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
        job = Job.from_dict(data)
        if len(stages) > 1:
            options = _options(job, stages[0], PASS_ON)
            number = len(stages)
            await DBOS.enqueue_workflow_with_options_async(
                {**options, "workflow_id": f"{job.run_id}~{number}"}, data, stages[1:]
            )
        else:
            await DBOS.enqueue_workflow_with_options_async(_options(job, stages[0], RUN), data)


async def _step(name: str, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    async def once() -> dict[str, Any]:
        return (await work()).to_dict()

    return Outcome.from_dict(await DBOS.run_step_async({"name": name}, once))


def _job_of(found: WorkflowStatus) -> dict[str, Any]:
    arguments = found.input["args"] if found.input else ()
    return dict(arguments[0]) if arguments else {}


def _without_passed(found: Sequence[WorkflowStatus]) -> list[WorkflowStatus]:
    """Leave out the stages of jobs that have come further."""
    kept: dict[str, WorkflowStatus] = {}
    for one in found:
        kept.setdefault(one.workflow_id.partition("~")[0], one)
    return list(kept.values())
