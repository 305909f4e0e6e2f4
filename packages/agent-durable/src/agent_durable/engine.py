"""What is needed of a durable engine: a queue that loses nothing, and steps that are done once.

It is small on purpose. DBOS is one (`dbos_engine`); Temporal, with a workflow for `perform` and an activity
for each step, could be another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from agent_durable.jobs import Job, JobInfo, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_durable.jobs import Status

Step = Callable[[str, Callable[[], Awaitable[Outcome]]], Awaitable[Outcome]]
"""``await step(name, work)``: do the work, unless it was done before; then return what it came to then."""

Perform = Callable[[Job, Step], Awaitable[Outcome]]
"""Brings a job to its end. After a crash it is called again, and must ask for the same steps again."""


class DurableEngine(Protocol):
    """A queue of jobs, and a memory of how far each has come. All methods block."""

    def submit(self, job: Job) -> str:
        """Put a job into the queue and return its run id; the same id again changes nothing."""

    def jobs(self, *, status: Status | None = None, limit: int = 100) -> Sequence[JobInfo]:
        """Return jobs, the latest first."""

    def job(self, run_id: str) -> JobInfo | None:
        """Return one job, or None if there is none of that id."""

    def steps(self, run_id: str) -> Sequence[Outcome]:
        """Return what the steps of a job came to, in order."""

    def cancel(self, run_id: str) -> bool:
        """Stop a job, wherever it runs; False if it is over."""

    def take_from(self, worker: str) -> Sequence[str]:
        """Put the jobs of a worker that has died back into the queue, and return their run ids."""

    def serve(self, perform: Perform, capabilities: Sequence[str], *, worker: str, concurrency: int) -> None:
        """Begin to take jobs from the queue, those only that are within the capabilities; returns at once."""

    def stop(self, *, seconds: float) -> None:
        """Take no more jobs, give those under way so much time for their step, and let go."""
