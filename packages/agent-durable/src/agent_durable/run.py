"""A job as a workflow of durable steps: each is a model call with the tool calls of its answer, stored.

The application's stream is only as far along as it was read, so a run stops wherever no one asks for more.
What was done by then is in the store, and a process that has never seen the run can continue from there. A
step that the engine remembers is not repeated: after a crash the earlier steps are only looked up, and the
next one finds their results in the store.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

from agent_app.errors import SessionBusy, SessionHeld, StoreError, StoreUnavailable
from agent_core import AgentError
from agent_core.log import get_logger
from agent_durable import stop
from agent_durable.jobs import NEVER_TRIED, Outcome, Tries
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.suspension import unanswered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from agent_app import AgentApplication
    from agent_durable.engine import Step
    from agent_durable.jobs import Job
    from agent_durable.metrics import Metrics
    from agent_runtime import Checkpoint

    OwnSettings = Callable[[Job], Mapping[str, Any]]

FIRST_PAUSE, RETRY_SECONDS = 0.01, 0.5
WAIT_SECONDS = 3600.0
"""How long a step may wait for its session, or for the store."""

MOST_DISTURBANCES = 10
"""How often a step is repeated whose result could not be stored: each time a model may be paid for it."""

LONGEST_PAUSE = 60.0
MOST_STEPS = 10_000
_log = get_logger("durable")


class Performance:
    """Brings one job to its end.

    Args:
        app: The application, with the store that all workers share.
        job: The job.
        check_place: Ends the process if others have taken what this worker had.
        is_doubtful: Says, without waiting, whether `check_place` must be called before anything else is done.
        metrics: Counts steps and runs.
        tries: How often workers began it, and how many of them died.
        recoveries: How many of them may die before the run is stopped.
    """

    def __init__(
        self,
        app: AgentApplication,
        job: Job,
        check_place: Callable[[], None],
        is_doubtful: Callable[[], bool],
        metrics: Metrics,
        *,
        tries: Tries = NEVER_TRIED,
        recoveries: int = 0,
        own_settings: OwnSettings = lambda _job: {},
    ) -> None:
        self._own_settings = own_settings
        self._app = app
        self._job = job
        self._check_place = check_place
        self._is_doubtful = is_doubtful
        self._metrics = metrics
        self._tries = tries
        self._recoveries = recoveries
        self._run: SteppedRun | None = None
        self._interrupted_for: set[int] = set()
        self._parking = threading.Event()
        self._parked = threading.Event()

    async def perform(self, step: Step) -> Outcome:
        """Take steps until the run is over; return how it ended."""
        self._metrics.started(self._job)
        try:
            for number in range(MOST_STEPS):
                await self._park_if_asked()
                outcome = await step(f"step {number}", self._next)
                if outcome.over:
                    return outcome
        finally:
            self._parked.set()
            # A parked run must not end here: another worker continues it.
            if self._run is not None and not self._parking.is_set():
                await self._run.close()
        return await self._give_up("error", f"the run was stopped after {MOST_STEPS} steps")

    @property
    def session_id(self) -> str:
        """The session that the run writes."""
        return self._job.session_id

    def cancel(self) -> None:
        """Stop the run; what it has produced is kept."""
        self._app.cancel(self._job.session_id)

    def interrupt(self) -> None:
        """Interrupt the run for a message in its session that must not wait until the run ends."""
        waiting = self._app.store.inputs(self._job.session_id)
        new = {one.seq for one in waiting if one.mode == "interrupt"} - self._interrupted_for
        if new and self._app.interrupt(self._job.session_id):
            self._interrupted_for |= new

    def park(self) -> None:
        """Stop before the next step, so that another worker can continue."""
        self._parking.set()

    def wait_parked(self, seconds: float) -> bool:
        """Wait until the current step is done; say whether it is."""
        return self._parked.wait(seconds)

    def give_back(self) -> None:
        """Release the session: this process writes it no more."""
        store = self._app.store
        if store.holder(self._job.session_id) is not None:
            ours = store.acquire(self._job.session_id, "a worker that stops", seconds=1.0, take_over=True)
            store.release(ours)

    async def _park_if_asked(self) -> None:
        if self._parking.is_set():
            self._parked.set()
            await asyncio.get_running_loop().create_future()  # until the process ends

    async def _next(self) -> Outcome:
        since, disturbances, pause = SYSTEM_CLOCK.now(), 0, FIRST_PAUSE
        while True:
            if self._is_doubtful() and not await self._has_place():
                await asyncio.sleep(RETRY_SECONDS)
                continue
            began = SYSTEM_CLOCK.now()
            try:
                outcome = await self._step()
            except (SessionHeld, SessionBusy, StoreUnavailable) as error:
                # Whoever submitted the run has not let the session go yet, a user is talking in it, a worker
                # died and its lease has not run out yet, or the database is being restarted. The run
                # continues from what is stored.
                problem: AgentError = error
                pause = min(2 * pause, RETRY_SECONDS)
            except Disturbed as error:
                problem, disturbances = error, disturbances + 1
                pause = min(2 * max(RETRY_SECONDS, pause), LONGEST_PAUSE)
            except LostSession as error:
                self._run = None
                if await self._has_place():
                    return Outcome(over=True, code="error", text=str(error))
                problem = error
            else:
                self._metrics.stepped(self._job, outcome, SYSTEM_CLOCK.now() - began)
                return outcome
            self._run = None
            if self._is_late():
                return await self._give_up("timeout", f"its deadline passed while it waited: {problem}")
            if SYSTEM_CLOCK.now() - since > WAIT_SECONDS or disturbances >= MOST_DISTURBANCES:
                return await self._give_up("error", f"a step could not be taken for too long: {problem}")
            await asyncio.sleep(pause)

    async def _step(self) -> Outcome:
        if stop.is_due(self._tries, self._recoveries):
            return await asyncio.to_thread(stop.stop_run, self._app, self._job, self._tries, self._recoveries)
        if self._run is None:
            own = await asyncio.to_thread(self._own_settings, self._job)
            self._run = SteppedRun(self._app, self._job, own)
        return await self._run.step(self._parking.is_set)

    def _is_late(self) -> bool:
        return self._job.deadline is not None and time.time() > self._job.deadline

    async def _give_up(self, code: str, why: str) -> Outcome:
        """Return the outcome of a run that is stopped here, and write the reason to its session's log."""
        event = {"type": "error", "error": {"type": "RunGivenUp", "code": code, "message": why}}
        try:
            await asyncio.to_thread(self._app.store.append_events, self._job.session_id, [event])
        except StoreError as error:
            _log.warning("run_given_up_not_logged", run=self._job.run_id, error=str(error))
        return Outcome(over=True, code=code, text=why)

    async def _has_place(self) -> bool:
        """End the process if others took its runs; False if the database cannot be asked now."""
        try:
            await asyncio.to_thread(self._check_place)
        except Exception as error:  # whatever the driver raises: it is asked again
            _log.info("place_not_known", run=self._job.run_id, error=str(error))
            return False
        return True


