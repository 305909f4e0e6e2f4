"""What is counted for OpenTelemetry; nothing where it is not installed.

::

    agent.runs.started    runs that this worker began or continued, by agent
    agent.runs.ended      runs that ended here, by agent and status
    agent.step.duration   how long steps took, in seconds, by agent and kind
    agent.queue.length    how many runs wait, for any worker
    agent.queue.age       for how many seconds the oldest of them has waited
    agent.workers         how many workers there are

Only the API is used: the program that sets up the SDK, before the worker starts, decides where the numbers
go. The last three are read from the database whenever they are collected, and are the same for all workers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from agent_core.log import get_logger

with suppress(ImportError):
    from opentelemetry import metrics as otel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_durable.jobs import Job, Outcome, Queue

METER = "agent_durable"
_log = get_logger("durable")


class Metrics:
    """Counts what a worker does.

    Args:
        queue: Returns how many runs wait.
        workers: Returns how many workers there are.
    """

    def __init__(self, queue: Callable[[], Queue], workers: Callable[[], int]) -> None:
        self._is_on = "otel" in globals()
        if not self._is_on:
            return
        meter = otel.get_meter(METER)
        self._started = meter.create_counter("agent.runs.started", "{run}", "Runs that a worker began.")
        self._ended = meter.create_counter("agent.runs.ended", "{run}", "Runs that ended.")
        self._steps = meter.create_histogram("agent.step.duration", "s", "How long steps took.")
        for name, unit, ask in (
            ("agent.queue.length", "{run}", lambda: queue().waiting),
            ("agent.queue.age", "s", lambda: queue().oldest),
            ("agent.workers", "{worker}", workers),
        ):
            meter.create_observable_gauge(name, [_observing(ask)], unit)

    def started(self, job: Job) -> None:
        """Count a run that begins or continues."""
        if self._is_on:
            self._started.add(1, _agent(job))

    def ended(self, job: Job, outcome: Outcome) -> None:
        if self._is_on:
            self._ended.add(1, {**_agent(job), "status": outcome.status})

    def stepped(self, job: Job, outcome: Outcome, seconds: float) -> None:
        """Record how long a step took, by the kind of its last unit."""
        if self._is_on:
            kind = outcome.units[-1].partition(" ")[0] if outcome.units else "end"
            self._steps.record(seconds, {**_agent(job), "kind": kind})


def _agent(job: Job) -> dict[str, str]:
    """Return the agent without the hash of its version, which would make a series for each release."""
    return {"agent": job.agent_id}


def _observing(ask: Callable[[], float]) -> Callable[[otel.CallbackOptions], Iterator[otel.Observation]]:
    def observe(_options: object) -> Iterator[otel.Observation]:
        try:
            yield otel.Observation(ask())
        except Exception as error:  # the database may be away: then there is no number
            _log.info("metric_not_known", error=str(error))

    return observe
