"""A process that takes runs from the queue, and finishes those of workers that died."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_app.errors import SessionNotFound, StoreUnavailable
from agent_app.store.leases import this_process
from agent_core.log import get_logger
from agent_durable import jobs
from agent_durable.metrics import Metrics
from agent_durable.run import Performance
from agent_durable.service import DurableRuns
from agent_runtime.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from agent_app import AgentApplication
    from agent_durable.engine import DurableEngine, Step
    from agent_durable.jobs import Job, Outcome, Tries
    from agent_durable.run import OwnSettings
    from agent_durable.workers import WorkerInfo, Workers

BEAT_SECONDS = 1.0
SILENT_SECONDS = jobs.SILENT_SECONDS
WATCH_SECONDS = 0.3
INTERRUPT_SECONDS = 1.0
LIMITS_SECONDS = 5.0
SUBMIT_SECONDS = 60.0
CLEAN_UP_SECONDS = 3600.0
REPORT_SECONDS = 60.0
"""How often a problem that lasts is logged, such as a database that is away."""

RECOVERIES = 3
"""How many workers may die with a run before it is stopped: one more is not an accident."""

KEEP_DAYS = 30.0
"""How long finished runs are listed. Their messages and results stay in their sessions."""

FORGOTTEN_SECONDS = 30.0
"""How long a message may wait without a run before one is submitted for it."""

_log = get_logger("durable")


class Worker:
    """Takes runs of one application from the queue that it shares with other workers.

    Args:
        app: The application.
        engine: The durable engine.
        workers: The list of workers.
        concurrency: How many runs it takes at a time.
        keep_days: After how many days finished runs are deleted, whoever submitted them.
        recoveries: How many workers may die with a run before it is stopped. Ordinary stops do not count.
        given_up: Called when others took this worker's runs because it was silent for too long. It must end
            the process: whatever this one still does, another does as well.
        own_settings: Returns settings for the requests of a run that are stored nowhere, such as a key of the
            person who asked for it. It may block.
    """

    def __init__(
        self,
        app: AgentApplication,
        engine: DurableEngine,
        workers: Workers,
        *,
        concurrency: int = 10,
        keep_days: float = KEEP_DAYS,
        recoveries: int = RECOVERIES,
        given_up: Callable[[], None],
        own_settings: OwnSettings = lambda _job: {},
    ) -> None:
        self.id = f"worker-{uuid4().hex[:12]}"
        self._app = app
        self._engine = engine
        self._workers = workers
        self._concurrency = concurrency
        self._keep_seconds = keep_days * 24 * 3600
        self._recoveries = recoveries
        self._given_up = given_up
        self._own_settings = own_settings
        self._last_tries = asyncio.Lock()
        self._running: dict[str, Performance] = {}
        self._last_beat = SYSTEM_CLOCK.now()
        self._metrics = Metrics(engine.queue, lambda: len(workers.all()))
        self._stopped = threading.Event()
        self._draining = threading.Event()
        self._leaves = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of its current runs."""
        return tuple(self._running)

    def start(self) -> None:
        """Begin to take runs; returns at once."""
        able = list(jobs.capabilities(self._app).values())
        self._workers.add(self.id, this_process(), self._concurrency, able)
        self._engine.serve(self._perform, able, worker=self.id, concurrency=self._concurrency)
        for work, seconds in (
            (self._beat, BEAT_SECONDS),
            (self._watch, WATCH_SECONDS),
            (self._begin_later, WATCH_SECONDS),
            (self._interrupt, INTERRUPT_SECONDS),
            (self._engine.follow_limits, LIMITS_SECONDS),
            (self._submit_forgotten, SUBMIT_SECONDS),
            (self._clean_up, CLEAN_UP_SECONDS),
        ):
            thread = threading.Thread(target=self._repeat, args=(work, seconds), daemon=True)
            thread.start()
            self._threads.append(thread)
        _log.info("worker_started", worker=self.id, agents=able)

    def drain(self, *, seconds: float = 30.0) -> list[str]:
        """Finish the current steps, and hand over the runs that are not done; return their ids."""
        self._draining.set()
        self._workers.beat(self.id, draining=True)
        deadline = SYSTEM_CLOCK.now() + seconds
        left = list(self._running.values())
        for performance in left:
            performance.park()
        parked = [one for one in left if one.wait_parked(max(0.0, deadline - SYSTEM_CLOCK.now()))]
        self._stopped.set()
        # The engine cancels its tasks, which ends the remaining runs: those must not write that.
        for performance in parked:
            performance.give_back()
        self._engine.stop()
        for performance in left:
            performance.give_back()
        self._leaves.set()  # nothing runs here any more: that its row is gone is its own doing
        with self._workers.taking(self.id):
            return list(self._engine.take_from(self.id))

    async def _perform(self, job: Job, step: Step) -> Outcome:
        """Run a job to its end; called by the engine, also for a job that another worker began."""
        tries = await asyncio.to_thread(self._engine.tries, job.run_id)
        async with self._at_its_turn(job, tries):
            performance = Performance(
                self._app,
                job,
                self._check_place,
                self._is_doubtful,
                self._metrics,
                tries=tries,
                recoveries=self._recoveries,
                own_settings=self._own_settings,
            )
            self._running[job.run_id] = performance
            if self._draining.is_set():
                performance.park()
            try:
                outcome = await performance.perform(step)
            finally:
                self._running.pop(job.run_id, None)
        self._metrics.ended(job, outcome)
        return outcome

    @asynccontextmanager
    async def _at_its_turn(self, job: Job, tries: Tries) -> AsyncIterator[None]:
        """Hold back a run on its last attempt until no other such run is at work here.

        All runs of a worker lose it together, and one of them may be the cause. So before any is stopped,
        they are tried one after the other, and the innocent ones are not stopped with the cause.
        """
        if not 0 < tries.losses == self._recoveries:
            yield
            return
        if waits := self._last_tries.locked():
            await asyncio.to_thread(self._engine.excuse, job.run_id, self.id)
        async with self._last_tries:
            if waits:
                await asyncio.to_thread(self._engine.begin, job.run_id, self.id)
            yield

    def _check_place(self) -> None:
        """Renew this worker's row; end the process if others took its runs."""
        now = SYSTEM_CLOCK.now()
        if not self._workers.beat(self.id, draining=self._draining.is_set()) and not self._leaves.is_set():
            self._given_up()
        self._last_beat = now

    def _is_doubtful(self) -> bool:
        """Say whether this process was silent for so long that others may have its runs."""
        return SYSTEM_CLOCK.now() - self._last_beat > SILENT_SECONDS / 2

    def _beat(self) -> None:
        self._check_place()
        at_work = self._engine.at_work()  # before the list is read, so that a new worker is in both
        known = self._workers.all()
        for other in known:
            if other.id != self.id and other.age > SILENT_SECONDS:
                self._take_over(other)
        for unknown in at_work - {other.id for other in known}:
            # It was given up, and took a job before it noticed.
            _log.warning("worker_unknown", worker=unknown, runs=list(self._engine.take_from(unknown)))

    def _take_over(self, other: WorkerInfo) -> None:
        with self._workers.taking(other.id, silent=SILENT_SECONDS) as taken:
            if not taken:
                return
            for session_id in self._engine.sessions_of(other.id):
                self._free(session_id, other.name)
            # A worker that was asked to stop and killed before it was done is not a loss that a run caused.
            runs = self._engine.take_from(other.id, lost=not other.draining)
        _log.warning("worker_lost", worker=other.id, name=other.name, runs=list(runs))

    def _free(self, session_id: str, name: str) -> None:
        """Take a session from a lost worker, so that others need not wait until its lease ends."""
        store = self._app.store
        try:
            holder = store.holder(session_id)
            if holder is not None and holder.owner.endswith(f" of {name}"):
                store.release(store.acquire(session_id, self.id, seconds=1.0, take_over=True))
        except SessionNotFound:
            return  # it was deleted; its run will notice
        except StoreUnavailable as error:  # the lost worker may have it locked: then its lease must run out
            _log.info("session_not_freed", session=session_id, error=str(error))

    def _watch(self) -> None:
        """Stop the runs that were cancelled elsewhere."""
        for run_id in self._engine.cancelled(self.running):
            performance = self._running.get(run_id)
            if performance is not None:
                performance.cancel()

    def _interrupt(self) -> None:
        """Interrupt runs for messages that other processes left and that must not wait."""
        for performance in list(self._running.values()):
            performance.interrupt()

    def _submit_forgotten(self) -> None:
        """Submit runs for messages and decisions whose sender died before doing so."""
        DurableRuns(self._app, self._engine).go_on_with_forgotten(seconds=FORGOTTEN_SECONDS)

    def _clean_up(self) -> None:
        """Delete old runs and unused queues."""
        count = self._engine.forget(before=time.time() - self._keep_seconds)
        if count:
            _log.info("runs_forgotten", count=count)
        able = {capability for one in self._workers.all() for capability in one.capabilities}
        self._engine.drop_queues(able)

    def _begin_later(self) -> None:
        """Let runs with a lower priority begin if a worker has room for them now."""
        for capability in self._engine.later():
            able = [one for one in self._workers.all() if one.is_able(capability)]
            room = sum(one.concurrency for one in able if one.age <= SILENT_SECONDS)
            self._engine.begin_later(capability, room)

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        reported = -REPORT_SECONDS
        while not self._stopped.is_set():
            try:
                work()
            except Exception as error:  # the database may be away for a while
                if SYSTEM_CLOCK.now() - reported >= REPORT_SECONDS:
                    reported = SYSTEM_CLOCK.now()
                    _log.warning("worker_disturbed", worker=self.id, error=str(error))
            self._stopped.wait(seconds)
