"""One conversation: a session of the application, and what is going on in it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, Message
from agent_terminal_app.chat.folds import Folds
from agent_terminal_app.chat.keymap import KeyMap
from agent_terminal_app.chat.meters import Meters
from agent_terminal_app.chat.modes import EditMode
from agent_terminal_app.chat.waiting import WaitingLine
from agent_terminal_app.chat.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_app import AgentApplication
    from agent_app.store.base import InputMode
    from agent_core import AgentCore
    from agent_terminal_app.chat.attachments import Attachment
    from agent_terminal_app.chat.waiting import WaitingMessage

_RECENT = 20
_LOOK_AGAIN = 0.5
"""After how many seconds it is looked again what another process does."""


class Conversation:
    """Talks in one session at a time.

    Attributes:
        session_id: The session; None until the first words are said.
        running: Whether the agent is at work.
        meters: What the session uses.
        waiting: The messages that wait to be delivered.
        attached: What goes with the next message.
        folds: What was shown as one line.
        edits: Whether the agent asks before it edits files.
        keys: The keys in force, for whoever explains them.
        windows: How many tokens fit into which model.
        changed: Called when there is something else to show around the prompt.
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
        self.edits = EditMode(app)
        self.keys = KeyMap.usual()
        self.windows = Windows(app)
        self.changed: Callable[[], None] = lambda: None
        self.fill: Callable[[str], None] | None = None
        self._stop = False
        self._beginning = threading.Lock()
        self._answered = ""
        self._learning: dict[str, asyncio.Task[None]] = {}
        self._front_end: tuple[str | None, AgentCore, dict[str, Any]] | None = None

    @property
    def context(self) -> int:
        """How many tokens the last request and its answer had."""
        return self.meters.context

    def begin(self) -> str:
        """Return the session's id; a new session is made with the first words, so that none is empty."""
        with self._beginning:
            if self.session_id is None:
                here = {"workspace_roots": [str(Path.cwd())]}
                session_id = self.app.create_session(metadata=here).session_id
                self.edits.begin(session_id)
                self.session_id = session_id
            return self.session_id

    def turn_mode(self) -> str:
        """Ask before edits from now on, or do not, and return what that means; called in a thread.

        Raises:
            AgentError: If the agent cannot edit anything.
        """
        with self._beginning:  # the mode of a session that is being made is granted to it, or not yet
            return self.edits.turn(self.session_id)

    async def go_to(self, session_id: str | None) -> None:
        """Go on in another session; None for one that is made with the next words."""
        self.session_id = session_id
        self.waiting.forget()
        self.forget_front_end()
        self.edits.allowed = False
        await asyncio.to_thread(self.edits.look, session_id)
        self.meters = Meters()
        if session_id is not None:
            self.meters, model = await asyncio.to_thread(_used, self.app, session_id)
            self.meters.window = self.windows.known(model)
            self._learn_window(model)
        await self.refresh_waiting()

    async def say(
        self,
        text: str,
        show: Callable[[Mapping[str, Any]], Awaitable[None]],
        attached: Sequence[Attachment] = (),
        *,
        take_over: bool = False,
    ) -> bool:
        """Say something, and show what happens until the agent has answered or waits.

        Args:
            take_over: Whether the session is taken from another process that has it.

        Returns:
            False if it was stopped before anything was said.

        Raises:
            SessionHeld: If another process has the session, and it is not taken over.
        """
        self.running, self._stop = True, False
        try:
            session_id = await asyncio.to_thread(self.begin)
            if self._stop:
                return False
            parts = [one.part for one in attached]
            talking = self.app.chat_async(session_id, text, attachments=parts, take_over=take_over)
            async with talking as events:
                async for event in events:
                    if self._stop:  # it may have come before there was a request to stop
                        self.app.cancel(session_id)
                    self._count(event)
                    await show(event)
        finally:
            self.running = False
        return True

    async def follow(self, show: Callable[[Mapping[str, Any]], Awaitable[None]]) -> bool:
        """Show what another process does with the session, until it has nothing more to do.

        Returns:
            Whether that process gave the session back without telling how it ended.
        """
        if self.session_id is None:
            return False
        self.running, self._stop = True, False
        try:
            after = await asyncio.to_thread(_end_of_log, self.app, self.session_id)
            while not self._stop:
                held = await asyncio.to_thread(self.app.store.holder, self.session_id)
                events = await asyncio.to_thread(self.app.store.events, self.session_id, after=after)
                for event in events:
                    after = event["seq"]
                    if event["type"] == "usage":
                        self._count(event)
                    await show(event)
                    if event["type"] in ("final", "error"):
                        return False
                if held is None and not events:
                    return True
                await asyncio.sleep(0 if events else _LOOK_AGAIN)
        finally:
            self.running = False
        return False

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

    def arguments_of(self, call_id: str) -> Any:
        """Return what the model wanted of a call of this session; called in a thread."""
        from agent_terminal_app.chat.wanted_calls import wanted_arguments

        return None if self.session_id is None else wanted_arguments(self.app, self.session_id, call_id)

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
            self.meters.count(event["usage"], self.windows.known(event["model"]))
            self._learn_window(event["model"])
        elif event["type"] == "tool_call_partial":
            for usage in _beside(event["part"]):
                self.meters.count_beside(usage)
        elif event["type"] in ("final", "turn_end") and not self.meters.is_counted:
            self.meters.estimate(str(message.content or "") for message in event["session"].messages)

    def _learn_window(self, model: str) -> None:
        """Find out beside everything else how much fits into the model that has answered, once."""
        self._answered = model
        if not self.windows.was_looked_for(model) and model not in self._learning:
            self._learning[model] = asyncio.create_task(self._learn(self.meters, model))

    async def _learn(self, meters: Meters, model: str) -> None:
        from agent_terminal_app.chat.answering import agent_of_stored

        with suppress(AgentError):
            agent_id = await asyncio.to_thread(agent_of_stored, self.app, self.session_id)
            window = await asyncio.to_thread(self.windows.find, agent_id, model)
            if self._answered == model:
                meters.window = window
                self.changed()


def _end_of_log(app: AgentApplication, session_id: str) -> int:
    """Return the number of the last event of a session; 0 if there is none."""
    after = 0
    while events := app.store.events(session_id, after=after):
        after = events[-1]["seq"]
    return after


def _beside(part: Any) -> list[Mapping[str, Any]]:
    """Return what a delegate used, if that is what a tool's partial output tells."""
    while isinstance(part, dict) and part.get("type") == "tool_call_partial":
        part = part.get("part")
    return [part["usage"]] if isinstance(part, dict) and part.get("type") == "usage" else []


def _used(app: AgentApplication, session_id: str) -> tuple[Meters, str]:
    """Return what a session has used up to now, as its log tells, and the model that answered last."""
    from agent_terminal_app.chat.usage import used_by_model

    by_model = used_by_model(app, session_id)
    used = by_model.values()
    meters = Meters(
        context=_last_counts(app, session_id),
        tokens=sum(one.total_tokens for one in used),
        cost=sum(one.cost for one in used),
        is_partly_priced=any(not one.cost for one in used),
    )
    return meters, next(reversed(by_model), "")


def _last_counts(app: AgentApplication, session_id: str) -> int:
    """Return how many tokens the last answer and its request had, as far as the provider has counted."""
    for message in reversed(app.read_messages(session_id, limit=_RECENT)):
        usage = message.metadata.get("usage")
        if isinstance(usage, Mapping):
            counts = (usage.get("input_tokens"), usage.get("output_tokens"))
            return sum(count for count in counts if isinstance(count, int))
    return 0
