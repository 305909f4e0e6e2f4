"""The stop of a run whose workers died again and again.

A tool that ends its process (a segmentation fault, `os._exit`, the kernel's OOM killer) takes the worker with
it, and the next worker would begin the same call. So after a few recoveries the run is stopped: its open
calls get a result that says so, and the reason is in the session's log and in the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app.store.base import Changes
from agent_core import AgentError, Message
from agent_core.dict_form import replace
from agent_core.log import get_logger
from agent_durable.jobs import Outcome, run_id_for
from agent_runtime.errors import describe
from agent_runtime.recovery import recover
from agent_runtime.suspension import RUN, read_saved_run, unanswered

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_app import AgentApplication
    from agent_app.store.base import Lease
    from agent_core import Session
    from agent_durable.jobs import Job, Tries

CODE = "workers_lost"
MOST_TRIES = 100
"""How often workers may begin a run, also after ordinary stops: a tool may send its worker SIGTERM."""

_LEASE_SECONDS = 30.0
_log = get_logger("durable")


class WorkersLost(AgentError):
    """A run was stopped because its workers died, or stopped, too often.

    Attributes:
        run_id: The run.
        losses: How many workers died.
        calls: The tools that were running when the last one died.
    """

    def __init__(self, run_id: str, tries: Tries, recoveries: int, calls: tuple[str, ...] = ()) -> None:
        self.run_id = run_id
        self.losses = tries.losses
        self.calls = calls
        if tries.losses > recoveries:
            cause = f"{tries.losses} workers died with it, and {recoveries} recoveries are allowed"
        else:
            cause = f"{tries.begun} workers began it, and each had to stop before its end"
        running = f"; running was {' and '.join(calls)}" if calls else ""
        super().__init__(
            f"run {run_id} was stopped: {cause}{running}. Find out what ended the workers, then retry the run"
        )


def is_due(tries: Tries, recoveries: int) -> bool:
    """Say whether a run must be stopped instead of continued."""
    return tries.losses > recoveries or tries.begun > MOST_TRIES


def stop_run(app: AgentApplication, job: Job, tries: Tries, recoveries: int) -> Outcome:
    """Stop a run: answer the open calls of its session, log why, and return that as its outcome.

    All of it is one transaction, and no plugin is called: a plugin might be what ends the workers. If even
    this ended one, the session stays as it is, and only the log is written.

    Raises:
        SessionHeld: If another process is writing the session now.
    """
    if tries.losses > recoveries + 1:
        error = WorkersLost(job.run_id, tries, recoveries)
        app.store.append_events(job.session_id, [_event(error)], durability="turn")
    else:
        owner = f"the stop of run {job.run_id}"
        lease = app.store.acquire(job.session_id, owner, seconds=_LEASE_SECONDS)
        try:
            error = _settle(app, job, tries, recoveries, lease)
        finally:
            app.store.release(lease)
    _log.warning("run_stopped", run=job.run_id, session=job.session_id, reason=str(error))
    return Outcome(over=True, code=CODE, text=str(error))


def _settle(app: AgentApplication, job: Job, tries: Tries, recoveries: int, lease: Lease) -> WorkersLost:
    """Store results for the open calls, the message that the run was for, and why it was stopped."""
    store, core = app.store, app.runtime.resolve(job.agent_id).core
    stored = store.load(job.session_id)
    begun = store.open_intents(job.session_id)
    error = WorkersLost(job.run_id, tries, recoveries, _running(stored.session, begun))
    saved = read_saved_run(stored.session)
    finished = {} if saved is None else saved.finished
    session, answered = recover(core, stored.session, begun, finished=finished)
    inputs = store.inputs(job.session_id)
    waiting = [one for one in inputs if run_id_for(job.session_id, one.seq) == job.run_id]
    session = core.append_messages(session, [Message.from_dict(dict(one.message)) for one in waiting])
    changes = Changes(
        events=[_event(error)], results=[*begun, *answered], take_inputs=[one.seq for one in waiting]
    )
    store.save(_without_run(session, job), stored, lease=lease, changes=changes)
    return error


def _running(session: Session, begun: Collection[str]) -> tuple[str, ...]:
    calls = [call for call in unanswered(session) if call["id"] in begun]
    return tuple(str((call.get("function") or call.get("custom") or {}).get("name", "")) for call in calls)


def _without_run(session: Session, job: Job) -> Session:
    """Return the session without the saved run, unless that waits for decisions."""
    saved = read_saved_run(session)
    if saved is None or saved.waiting or not saved.run_id.startswith(f"{job.run_id}."):
        return session
    kept = {key: value for key, value in session.metadata.items() if key != RUN}
    return replace(session, metadata=kept).sealed(session.seal)


def _event(error: WorkersLost) -> dict[str, Any]:
    return {"type": "error", "error": {**describe(error), "losses": error.losses, "calls": list(error.calls)}}
