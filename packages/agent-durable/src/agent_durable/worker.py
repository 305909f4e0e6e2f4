"""A process that takes runs from the queue, and brings to an end what others have left."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_app.errors import SessionNotFound, StoreUnavailable
from agent_app.store.leases import this_process
from agent_core.log import get_logger
from agent_durable.capability import capabilities
from agent_durable.metrics import Metrics
from agent_durable.performing import Performance
from agent_durable.service import DurableRuns
from agent_runtime.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app import AgentApplication
    from agent_durable.engine import DurableEngine, Step
    from agent_durable.jobs import Job, Outcome
    from agent_durable.workers import Workers

BEAT_SECONDS = 1.0
SILENT_SECONDS = 6.0
"""How long a worker may be silent before others take what it had."""

WATCH_SECONDS = 0.3
HEAR_SECONDS = 1.0
REMEMBER_SECONDS = 60.0
FORGET_SECONDS = 3600.0
KEEP_DAYS = 30.0
"""How long runs that are over can be looked at. What was said and done in them is in their sessions."""

FORGOTTEN_SECONDS = 30.0
"""How long a message may wait without a run before it counts as forgotten."""

_log = get_logger("durable")


class Worker:
    """Takes runs of one application from the queue that it shares with other workers.

    Args:
        app: The application.
        engine: The durable engine.
        workers: The list on which the worker stands.
        concurrency: How many runs it has at a time.
        keep_days: After how many days runs that are over are forgotten, whoever made them.
        given_up: Called when others have taken what this worker had, since it was silent for too long. It
            must end the process: whatever it still does, others do as well.
    """

    def __init__(
        self,
        app: AgentApplication,
        engine: DurableEngine,
        workers: Workers,
        *,
        concurrency: int = 10,
        keep_days: float = KEEP_DAYS,
        given_up: Callable[[], None],
    ) -> None:
        self.id = f"worker-{uuid4().hex[:12]}"
        self._app = app
        self._engine = engine
        self._workers = workers
        self._concurrency = concurrency
        self._keep_seconds = keep_days * 24 * 3600
        self._given_up = given_up
        self._running: dict[str, Performance] = {}
        self._heard_of = SYSTEM_CLOCK.now()
        self._metrics = Metrics(engine.queue, lambda: len(workers.all()))
        self._stopped = threading.Event()
        self._draining = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def running(self) -> tuple[str, ...]:
        """The runs that it has now."""
        return tuple(self._running)

    def start(self) -> None:
        """Begin to work; returns at once."""
        able = list(capabilities(self._app).values())
        self._workers.add(self.id, this_process(), self._concurrency, able)
        self._engine.serve(self._perform, able, worker=self.id, concurrency=self._concurrency)
        for work, seconds in (
            (self._beat, BEAT_SECONDS),
            (self._watch, WATCH_SECONDS),
            (self._begin_later, WATCH_SECONDS),
            (self._hear, HEAR_SECONDS),
            (self._remember, REMEMBER_SECONDS),
            (self._forget, FORGET_SECONDS),
        ):
            thread = threading.Thread(target=self._again, args=(work, seconds), daemon=True)
            thread.start()
            self._threads.append(thread)
        _log.info("worker_started", worker=self.id, agents=able)

    def drain(self, *, seconds: float = 30.0) -> list[str]:
        """Stop after the steps under way, and hand over what is not done; return those runs."""
        self._draining.set()
        self._workers.beat(self.id, draining=True)
        deadline = SYSTEM_CLOCK.now() + seconds
        left = list(self._running.values())
        for performance in left:
            performance.park()
        parked = [one for one in left if one.wait_parked(max(0.0, deadline - SYSTEM_CLOCK.now()))]
        self._stopped.set()
        # The engine ends its tasks, and a run that is left ends itself: it must not write that any more.
        for performance in parked:
            performance.give_back()
        self._engine.stop()
        for performance in left:
            performance.give_back()
        with self._workers.taking(self.id):
            return list(self._engine.take_from(self.id))

    async def _perform(self, job: Job, step: Step) -> Outcome:
        """Bring a job to its end; called by the engine, also for a job that another worker began."""
        performance = Performance(self._app, job, self._check_place, self._is_doubtful, self._metrics)
        self._running[job.run_id] = performance
        if self._draining.is_set():
            performance.park()
        try:
            outcome = await performance.perform(step)
        finally:
            self._running.pop(job.run_id, None)
        self._metrics.ended(job, outcome)
        return outcome

    def _check_place(self) -> None:
        """End the process if others have taken what it had; else they must have had another reason."""
        now = SYSTEM_CLOCK.now()
        if not self._workers.beat(self.id, draining=self._draining.is_set()):
            self._given_up()
        self._heard_of = now

    def _is_doubtful(self) -> bool:
        """Say whether this process was silent for so long that others may have what it has."""
        return SYSTEM_CLOCK.now() - self._heard_of > SILENT_SECONDS / 2

    def _beat(self) -> None:
        self._check_place()
        at_work = self._engine.at_work()  # before the list is read: whoever is at work stands on it by then
        known = self._workers.all()
        for other in known:
            if other.id != self.id and other.age > SILENT_SECONDS:
                self._take_over(other.id, other.name)
        for unknown in at_work - {other.id for other in known}:
            # It was given up, and has taken a job before it noticed.
            _log.warning("worker_unknown", worker=unknown, runs=list(self._engine.take_from(unknown)))

    def _take_over(self, worker_id: str, name: str) -> None:
        with self._workers.taking(worker_id, silent=SILENT_SECONDS) as taken:
            if not taken:
                return
            for session_id in self._engine.sessions_of(worker_id):
                self._free(session_id, name)
            runs = self._engine.take_from(worker_id)
        _log.warning("worker_lost", worker=worker_id, name=name, runs=list(runs))

    def _free(self, session_id: str, name: str) -> None:
        """Take a session from a worker that is lost, so that others need not wait until its lease ends."""
        store = self._app.store
        try:
            held = store.holder(session_id)
            if held is not None and held.owner.endswith(f" of {name}"):
                store.release(store.acquire(session_id, self.id, seconds=1.0, take_over=True))
        except SessionNotFound:
            return  # it was deleted, and its run will see that
        except StoreUnavailable as error:  # the lost one may have it locked; then others wait for its lease
            _log.info("session_not_freed", session=session_id, error=str(error))

    def _watch(self) -> None:
        """Stop the runs that were cancelled elsewhere."""
        for run_id in self._engine.cancelled(self.running):
            performance = self._running.get(run_id)
            if performance is not None:
                performance.cancel()

    def _hear(self) -> None:
        """Pass on the messages that were left elsewhere and shall interrupt a run."""
        for performance in list(self._running.values()):
            performance.interrupt()

    def _remember(self) -> None:
        """Have messages and decisions answered whose sender died before a run was submitted for them."""
        DurableRuns(self._app, self._engine).go_on_with_forgotten(seconds=FORGOTTEN_SECONDS)

    def _forget(self) -> None:
        """Keep the list of runs from growing without end."""
        count = self._engine.forget(before=time.time() - self._keep_seconds)
        if count:
            _log.info("runs_forgotten", count=count)

    def _begin_later(self) -> None:
        """Let runs begin that had time, if some worker could begin with them now."""
        for capability in self._engine.later():
            able = [one for one in self._workers.all() if one.is_able(capability)]
            there = [one.concurrency for one in able if one.age <= SILENT_SECONDS]
            self._engine.begin_later(capability, sum(there))

    def _again(self, work: Callable[[], None], seconds: float) -> None:
        while not self._stopped.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the database may be away for a while
                _log.warning("worker_disturbed", worker=self.id, error=str(error))
            self._stopped.wait(seconds)
