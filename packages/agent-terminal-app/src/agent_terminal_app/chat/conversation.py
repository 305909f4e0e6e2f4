"""One conversation: a session of the application, and what is going on in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import Message
from agent_terminal_app.chat.folds import Folds
from agent_terminal_app.chat.meters import Meters
from agent_terminal_app.chat.waiting import WaitingLine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_app import AgentApplication
    from agent_app.store.base import InputMode
    from agent_core import AgentCore
    from agent_terminal_app.chat.attachments import Attachment
    from agent_terminal_app.chat.waiting import WaitingMessage

_RECENT = 20


class Conversation:
    """Talks in one session at a time.

    Attributes:
        session_id: The session; None until the first words are said.
        running: Whether the agent is at work.
        meters: What the session uses.
        waiting: The messages that wait to be delivered.
        attached: What goes with the next message.
        folds: What was shown as one line.
        fill: Puts a text into the prompt, where there is one.
    """

    def __init__(self, app: AgentApplication, session_id: str | None = None) -> None:
        self.app = app
        self.session_id = session_id
        self.running = False
        self.meters = Meters()
        self.waiting = WaitingLine()
        self.attached: list[Attachment] = []
        self.folds = Folds()
        self.fill: Callable[[str], None] | None = None
        self._stop = False
        self._front_end: tuple[str | None, AgentCore, dict[str, Any]] | None = None

    @property
    def context(self) -> int:
        """How many tokens the last request and its answer had."""
        return self.meters.context

    def begin(self) -> str:
        """Return the session's id; a new session is made with the first words, so that none is empty."""
        if self.session_id is None:
            here = {"workspace_roots": [str(Path.cwd())]}
            self.session_id = self.app.create_session(metadata=here).session_id
        return self.session_id

    async def go_to(self, session_id: str | None) -> None:
        """Go on in another session; None for one that is made with the next words."""
        self.session_id = session_id
        self.waiting.forget()
        self.forget_front_end()
        self.meters = Meters() if session_id is None else await asyncio.to_thread(_used, self.app, session_id)
        await self.refresh_waiting()

    async def say(
        self,
        text: str,
        show: Callable[[Mapping[str, Any]], Awaitable[None]],
        attached: Sequence[Attachment] = (),
    ) -> bool:
        """Say something, and show what happens until the agent has answered or waits.

        Returns:
            False if it was stopped before anything was said.
        """
        self.running, self._stop = True, False
        try:
            session_id = await asyncio.to_thread(self.begin)
            if self._stop:
                return False
            parts = [one.part for one in attached]
            async with self.app.chat_async(session_id, text, attachments=parts) as events:
                async for event in events:
                    if self._stop:  # it may have come before there was a request to stop
                        self.app.cancel(session_id)
                    self._count(event)
                    await show(event)
        finally:
            self.running = False
        return True

    def add(self, text: str, mode: InputMode, attached: Sequence[Attachment] = ()) -> None:
        """Say something while the agent is at work: between two steps, or after its answer.

        It is safe when this returns.
        """
        if not attached:
            self.app.enqueue(self.begin(), text, mode)
            return
        said = [{"type": "text", "text": text}] if text else []
        message = Message("user", text, multipart_content=[*said, *(dict(one.part) for one in attached)])
        self.app.store.put_input(self.begin(), message.to_dict(), mode)

    async def refresh_waiting(self, *, step: int = 0, held: bool = True) -> list[WaitingMessage]:
        """Look again at what waits, and return what was delivered since.

        Args:
            step: Which step of a run it is.
            held: Whether what waits goes nowhere by itself.
        """
        if self.session_id is None:
            self.waiting.forget()
            return []
        stored = await asyncio.to_thread(self.app.store.inputs, self.session_id)
        return self.waiting.refresh(stored, held=held, step=step)

    async def take_back(self) -> str | None:
        """Take the last message back that waits, and return what it says; None if there is none any more."""
        last = self.waiting.last()
        if last is None or self.session_id is None:
            return None
        taken = await asyncio.to_thread(self.app.store.drop_input, self.session_id, last.seq)
        if taken:
            self.waiting.forget(last.seq)
            return last.text
        await self.refresh_waiting()
        return None

    def interrupt(self) -> bool:
        """Stop the agent; what it said is kept, and what waits is held. False if it is not at work."""
        if not self.running:
            return False
        self._stop = True
        if self.session_id is not None:
            self.app.cancel(self.session_id)
        return True

    def questions(self) -> list[Any]:
        """Return what the agent waits for."""
        return [] if self.session_id is None else list(self.app.approvals(self.session_id))

    def folder(self) -> Path:
        """Return the first folder that the session works in; called in a thread."""
        if self.session_id is None:
            return Path.cwd()
        roots = self.app.load_session(self.session_id).metadata.get("workspace_roots")
        return Path(roots[0]) if roots and isinstance(roots[0], str) else Path.cwd()

    def front_end(self) -> tuple[AgentCore, dict[str, Any]]:
        """Return what the agent's features are asked with, for completion; called in a thread.

        Raises:
            AgentError: If the agent cannot run.
        """
        known, session_id = self._front_end, self.session_id
        if known is None or known[0] != session_id:
            from agent_terminal_app.chat.answering import agent_of

            session = None if session_id is None else self.app.load_session(session_id)
            agent = self.app.runtime.resolve(agent_of(self.app, session))
            known = self._front_end = (session_id, agent.core, dict(agent.config))
        return known[1], known[2]

    def forget_front_end(self) -> None:
        """Ask anew who answers: the agent or its settings may have changed."""
        self._front_end = None

    def _count(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "usage":
            self.meters.count(event["usage"], self._window(event["model"]))
        elif event["type"] == "tool_call_partial":
            for usage in _beside(event["part"]):
                self.meters.count_beside(usage)
        elif event["type"] in ("final", "turn_end") and not self.meters.is_counted:
            self.meters.estimate(str(message.content or "") for message in event["session"].messages)

    def _window(self, model: str) -> int | None:
        window = self.app.config.get("models", {}).get(model, {}).get("context_window")
        return window if isinstance(window, int) else None


def _beside(part: Any) -> list[Mapping[str, Any]]:
    """Return what a delegate used, if that is what a tool's partial output tells."""
    while isinstance(part, dict) and part.get("type") == "tool_call_partial":
        part = part.get("part")
    return [part["usage"]] if isinstance(part, dict) and part.get("type") == "usage" else []


def _used(app: AgentApplication, session_id: str) -> Meters:
    """Return what a session has used up to now, as its log tells."""
    from agent_terminal_app.chat.usage import used_by_model

    used = used_by_model(app, session_id).values()
    return Meters(
        context=_last_counts(app, session_id),
        tokens=sum(one.total_tokens for one in used),
        cost=sum(one.cost for one in used),
        is_partly_priced=any(not one.cost for one in used),
    )


def _last_counts(app: AgentApplication, session_id: str) -> int:
    """Return how many tokens the last answer and its request had, as far as the provider has counted."""
    for message in reversed(app.read_messages(session_id, limit=_RECENT)):
        usage = message.metadata.get("usage")
        if isinstance(usage, Mapping):
            counts = (usage.get("input_tokens"), usage.get("output_tokens"))
            return sum(count for count in counts if isinstance(count, int))
    return 0
