"""One conversation: a session of the application, and what is going on in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_app import AgentApplication
    from agent_app.store.base import InputMode


class Conversation:
    """Talks in one session at a time.

    Attributes:
        session_id: The session.
        running: Whether the agent is at work.
        queued: How many messages wait for it.
        tokens: What the session has used since it was opened here.
        cost: What that cost.
        context: How many tokens the last request sent.
    """

    def __init__(self, app: AgentApplication, session_id: str | None = None) -> None:
        self.app = app
        self.session_id = session_id
        self.running = False
        self.queued = 0
        self.tokens = 0
        self.cost = 0.0
        self.context = 0

    def begin(self) -> str:
        """Return the session's id; a new session is made with the first words, so that none is empty."""
        if self.session_id is None:
            here = {"workspace_roots": [str(Path.cwd())]}
            self.session_id = self.app.create_session(metadata=here).session_id
        return self.session_id

    async def say(self, text: str, show: Callable[[Mapping[str, Any]], None]) -> None:
        """Say something, and show what happens until the agent has answered or waits."""
        session_id = self.begin()
        self.running = True
        try:
            async for event in self.app.chat_async(session_id, text):
                self._count(event)
                show(event)
        finally:
            self.running = False
            self.queued = len(self.app.store.inputs(session_id))

    def add(self, text: str, mode: InputMode) -> None:
        """Say something while the agent is at work: between two steps, or after its answer."""
        self.app.enqueue(self.begin(), text, mode)
        self.queued += 1

    def interrupt(self) -> bool:
        """Stop the agent; what it said is kept. False if it is not at work."""
        return self.session_id is not None and self.running and self.app.cancel(self.session_id)

    def questions(self) -> list[Any]:
        """Return what the agent waits for."""
        return [] if self.session_id is None else list(self.app.approvals(self.session_id))

    def decide(self, approval_id: str, *, approved: bool, value: Any = None, reason: str = "") -> None:
        """Answer a question."""
        self.app.decide(approval_id, {"approved": approved, "value": value, "reason": reason})

    def meters(self) -> str:
        """Return the three numbers: what is sent now, what the session has used, what that cost."""
        parts = [f"context {self.context}", f"session {self.tokens} tokens"]
        if self.cost:
            parts.append(f"{self.cost:.4f} spent")
        return " · ".join(parts)

    def _count(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "usage":
            used = event["usage"]
            self.context = used["input_tokens"] + used["output_tokens"]
            self.tokens += used["total_tokens"]
            self.cost += used["cost"]
