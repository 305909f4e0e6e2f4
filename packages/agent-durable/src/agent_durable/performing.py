"""A job as a workflow: one durable step after the other, until the run is over.

A step that an engine remembers is not made again. So after a crash the steps before are only looked up, and
the next one finds in the store what they had come to.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from agent_app.errors import SessionBusy, SessionHeld, StoreUnavailable
from agent_core.log import get_logger
from agent_durable.jobs import Outcome
from agent_durable.units import Disturbed, LostSession, SteppedRun
from agent_runtime.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app import AgentApplication
    from agent_durable.engine import Step
    from agent_durable.jobs import Job
    from agent_durable.metrics import Metrics

RETRY_SECONDS = 0.5
MOST_STEPS = 10_000
_log = get_logger("durable")


class Performance:
    """Brings one job to its end.

    Args:
        app: The application, with the store that all workers share.
        job: The job.
        check_place: Ends the process if others have taken what this worker had.
        is_doubtful: Says, without waiting, whether that must be looked at before anything else is done.
        metrics: Where what happens is counted.
    """

    def __init__(
        self,
        app: AgentApplication,
        job: Job,
        check_place: Callable[[], None],
        is_doubtful: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._job = job
        self._check_place = check_place
        self._is_doubtful = is_doubtful
        self._metrics = metrics
        self._run: SteppedRun | None = None
        self._heard: set[int] = set()
        self._shall_park = threading.Event()
        self._parked = threading.Event()

    async def perform(self, step: Step) -> Outcome:
        """Make steps until the run is over; return how it ended."""
        outcome = Outcome()
        self._metrics.started(self._job)
        try:
            for number in range(MOST_STEPS):
                await self._park_if_told()
                outcome = await step(f"step {number}", self._next)
                if outcome.over:
                    break
        finally:
            self._parked.set()
            # A run that was parked is not to end: another worker goes on with it.
            if self._run is not None and not self._shall_park.is_set():
                await self._run.close()
        return outcome

    @property
    def session_id(self) -> str:
        """The session that it writes."""
        return self._job.session_id

    def cancel(self) -> None:
        """Stop the run; what it has produced is kept."""
        self._app.cancel(self._job.session_id)

    def interrupt(self) -> None:
        """Let the run answer now what waits in its session, if a message there shall not wait for its end."""
        waiting = self._app.store.inputs(self._job.session_id)
        new = {one.seq for one in waiting if one.mode == "interrupt"} - self._heard
        if new and self._app.interrupt(self._job.session_id):
            self._heard |= new

    def park(self) -> None:
        """Stop before the next step, so that another worker can go on."""
        self._shall_park.set()

    def wait_parked(self, seconds: float) -> bool:
        """Wait until the step under way is done; say whether it is."""
        return self._parked.wait(seconds)

    def give_back(self) -> None:
        """Let others write the session: nobody here does any more."""
        store = self._app.store
        if store.holder(self._job.session_id) is not None:
            ours = store.acquire(self._job.session_id, "a worker that stops", seconds=1.0, take_over=True)
            store.release(ours)

    async def _park_if_told(self) -> None:
        if self._shall_park.is_set():
            self._parked.set()
            await asyncio.get_running_loop().create_future()  # until the process ends

    async def _next(self) -> Outcome:
        while True:
            if self._is_doubtful() and not await self._has_place():
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if self._run is None:
                self._run = SteppedRun(self._app, self._job)
            began = SYSTEM_CLOCK.now()
            try:
                outcome = await self._run.step()
            except (SessionHeld, SessionBusy, Disturbed, StoreUnavailable):
                # Somebody talks in the session, a worker died and its lease has not run out yet, or the
                # database is being restarted. What is stored is where the run goes on.
                self._run = None
                await asyncio.sleep(RETRY_SECONDS)
            except LostSession as lost:
                self._run = None
                if await self._has_place():
                    return Outcome(over=True, code="error", text=str(lost))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._metrics.stepped(self._job, outcome, SYSTEM_CLOCK.now() - began)
                return outcome

    async def _has_place(self) -> bool:
        """End the process if others have what it had; False if the database cannot say so now."""
        try:
            await asyncio.to_thread(self._check_place)
        except Exception as error:  # noqa: BLE001 - whatever the driver raises: it is asked again
            _log.info("place_not_known", run=self._job.run_id, error=str(error))
            return False
        return True
