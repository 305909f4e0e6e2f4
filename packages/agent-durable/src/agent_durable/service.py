"""Submitting, watching and cancelling runs; and the one place that reads the address of a database."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from agent_app.agents import choose_agent
from agent_app.errors import SessionBusy, SessionHeld
from agent_core import AgentError, ArgumentError
from agent_core.log import get_logger
from agent_durable.jobs import (
    RUN_ID_DIGITS,
    SILENT_SECONDS,
    Job,
    agent_of,
    capability,
    provider_of,
    run_id_for,
)
from agent_plugin_kit.safe_files import make_private_folder
from agent_plugin_kit.secrets import SECRET_FIELDS, is_secret_value
from agent_runtime.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from agent_app import AgentApplication
    from agent_durable.dbos_engine import DbosEngine
    from agent_durable.engine import DurableEngine
    from agent_durable.jobs import JobInfo, Outcome, Queue, Status
    from agent_durable.workers import WorkerInfo, Workers

_TERMS = ("tenant", "priority", "tokens", "cost", "overrides", "person")
_BORDERS = frozenset({"input_queued", "run_start", "final", "error"})
_RECENT = 200
_LOOK_SECONDS = 0.02
_LAST_MOMENTS = 10.0
"""How many seconds a run may take to let its session go after its last event."""
_SUBMIT_SECONDS = 10.0
"""How long a process that dies while it submits a run keeps others from the session."""
_log = get_logger("durable")


class Submitted(NamedTuple):
    """A run that workers have: what follows event number *after* of its session tells of it."""

    run_id: str
    session_id: str
    after: int


class DurableRuns:
    """Submits runs of an application's sessions to workers, and watches them.

    Args:
        app: The application; its store must be the one that the workers use.
        engine: The durable engine.
        workers: The list of workers, needed to say which worker a retried run can go to, and why a run waits
            that none can begin.
    """

    def __init__(self, app: AgentApplication, engine: DurableEngine, workers: Workers | None = None) -> None:
        self._app = app
        self._engine = engine
        self._workers = workers

    def say(self, session_id: str, text: str, **job: Any) -> str:
        """Put a message into a session and have a worker answer it; return the id of the run.

        The message is stored when this returns. Follow the run with the application's `subscribe`, from its
        `last_event` before this call.

        Args:
            job: Fields of `Job`: tenant, priority, deadline, tokens, cost, overrides.

        Raises:
            QueueFull: If too many runs wait; then nothing was stored.
            AgentError: If the session's agent cannot be resolved; then nothing was stored either.
        """
        new = self._job(session_id, _new_id(), **job)
        self._engine.check_room(new.tenant)
        waiting = self._app.enqueue(session_id, text, "queue")
        return self._engine.submit(replace(new, run_id=run_id_for(session_id, waiting.seq)))

    def submit(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        limits: Mapping[str, Any] | None = None,
        take_over: bool = False,
        key: str | None = None,
        **job: Any,
    ) -> Submitted:
        """Do what `say` does for a front end that streams the answer; without a text do what `go_on` does.

        Args:
            limits: The run's `timeout`, `token_budget` and `cost_budget`.
            take_over: Take the session from another process that has it.
            key: A name for this request: asked again under it, it is the same run.
            job: Fields of `Job`.

        Raises:
            SessionBusy, SessionHeld: If the session is running, or a chat has it.
            QueueFull: If too many runs wait; then nothing was stored.
        """
        before = self._app.input_under(session_id, key) if key is not None else None
        if before is not None:
            return self._submitted(session_id, before["input"], before["seq"] - 1, limits, job)
        run_id = None if key is None else run_id_for(session_id, key)
        if run_id is not None and self._engine.job(run_id) is not None:  # it went on with what was queued
            return Submitted(run_id, session_id, self._app.last_event(session_id))
        with self._alone(session_id, take_over=take_over):
            after = self._app.last_event(session_id)
            if not text and not attachments:
                run_id = self.go_on(session_id, run_id=run_id, **_terms(limits), **job)
                return Submitted(run_id, session_id, after)
            self._engine.check_room(self._job(session_id, _new_id(), **job).tenant)
            waiting = self._app.enqueue(session_id, text, "queue", attachments=attachments, key=key)
            return self._submitted(session_id, waiting.seq, after, limits, job)

    def go_on_after(self, approval_id: str, session_id: str) -> str:
        """Have a worker continue after a decision that is stored; return the id of the run."""
        return self._engine.submit(self._like_last(session_id, approval_id))

    def go_on(self, session_id: str, *, run_id: str | None = None, **job: Any) -> str:
        """Have a worker continue a session that has messages or decisions waiting; return the id of the run.

        Raises:
            QueueFull: If too many runs wait and this one is not among them.
        """
        new = self._job(session_id, run_id or _new_id(), **job)
        if run_id is None or self.job(run_id) is None:
            self._engine.check_room(new.tenant)
        return self._engine.submit(new)

    def decide(self, approval_id: str, decision: Any, **job: Any) -> str:
        """Decide an approval that a run waits for and have a worker continue; return the id of the new run.

        It has the tenant, priority, budget and overrides of the run that asked. It has a deadline only if you
        pass one, since a decision can take any time.

        Raises:
            QueueFull: If too many runs wait; then nothing was decided.
        """
        self._engine.check_room("")
        approval = self._app.decide(approval_id, decision)
        new = self._like_last(approval.session_id, approval.id, **job)
        return self._engine.submit(new)  # even if its tenant's queue is full: the decision is stored

    def retry(self, run: JobInfo) -> str:
        """Retry a run that is over, from where it stopped; return the id of the new one.

        It goes to the version of the agent that would get a new run of this session, or else to one that some
        worker has. A deadline is as far away as it was when the run was submitted.

        Raises:
            QueueFull: If too many runs wait.
            SessionNotFound: If its session was deleted.
        """
        job, now = run.job, time.time()
        self._engine.check_room(job.tenant)
        again = replace(
            job,
            run_id=_new_id(),
            capability=self._served(job.session_id, job.capability),
            deadline=None if job.deadline is None else now + max(0.0, job.deadline - job.submitted),
            submitted=now,
        )
        return self._engine.submit(again)

    def jobs(self, *, status: Status | None = None, limit: int = 100) -> Sequence[JobInfo]:
        """Return runs, latest first."""
        return self._with_obstacles(self._engine.jobs(status=status, limit=limit))

    def job(self, run_id: str) -> JobInfo | None:
        """Return one run, or None if no run has that id."""
        found = self._engine.job(run_id)
        return None if found is None else self._with_obstacles([found])[0]

    def steps(self, run_id: str) -> Sequence[Outcome]:
        """Return the outcomes of a run's steps, in order."""
        return self._engine.steps(run_id)

    def cancel(self, run_id: str) -> bool:
        """Stop a run, wherever it is; False if it is over.

        A run that no worker has begun gets its end in the session's log here; what was said stays queued.
        """
        before = self._engine.job(run_id)
        was_open = self._engine.cancel(run_id)
        if was_open and before is not None and before.status == "waiting" and not before.attempts:
            error = {"type": "RunCancelled", "code": "cancelled", "message": "cancelled before it began"}
            self._app.store.append_events(before.job.session_id, [{"type": "error", "error": error}])
        return was_open

    def cancel_session(self, session_id: str) -> list[str]:
        """Stop all runs of a session, wherever they are, and return their ids."""
        return [run_id for run_id in self.open_runs(session_id) if self.cancel(run_id)]

    def open_runs(self, session_id: str) -> Sequence[str]:
        """Return the ids of the runs of a session that wait for a worker, or that one executes."""
        return self._engine.open_runs(session_id)

    def queue(self) -> Queue:
        """Return how many runs wait, and how long the oldest has waited."""
        return self._engine.queue()

    def go_on_with_forgotten(self, *, seconds: float) -> list[str]:
        """Submit runs for messages and decisions that were stored and never submitted; return the runs.

        This happens when a process dies between the two. Runs that were submitted are not submitted again.

        Args:
            seconds: How long messages must have waited.
        """
        runs = []
        for session_id, what in self._forgotten(seconds):
            try:
                if self._engine.open_runs(session_id) or self.job(run_id_for(session_id, what)) is not None:
                    continue
                new = self._like_last(session_id, what)
                self._engine.check_room(new.tenant)
                runs.append(self._engine.submit(new))
            except AgentError as error:  # another worker may know its agent, or the queue is full now
                _log.info("input_left_waiting", session=session_id, error=str(error))
        return runs

    def workers(self) -> int:
        """Return how many workers take runs now."""
        return len(self._at_work())

    def _submitted(
        self, session_id: str, seq: int, after: int, limits: Mapping[str, Any] | None, job: Mapping[str, Any]
    ) -> Submitted:
        new = self._job(session_id, run_id_for(session_id, seq), **_terms(limits), **job)
        return Submitted(self._engine.submit(new), session_id, after)

    @contextmanager
    def _alone(self, session_id: str, *, take_over: bool) -> Iterator[None]:
        """Have a free session for as long as it takes to submit a run.

        Two requests of the same instant both find it free; the lease lets one of them through.

        Raises:
            SessionBusy, SessionHeld: If the session is in use, or another request was faster.
        """
        self._wait_until_free(session_id, take_over=take_over)
        store = self._app.store
        lease = store.acquire(session_id, f"a request for {_new_id()}", seconds=_SUBMIT_SECONDS)
        try:
            if self._engine.open_runs(session_id):
                raise SessionBusy(session_id)
            yield
        finally:
            store.release(lease)

    def _wait_until_free(self, session_id: str, *, take_over: bool) -> None:
        """Wait for the last moments of a run whose end is in the log already.

        Raises:
            SessionBusy, SessionHeld: If its end is not there: then the session is in use.
        """
        until = SYSTEM_CLOCK.now() + _LAST_MOMENTS
        while True:
            runs, holder = self._engine.open_runs(session_id), self._app.store.holder(session_id)
            if holder is not None and take_over and not runs:
                self._app.store.release(
                    self._app.store.acquire(session_id, "a server", seconds=1.0, take_over=True)
                )
                return
            if not runs and holder is None:
                return
            if SYSTEM_CLOCK.now() > until or not self._has_ended(session_id):
                if holder is not None and not runs:
                    raise SessionHeld(session_id, holder)
                raise SessionBusy(session_id)
            time.sleep(_LOOK_SECONDS)

    def _has_ended(self, session_id: str) -> bool:
        """Say whether the last that the log has of a run is its end."""
        recent = self._app.events(session_id, max(0, self._app.last_event(session_id) - _RECENT))
        borders = [event["type"] for event in recent if event["type"] in _BORDERS]
        return bool(borders) and borders[-1] in ("final", "error")

    def _forgotten(self, seconds: float) -> Iterator[tuple[str, object]]:
        """Yield what waits in sessions without a writer: the last message of each, and decisions."""
        yield from self._app.store.forgotten_inputs(seconds=seconds)
        for approval in self._app.store.forgotten_decisions():
            last = self._engine.last_job(approval.session_id)
            # Without a suspended run the decision belongs to a chat, where a person continues.
            if last is not None and last.status == "suspended":
                yield approval.session_id, approval.id

    def _like_last(self, session_id: str, what: object, **job: Any) -> Job:
        """Return the job that answers something in a session, with the terms of the previous run."""
        last = self._engine.last_job(session_id)
        terms = {name: getattr(last.job, name) for name in _TERMS} if last is not None else {}
        return self._job(session_id, run_id_for(session_id, what), **{**terms, **job})

    def _job(self, session_id: str, run_id: str, **job: Any) -> Job:
        agent_id = self._agent_of(session_id)
        _check_no_secret(job.get("overrides") or {})
        return Job(
            run_id=run_id,
            session_id=session_id,
            capability=capability(self._app, agent_id),
            provider=provider_of(self._app, agent_id),
            submitted=time.time(),
            **job,
        )

    def _served(self, session_id: str, before: str) -> str:
        """Return the capability with which a session's run can continue now.

        It is this application's own, the previous run's, or that of the newest worker with the agent: the
        first of these that some worker has. If no worker has any, it is this application's own.
        """
        agent_id = self._agent_of(session_id)
        try:
            own = capability(self._app, agent_id)
        except AgentError:
            own = before
        served = [one for worker in reversed(self._at_work()) for one in worker.capabilities]
        other = [one for one in served if agent_of(one) == agent_id]
        return next((one for one in (own, before, *other) if one in served), own)

    def _at_work(self) -> list[WorkerInfo]:
        """Return the workers that take runs, oldest first."""
        known = self._workers.all() if self._workers is not None else []
        return [one for one in known if one.age <= SILENT_SECONDS and not one.draining]

    def _with_obstacles(self, infos: Sequence[JobInfo]) -> list[JobInfo]:
        if self._workers is None or not any(info.status == "waiting" for info in infos):
            return list(infos)
        served = {capability for worker in self._at_work() for capability in worker.capabilities}
        return [
            replace(info, obstacle=_obstacle(info.job.capability, served))
            if info.status == "waiting"
            else info
            for info in infos
        ]

    def _agent_of(self, session_id: str) -> str:
        chosen = self._app.store.info(session_id).agent_id or choose_agent(self._app.config, None)
        if chosen is None:
            raise ArgumentError(f"session {session_id!r} has no agent: set one with switch_agent")
        return chosen


