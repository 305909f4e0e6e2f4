"""What a durable engine must offer: a queue that loses nothing, and steps that are done once.

It is small on purpose. DBOS is one (`dbos_engine`); Temporal, with a workflow for `perform` and an activity
for each step, could be another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from agent_durable.jobs import Job, JobInfo, Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_durable.jobs import Bounds, Queue, Status, Tries

Step = Callable[[str, Callable[[], Awaitable[Outcome]]], Awaitable[Outcome]]
"""``await step(name, work)``: do the work, or if it was done before, return its outcome from then."""

Perform = Callable[[Job, Step], Awaitable[Outcome]]
"""Runs a job to its end. After a crash it is called again, and must ask for the same steps again."""


class DurableEngine(Protocol):
    """A queue of jobs, and a record of how far each has come. All methods block."""

    def submit(self, job: Job) -> str:
        """Put a job into the queue and return its run id; submitting the same id again changes nothing."""

    def jobs(self, *, status: Status | None = None, limit: int = 100) -> Sequence[JobInfo]:
        """Return jobs, latest first."""

    def job(self, run_id: str) -> JobInfo | None:
        """Return one job, or None if no job has that id."""

    def last_job(self, session_id: str) -> JobInfo | None:
        """Return the job of a session that was submitted last, or None."""

    def steps(self, run_id: str) -> Sequence[Outcome]:
        """Return the outcomes of a job's steps, in order."""

    def queue(self) -> Queue:
        """Return how many jobs wait, and for how long."""

    def bounds(self) -> Bounds:
        """Return how many jobs may wait."""

    def check_room(self, tenant: str) -> None:
        """Check that one more job may wait.

        Only jobs that wait now are counted, so several submitted at the same moment may exceed the bound.

        Raises:
            QueueFull: If the queue, or the tenant's share of it, is full.
        """

    def open_runs(self, session_id: str) -> Sequence[str]:
        """Return the run ids of a session's jobs that are not over."""

    def cancel(self, run_id: str) -> bool:
        """Stop a job, wherever it runs; False if it is over."""

    def cancelled(self, run_ids: Sequence[str]) -> Sequence[str]:
        """Return which of these jobs were cancelled."""

    def forget(self, *, before: float) -> int:
        """Delete the jobs that were over before a moment, in seconds since 1970; return how many."""

    def take_from(self, worker: str, *, lost: bool = False) -> Sequence[str]:
        """Put the jobs of a worker back into the queue, and return their run ids.

        Args:
            lost: Whether the worker died. Each of its jobs may be the cause, so a loss is counted for each.
        """

    def tries(self, run_id: str) -> Tries:
        """Return how often workers began a job, and how many of them died."""

    def excuse(self, run_id: str, worker: str) -> None:
        """Record that a worker has a job and has not begun it: until it does, a loss is not counted."""

    def begin(self, run_id: str, worker: str) -> None:
        """Record that a worker begins a job that it had excused."""

    def at_work(self) -> set[str]:
        """Return the workers that have jobs, including those that are no longer listed."""

    def sessions_of(self, worker: str) -> Sequence[str]:
        """Return the sessions whose jobs a worker has."""

    def serve(self, perform: Perform, capabilities: Sequence[str], *, worker: str, concurrency: int) -> None:
        """Begin to take jobs from the queue that match the capabilities; returns at once."""

    def limits(self) -> Mapping[str, tuple[int, float] | None]:
        """Return how many runs may begin in how many seconds, by "tenant:NAME" or "provider:NAME"."""

    def follow_limits(self) -> None:
        """Also serve the queues of limits that other workers added since this one began."""

    def drop_queues(self, able: Collection[str]) -> int:
        """Delete the queues of capabilities that no worker has and no job needs; return how many.

        Args:
            able: The capabilities of all workers.
        """

    def later(self) -> Sequence[str]:
        """Return the capabilities for which jobs with a lower priority wait until there is room."""

    def begin_later(self, capability: str, capacity: int) -> int:
        """Let the most urgent of those jobs begin, as many as there is room for; return how many."""

    def stop(self, *, seconds: float = 0.0) -> None:
        """Take no more jobs, give current ones so much time for their step, and close the connections."""
