"""A run taken one step at a time: until a model call, or a tool call, is done and stored.

Calls that run at the same time are one step together.

The application's stream is only as far as it was read, so a run stops wherever nobody asks for more. What
was done by then is in the store, and a process that has never seen the run goes on from there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_durable.jobs import Outcome
from agent_runtime.suspension import unanswered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_app import AgentApplication
    from agent_durable.jobs import Job
    from agent_runtime import Checkpoint


class LostSession(AgentError):  # noqa: N818 - says what happened
    """Somebody has taken the session over; nothing was written since."""


class Disturbed(AgentError):  # noqa: N818 - says what happened
    """The store was away for a moment; what was acknowledged is there, and the run can go on from it."""


_INTERRUPTIONS: dict[str, type[AgentError]] = {"LeaseLost": LostSession, "StoreUnavailable": Disturbed}


class SteppedRun:
    """One request of an application, made in steps.

    Args:
        app: The application.
        job: What is asked of it.
    """

    def __init__(self, app: AgentApplication, job: Job) -> None:
        self._done: list[str] = []
        self._goes_on = False  # after the last answer there is nothing but the end, which is no step
        self._begun: set[str] = set()  # nobody may stop here: whoever goes on could not tell whether they ran
        self._names: dict[str, str] = {}
        self._last: dict[str, Any] = {}
        self._stream: AsyncIterator[dict[str, Any]] = app.chat_async(
            job.session_id,
            overrides=job.overrides,
            limits=_limits(job),
            run_id=job.run_id,
            kept=self._note,
        )

    async def step(self) -> Outcome:
        """Go on until a model call or tool calls are done and nothing is half done, or it is over."""
        async for event in self._stream:
            self._last = event
            if event["type"] == "tool_call_start":
                self._names[event["call_id"]] = event["name"]
            if event["type"] == "kept" and self._done and self._goes_on and not self._begun:
                return Outcome(units=self._take())
        return self._ended()

    async def close(self) -> None:
        """Let go of the session; what was done is kept."""
        await self._stream.aclose()  # type: ignore[attr-defined]

    def _note(self, checkpoint: Checkpoint) -> None:
        """Take a note of what is stored now; called from whichever thread stored it."""
        call_id = checkpoint.call_id or ""
        self._goes_on = checkpoint.kind != "end"
        if checkpoint.kind == "answer":
            self._goes_on = bool(unanswered(checkpoint.session))
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
    """Return what is left of a job's limits; what it has used before is counted by the run itself."""
    limits: dict[str, Any] = {}
    if job.deadline is not None:
        limits["timeout"] = max(0.001, job.deadline - time.time())
    if job.tokens is not None:
        limits["token_budget"] = job.tokens
    if job.cost is not None:
        limits["cost_budget"] = job.cost
    return limits
