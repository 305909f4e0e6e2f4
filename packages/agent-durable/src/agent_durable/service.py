"""The face for those who submit, watch and cancel runs; and the one place that reads addresses."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agent_core import AgentError, ArgumentError
from agent_core.log import get_logger
from agent_durable.capability import capability, provider_of
from agent_durable.jobs import Job, run_id_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_app import AgentApplication
    from agent_app.store.base import SessionStore
    from agent_durable.dbos_engine import DbosEngine
    from agent_durable.engine import DurableEngine
    from agent_durable.jobs import JobInfo, Outcome, Queue, Status
    from agent_durable.workers import Workers

_TERMS = ("tenant", "priority", "tokens", "cost", "overrides")
_log = get_logger("durable")


class DurableRuns:
    """Submits runs of an application's sessions to workers, and watches them.

    Args:
        app: The application; its store must be the one that the workers have.
        engine: The durable engine.
    """

    def __init__(self, app: AgentApplication, engine: DurableEngine) -> None:
        self._app = app
        self._engine = engine

    def say(self, session_id: str, text: str, **job: Any) -> str:
        """Say something in a session, and have it answered by a worker; return the id of the run.

        The message is safe when this returns. What happens is to be read with the application's `subscribe`,
        from where the log was before: `end_of_log`.

        Args:
            job: Fields of `Job`: tenant, priority, deadline, tokens, cost, overrides.
        """
        waiting = self._app.enqueue(session_id, text, "queue")
        return self.go_on(session_id, run_id=run_id_for(session_id, waiting.seq), **job)

    def go_on(self, session_id: str, *, run_id: str | None = None, **job: Any) -> str:
        """Have a session gone on with that has something waiting: messages, or decisions that were made."""
        agent_id = self._agent_of(session_id)
        return self._engine.submit(
            Job(
                run_id=run_id or f"run-{uuid4().hex[:16]}",
                session_id=session_id,
                capability=capability(self._app, agent_id),
                provider=provider_of(self._app, agent_id),
                submitted=time.time(),
                **job,
            )
        )

    def decide(self, approval_id: str, decision: Any, **job: Any) -> str:
        """Decide what a run waits for, and have it gone on with; return the id of the run.

        It is for the same tenant and has the same priority, budget and overrides as the run that asked. A
        deadline it has only if it is given one: nobody knows how long a decision takes.
        """
        approval = self._app.decide(approval_id, decision)
        return self._like_last(approval.session_id, approval.id, **job)

    def retry(self, run: JobInfo) -> str:
        """Try a run that is over once more, from where it stopped; return the id of the new one."""
        again = replace(run.job, run_id=f"run-{uuid4().hex[:16]}", submitted=time.time())
        return self._engine.submit(again)

    def jobs(self, *, status: Status | None = None, limit: int = 100) -> Sequence[JobInfo]:
        """Return runs, the latest first."""
        return self._engine.jobs(status=status, limit=limit)

    def job(self, run_id: str) -> JobInfo | None:
        """Return one run, or None if there is none of that id."""
        return self._engine.job(run_id)

    def steps(self, run_id: str) -> Sequence[Outcome]:
        """Return what the steps of a run came to, in order."""
        return self._engine.steps(run_id)

    def cancel(self, run_id: str) -> bool:
        """Stop a run, wherever it is; False if it is over."""
        return self._engine.cancel(run_id)

    def cancel_session(self, session_id: str) -> list[str]:
        """Stop the runs of a session, wherever they are, and return them."""
        return [run_id for run_id in self._engine.open_runs(session_id) if self._engine.cancel(run_id)]

    def queue(self) -> Queue:
        """Return how many runs wait, and for how long the oldest of them."""
        return self._engine.queue()

    def go_on_with_forgotten(self, *, seconds: float) -> list[str]:
        """Have messages and decisions answered that were kept and never submitted; return the runs.

        Whoever made them died in between. Runs that were submitted are not submitted again.

        Args:
            seconds: How long messages must have waited.
        """
        runs = []
        for session_id, what in self._forgotten(seconds):
            try:
                if self._engine.open_runs(session_id) or self.job(run_id_for(session_id, what)) is not None:
                    continue
                runs.append(self._like_last(session_id, what))
            except AgentError as error:  # another worker may know the session's agent
                _log.info("input_left_waiting", session=session_id, error=str(error))
        return runs

    def _forgotten(self, seconds: float) -> Iterator[tuple[str, object]]:
        """Yield what waits in sessions that nobody holds: the last message of each, and decisions."""
        yield from self._app.store.forgotten_inputs(seconds=seconds)
        for approval in self._app.store.forgotten_decisions():
            asking = self._engine.last_job(approval.session_id)
            if (
                asking is not None and asking.status == "suspended"
            ):  # else a person goes on with it, in a chat
                yield approval.session_id, approval.id

    def _like_last(self, session_id: str, what: object, **job: Any) -> str:
        """Have something answered in a session, on the terms of the run before."""
        last = self._engine.last_job(session_id)
        terms = {name: getattr(last.job, name) for name in _TERMS} if last is not None else {}
        return self.go_on(session_id, run_id=run_id_for(session_id, what), **{**terms, **job})

    def _agent_of(self, session_id: str) -> str:
        known = self._app.store.info(session_id).agent_id or self._app.config.get("default_agent")
        agents = list(self._app.config.get("agents", {}))
        chosen = known or (agents[0] if len(agents) == 1 else None)
        if chosen is None:
            raise ArgumentError(f"session {session_id!r} has no agent: give it one with switch_agent")
        return str(chosen)


def end_of_log(store: SessionStore, session_id: str) -> int:
    """Return the number of a session's last event, by which only those to come can be followed."""
    low, high = 0, 1
    while store.events(session_id, after=high - 1, limit=1):
        low, high = high, high * 2
    while high - low > 1:  # there is an event of number low (or none at all), and none of number high
        middle = (low + high) // 2
        low, high = (middle, high) if store.events(session_id, after=middle - 1, limit=1) else (low, middle)
    return low


def open_engine(
    url: str, *, limits: Mapping[str, tuple[int, float] | None] | None = None
) -> tuple[DbosEngine, Workers]:
    """Return the engine and the list of workers that go with a store at *url*.

    Args:
        limits: Those that a worker brings with it: how many runs of "tenant:NAME" or "provider:NAME" may
            begin in how many seconds; None lifts one. Whoever only submits runs needs none.

    Raises:
        ArgumentError: If the address is of no kind that can be shared, or DBOS is not installed.
    """
    try:
        from agent_durable.dbos_engine import DbosEngine
        from agent_durable.workers import Workers
    except ImportError as error:
        raise ArgumentError("durable runs need DBOS: pip install 'agent-durable[dbos]'") from error
    address = _address(url)
    return DbosEngine(address, limits=limits), Workers(_workers_address(address))


def _address(url: str) -> str:
    """Return where DBOS keeps its tables: in the same PostgreSQL database, or beside a file of SQLite."""
    if url.startswith(("postgresql://", "postgres://")):
        return f"postgresql+psycopg://{url.partition('://')[2]}"
    if url.startswith("sqlite:///"):
        return f"{url}.runs"
    raise ArgumentError(f"durable runs need postgresql://… or sqlite:///FILE, not {url.partition(':')[0]}:")


def _workers_address(address: str) -> str:
    return address if address.startswith("postgresql") else f"{address}.workers"
