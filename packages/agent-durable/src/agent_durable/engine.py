"""What is needed of a durable engine: a queue that loses nothing, and steps that are done once.

It is small on purpose. DBOS is one (`dbos_engine`); Temporal, with a workflow for `perform` and an activity
for each step, could be another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from agent_durable.jobs import Job, JobInfo, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_durable.jobs import Queue, Status

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

    def last_job(self, session_id: str) -> JobInfo | None:
        """Return the job of a session that was submitted last, or None if there is none."""

    def steps(self, run_id: str) -> Sequence[Outcome]:
        """Return what the steps of a job came to, in order."""

    def queue(self) -> Queue:
        """Return how many jobs wait, and for how long."""

    def open_runs(self, session_id: str) -> Sequence[str]:
        """Return the jobs of a session that are not over."""

    def cancel(self, run_id: str) -> bool:
        """Stop a job, wherever it runs; False if it is over."""

    def cancelled(self, run_ids: Sequence[str]) -> Sequence[str]:
        """Return which of the jobs were cancelled."""

    def forget(self, *, before: float) -> int:
        """Forget the jobs that were over at a moment, in seconds since 1970; return how many were."""

    def take_from(self, worker: str) -> Sequence[str]:
        """Put the jobs of a worker that has died back into the queue, and return their run ids."""

    def at_work(self) -> set[str]:
        """Return the workers that have jobs, also those that nobody knows any more."""

    def sessions_of(self, worker: str) -> Sequence[str]:
        """Return the sessions whose jobs a worker has."""

    def serve(self, perform: Perform, capabilities: Sequence[str], *, worker: str, concurrency: int) -> None:
        """Begin to take jobs from the queue, those only that are within the capabilities; returns at once."""

    def limits(self) -> Mapping[str, tuple[int, float] | None]:
        """Return how many runs may begin in how many seconds, by "tenant:NAME" or "provider:NAME"."""

    def later(self) -> Sequence[str]:
        """Return the capabilities of which jobs wait until there is room for them, since they have time."""

    def begin_later(self, capability: str, capacity: int) -> int:
        """Let the most urgent of such jobs begin, as many as there is room for, and return how many."""

    def stop(self, *, seconds: float = 0.0) -> None:
        """Take no more jobs, give those under way so much time for their step, and let go."""