class LostSession(AgentError):
    """Another process took the session over; nothing was written since."""


class Disturbed(AgentError):
    """The store was away for a moment; what it acknowledged is safe, and the run can continue from there."""


_INTERRUPTIONS: dict[str, type[AgentError]] = {"LeaseLost": LostSession, "StoreUnavailable": Disturbed}


class SteppedRun:
    """One request of an application, made in steps.

    Args:
        app: The application.
        job: The job to run.
        own: Settings for its requests that are stored nowhere, such as keys.
    """

    def __init__(self, app: AgentApplication, job: Job, own: Mapping[str, Any]) -> None:
        self._done: list[str] = []
        self._continues = False  # after the last answer only the end is left, which is not a step
        self._is_answered = False  # whether every call of the last answer has its result
        # No stop while a call runs: the next worker could not tell whether it ran.
        self._begun: set[str] = set()
        self._names: dict[str, str] = {}
        self._last: dict[str, Any] = {}
        self._stream: AsyncIterator[dict[str, Any]] = app.chat_async(
            job.session_id,
            overrides={**job.overrides, **own},
            limits=_limits(job),
            run_id=job.run_id,
            kept=self._note,
        )

    async def step(self, is_stopping: Callable[[], bool]) -> Outcome:
        """Continue until an answer and its tool calls are done, or the run is over.

        Each step costs as much as storing an answer does, and what was done within one is in the session: a
        worker that takes over goes on from there.

        Args:
            is_stopping: Says whether it should stop as soon as nothing is half done.
        """
        async for event in self._stream:
            self._last = event
            if event["type"] == "tool_call_start":
                self._names[event["call_id"]] = event["name"]
            if event["type"] == "kept" and self._may_stop() and (self._is_answered or is_stopping()):
                return Outcome(units=self._take())
        return self._ended()

    async def close(self) -> None:
        """Release the session; what was done is kept."""
        await self._stream.aclose()  # type: ignore[attr-defined]

    def _may_stop(self) -> bool:
        """Say whether something was done, nothing is half done, and there is more to do than to end."""
        return bool(self._done) and self._continues and not self._begun

    def _note(self, checkpoint: Checkpoint) -> None:
        """Record what is stored now; called from whichever thread stored it."""
        call_id = checkpoint.call_id or ""
        self._continues = checkpoint.kind != "end"
        if checkpoint.kind in ("answer", "result"):
            self._is_answered = not unanswered(checkpoint.session)
        if checkpoint.kind == "answer":
            self._continues = not self._is_answered
            self._done.append("model")
        elif checkpoint.kind == "intent":
            self._begun.add(call_id)
        elif checkpoint.kind == "result":
            self._begun.discard(call_id)
            self._done.append(f"tool {self._names.get(call_id, '')} {call_id}")

    def _take(self) -> tuple[str, ...]:
        done, self._done = tuple(self._done), []
        return done

    def _ended(self) -> Outcome:
        last = self._last
        if last.get("type") == "error":
            if (interruption := _INTERRUPTIONS.get(last["error"]["type"])) is not None:
                raise interruption(last["error"]["message"])
            return Outcome(units=self._take(), over=True, code="error", text=last["error"]["message"])
        reason = last.get("reason") or {}
        return Outcome(
            units=self._take(),
            over=True,
            code=reason.get("code", ""),
            text=last.get("text", ""),
            approvals=tuple(last.get("approvals", ())),
        )


def _limits(job: Job) -> dict[str, Any]:
    """Return a job's limits for a request that starts now; the run itself counts what it used before."""
    limits: dict[str, Any] = {}
    if job.deadline is not None:
        limits["timeout"] = max(0.001, job.deadline - time.time())
    if job.tokens is not None:
        limits["token_budget"] = job.tokens
    if job.cost is not None:
        limits["cost_budget"] = job.cost
    return limits
