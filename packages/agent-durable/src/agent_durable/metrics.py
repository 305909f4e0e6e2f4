"""What is counted for OpenTelemetry; nothing where it is not installed.

::

    agent.runs.started    runs that this worker began with, or went on with, by agent
    agent.runs.ended      runs that it brought to their end, by agent and status
    agent.step.duration   how long steps took, in seconds, by agent and by what they did
    agent.queue.length    how many runs wait, whichever worker will have them
    agent.queue.age       for how many seconds the oldest of them does
    agent.workers         how many workers there are

Only the interface is used: where the numbers go is for whoever sets up its SDK, before the worker starts.
The last three are asked of the database whenever they are collected, and are the same for all workers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

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
        self._started = meter.create_counter("agent.runs.started", "{run}", "Runs that a worker began with.")
        self._ended = meter.create_counter("agent.runs.ended", "{run}", "Runs that came to their end.")
        self._steps = meter.create_histogram("agent.step.duration", "s", "How long steps took.")
        for name, unit, ask in (
            ("agent.queue.length", "{run}", lambda: queue().waiting),
            ("agent.queue.age", "s", lambda: queue().oldest),
            ("agent.workers", "{worker}", workers),
        ):
            meter.create_observable_gauge(name, [_observing(ask)], unit)

    def started(self, job: Job) -> None:
        """Count a run that is begun, or gone on with."""
        if self._is_on:
            self._started.add(1, _agent(job))

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Count a run that is over."""
        if self._is_on:
            self._ended.add(1, {**_agent(job), "status": outcome.status})

    def stepped(self, job: Job, outcome: Outcome, seconds: float) -> None:
        """Note how long a step took, by the kind of its last unit."""
        if self._is_on:
            kind = outcome.units[-1].partition(" ")[0] if outcome.units else "end"
            self._steps.record(seconds, {**_agent(job), "kind": kind})


def _agent(job: Job) -> dict[str, str]:
    """Return the agent without the hash of its version, which would make a series for each release."""
    return {"agent": job.capability.rpartition(".")[0]}


def _observing(ask: Callable[[], float]) -> Callable[[Any], Iterator[otel.Observation]]:
    def observe(_options: Any) -> Iterator[otel.Observation]:
        try:
            yield otel.Observation(ask())
        except Exception as error:  # noqa: BLE001 - the database may be away: then there is no number
            _log.info("metric_not_known", error=str(error))

    return observe
