"""Runs that workers execute, in other processes or on other machines; this process only streams them.

What is said is stored before a request is answered, and a worker that dies is replaced by another one. So a
server can stop at any moment: nothing of a run is in it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Protocol

from agent_server.feed import Cursor
from agent_server.runs import Run, Runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app import AgentApplication

_CLEAR_SECONDS = 10.0
_LOOK_SECONDS = 0.05


class Submitted(Protocol):
    """A run that workers have."""

    @property
    def after(self) -> int:
        """The number of the last event of its session before it."""


class Waiting(Protocol):
    """The runs that wait for a worker."""

    @property
    def waiting(self) -> int:
        """How many there are."""


class Workers(Protocol):
    """Sends runs to workers; `agent_durable.DurableRuns` does. All methods block."""

    def submit(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        limits: Mapping[str, Any] | None = None,
        take_over: bool = False,
        key: str | None = None,
        **job: Any,
    ) -> Submitted:
        """Put a message into a session, if there is one, and have a worker answer."""

    def go_on_after(self, approval_id: str, session_id: str) -> str:
        """Have a worker continue with a decision."""

    def cancel_session(self, session_id: str) -> Sequence[str]:
        """Stop all runs of a session, and return their ids."""

    def open_runs(self, session_id: str) -> Sequence[str]:
        """Return the ids of the runs of a session that are not over."""

    def queue(self) -> Waiting:
        """Return how many runs wait."""

    def workers(self) -> int:
        """Return how many workers take runs now."""


class WorkerRun(Run):
    """A run of a worker, which the session's log tells of."""

    def __init__(self, app: AgentApplication, session_id: str, after: int) -> None:
        super().__init__(session_id, Cursor(after))
        self._app = app

    async def end(self) -> Mapping[str, Any]:
        async with self._app.subscribe_async(self.session_id, self.after.seq) as events:
            async for event in events:
                if event["type"] in ("final", "error"):
                    found: Mapping[str, Any] = event
                    return found
        return {"type": "error", "error": {"type": "SessionNotFound", "message": "the session was deleted"}}


class WorkerRuns(Runs):
    """Hands runs to workers."""

    are_local = False

    def __init__(self, app: AgentApplication, workers: Workers) -> None:
        super().__init__()
        self._app = app
        self._workers = workers

    async def start(self, session_id: str, text: str = "", **request: Any) -> Run:
        self.check_open()
        key, tenant = request.pop("run_id", None), request.pop("tenant", "")
        submitted = await asyncio.to_thread(
            self._workers.submit, session_id, text, key=key, tenant=tenant, **request
        )
        return WorkerRun(self._app, session_id, submitted.after)

    async def until_free(self, session_id: str) -> None:
        """Return at once: a worker lets a session go in the transaction that has the last event."""

    async def go_on(self, session_id: str, approval_id: str) -> None:
        await asyncio.to_thread(self._workers.go_on_after, approval_id, session_id)

    async def cancel(self, session_id: str) -> bool:
        return bool(await asyncio.to_thread(self._workers.cancel_session, session_id))

    async def clear(self, session_id: str) -> None:
        """Stop the runs of a session, and wait until their workers have let it go."""
        if not await self.cancel(session_id):
            return
        until = time.monotonic() + _CLEAR_SECONDS
        while time.monotonic() < until and await self._app.holder_async(session_id) is not None:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)  # a worker lets go in another process, without an event

    async def interrupt(self, session_id: str) -> bool:
        """Mark what is queued as urgent: the worker that has the session looks for that."""
        waiting = await self._app.queued_async(session_id)
        for one in waiting[:1]:
            text, parts = one.message["content"], one.message.get("multipartContent") or ()
            edited = await asyncio.to_thread(
                self._app.edit_queued,
                session_id,
                one.seq,
                text,
                "interrupt",
                attachments=parts[1:] if text else parts,  # the first part is the text, if there is one
            )
            return edited is not None
        return False

    async def will_go_on(self, session_id: str) -> bool:
        """Say whether another worker is to continue: a run whose worker died is not over."""
        return bool(await asyncio.to_thread(self._workers.open_runs, session_id))

    async def count(self) -> Mapping[str, int]:
        queue = await asyncio.to_thread(self._workers.queue)
        return {"waiting": queue.waiting, "workers": await asyncio.to_thread(self._workers.workers)}