def _terms(limits: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the limits of a request as fields of `Job`."""
    given = {name: value for name, value in (limits or {}).items() if value is not None}
    terms: dict[str, Any] = {}
    if "timeout" in given:
        terms["deadline"] = time.time() + given["timeout"]
    if "token_budget" in given:
        terms["tokens"] = given["token_budget"]
    if "cost_budget" in given:
        terms["cost"] = given["cost_budget"]
    return terms


def _obstacle(needed: str, served: Collection[str]) -> str:
    """Return why no worker can begin a run that needs a capability; empty if one can."""
    if needed in served:
        return ""
    if not served:
        return f"no worker has {needed}: none is at work"
    others = sorted(one for one in served if agent_of(one) == agent_of(needed))
    if others:
        return f"no worker has {needed}: those at work have {', '.join(others)}, another version of the agent"
    return f"no worker has {needed}: those at work have {', '.join(sorted(served))}"


def _new_id() -> str:
    return f"run-{uuid4().hex[:RUN_ID_DIGITS]}"


def open_engine(
    url: str,
    *,
    limits: Mapping[str, tuple[int, float] | None] | None = None,
    bounds: Mapping[str, int] | None = None,
) -> tuple[DbosEngine, Workers]:
    """Return the engine and the list of workers that belong to a store at *url*.

    The database is contacted at first use; if it is away then, it is waited for.

    Args:
        limits: The limits that a worker sets: how many runs of "tenant:NAME" or "provider:NAME" may begin in
            how many seconds; None lifts one. A process that only submits runs needs none.
        bounds: The bounds that a worker sets: how many runs may wait, by the fields of `Bounds`.

    Raises:
        ArgumentError: If the address cannot be shared by processes, or DBOS is not installed.
    """
    try:
        from agent_durable.dbos_engine import DbosEngine
        from agent_durable.workers import Workers
    except ImportError as error:
        raise ArgumentError("durable runs need DBOS: pip install 'keelwork-durable[dbos]'") from error
    address = _address(url)
    return DbosEngine(address, limits=limits, bounds=bounds), Workers(_workers_address(address))


def _check_no_secret(overrides: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` if settings for a run hold a key: they are stored, listed and sent to workers."""
    for name, value in overrides.items():
        if isinstance(value, Mapping):
            _check_no_secret(value)
        elif isinstance(value, str) and value:
            field = name.lower().replace("-", "_")
            if field in SECRET_FIELDS or is_secret_value(value):
                raise ArgumentError(
                    f"the override {name!r} is a secret: keys belong to the workers' settings"
                )


def _address(url: str) -> str:
    """Return where DBOS keeps its tables: in the same PostgreSQL database, or in a file next to SQLite's."""
    if url.startswith(("postgresql://", "postgres://")):
        return f"postgresql+psycopg://{url.partition('://')[2]}"
    if url.startswith("sqlite:///"):
        address = f"{url}.runs"
        _make_private(Path(address.removeprefix("sqlite:///")))
        return address
    raise ArgumentError(f"durable runs need postgresql://… or sqlite:///FILE, not {url.partition(':')[0]}:")


def _workers_address(address: str) -> str:
    if address.startswith("postgresql"):
        return address
    _make_private(Path(f"{address}.workers".removeprefix("sqlite:///")))
    return f"{address}.workers"


def _make_private(file: Path) -> None:
    """Make a database that only we may read, before anybody else makes it: it has prompts and settings."""
    make_private_folder(file.parent)
    file.touch(mode=0o600)
    file.chmod(0o600)
