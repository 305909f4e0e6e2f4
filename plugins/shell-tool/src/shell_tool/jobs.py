"""The commands that a plugin has started: by id, each for its session alone.

A command whose call has ended stays known if there is something left to read: it runs in the background, or
its output was too long to be shown. When the plugin goes, so do its commands.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING

from shell_tool.environment import Refused
from shell_tool.output import Output
from shell_tool.processes import Launch, RunningCommand

if TYPE_CHECKING:
    from shell_tool.output import Whole
    from shell_tool.settings import Settings

_MOST_ENDED = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command and whose it is.

    Attributes:
        id: By what it is asked for.
        session_id: The session that may ask.
        text: The command as it was written.
        background: Whether nobody waits for it.
        whole: Keeps its output for the person.
        running: The command itself.
    """

    id: str
    session_id: str
    text: str
    background: bool
    whole: Whole
    running: RunningCommand


class Jobs:
    """All commands of one plugin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._grace = 0.0

    def start(
        self, launch: Launch, session_id: str, settings: Settings, whole: Whole, *, background: bool
    ) -> Job:
        """Start a command.

        Raises:
            Refused: If too many run already, or it cannot be started.
        """
        with self._lock:
            if background:
                self._check_number(session_id, settings.max_jobs)
            job = Job(
                id=f"sh_{token_hex(4)}",
                session_id=session_id,
                text=launch.command,
                background=background,
                whole=whole,
                running=_started(launch, Output(settings.keep_bytes, settings.output_bytes), whole),
            )
            self._jobs[job.id] = job
            self._grace = max(self._grace, launch.grace)
            self._drop_oldest()
        return job

    def of(self, session_id: str) -> list[Job]:
        """Return the commands of a session, in the order in which they were started."""
        with self._lock:
            return [job for job in self._jobs.values() if job.session_id == session_id]

    def get(self, job_id: str, session_id: str) -> Job:
        """Return a command of a session.

        Raises:
            Refused: If it has none of that id.
        """
        known = {job.id: job for job in self.of(session_id)}
        if job_id not in known:
            there_are = ", ".join(known) or "none"
            raise Refused(
                f"there is no command {job_id!r} (there are: {there_are}); it may have been forgotten"
            )
        return known[job_id]

    def forget(self, job: Job) -> None:
        """Drop a command that has ended, with its output."""
        with self._lock:
            self._jobs.pop(job.id, None)
        job.running.output.close()

    def close(self) -> None:
        """End all commands, wait until they have ended, and drop their output."""
        with self._lock:
            jobs = list(self._jobs.values())
            deadline = monotonic() + 4 * self._grace
        for job in jobs:
            job.running.stop()
        for job in jobs:
            if job.running.wait(max(0, deadline - monotonic())):
                self.forget(job)

    def _check_number(self, session_id: str, most: int) -> None:
        active = [
            job.id
            for job in self._jobs.values()
            if job.session_id == session_id and job.background and job.running.end is None
        ]
        if len(active) >= most:
            raise Refused(
                f"{len(active)} commands run in the background already, and no more may: "
                f"end one with shell_stop ({', '.join(active)})"
            )

    def _drop_oldest(self) -> None:
        ended = [job for job in self._jobs.values() if job.running.end is not None]
        for job in ended[:-_MOST_ENDED]:
            del self._jobs[job.id]
            job.running.output.close()


def _started(launch: Launch, output: Output, whole: Whole) -> RunningCommand:
    try:
        return RunningCommand(launch, output, whole.keep)
    except BaseException:
        output.close()
        raise
