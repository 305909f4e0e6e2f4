"""One conversation: a session of the application, and its current state."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.plans import WRITE_PLAN, in_plan_mode, plan_of, read_plan
from agent_core import AgentError, ToolInteropRegistry
from agent_terminal_app.application import catalogue_of, windows_of
from agent_terminal_app.chat.agent import agent_of, agent_of_stored, follow_model, who_answers
from agent_terminal_app.chat.appearance import Appearance
from agent_terminal_app.chat.keymap import KeyMap
from agent_terminal_app.chat.questions.edit_mode import EditMode
from agent_terminal_app.chat.questions.question import Question
from agent_terminal_app.chat.queue import MessageQueue
from agent_terminal_app.chat.rendering.folds import Folds
from agent_terminal_app.chat.usage import Meters, used_by_model
from agent_terminal_app.remote import server_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agent_app import AgentApplication
    from agent_app.plans import Plan
    from agent_app.store.base import InputMode
    from agent_core import AgentCore
    from agent_terminal_app.chat.attachments import Attachment
    from agent_terminal_app.chat.queue import QueuedMessage
    from agent_terminal_app.remote import RemoteApplication


def stored_call(app: AgentApplication, session_id: str, call_id: str) -> tuple[Mapping[str, Any], Any] | None:
    """Return a call as a session has it, and its arguments; None if it has no such call.

    Called in a thread. Arguments that cannot be read are returned as they were written.

    Raises:
        AgentError: If the session cannot be read.
    """
    formats = ToolInteropRegistry.default()
    for message in reversed(app.load_session(session_id).messages):
        for call in message.tool_calls:
            try:
                found = formats.inspect_call(call)
            except AgentError:  # another call, in a form that only its provider knows
                continue
            if found.call_id == call_id:
                return call, found.payload
    return None


_RECENT = 20
_LOOK_AGAIN = 0.5
"""How many seconds pass between two looks at what another process does."""


class Reader(NamedTuple):
    """The model that reads the next message.

    Attributes:
        model: Its id; empty if only a server knows it.
        window: How many tokens fit into it, if that is known.
        text_only: Whether it is known to read no pictures.
    """

    model: str
    window: int | None = None
    text_only: bool = False


class Conversation:
    """One session at a time, and what is said in it.

    Attributes:
        session_id: The session; None until the first message is sent.
        running: Whether the agent is working.
        meters: What the session uses.
        queue: The messages that wait to be delivered.
        attached: What goes with the next message.
        folds: What was shown as one line.
        edits: Whether the agent asks before it edits files.
        keys: The keys in force, for /help.
        appearance: How the chat looks.
        model: The model that answers, as far as it is known.
        instead_of: The agent's own model, if another one answers in this session.
        plan: What the agent has planned, and how far it has come.
        plan_mode: Whether it only looks and plans.
        windows: How many tokens fit into which model.
        changed: Called when the rows around the prompt may have changed.
        fill: Puts a text into the prompt, where there is one.
        card_choices: How many choices the card has that was shown last, until something else is typed.
        seen: The number of the last event that was shown; None if nothing happened here yet.
    """

    def __init__(self, app: AgentApplication, session_id: str | None = None) -> None:
        self.app = app
        self.session_id = session_id
        self.running = False
        self.meters = Meters()
        self.queue = MessageQueue()
        self.attached: list[Attachment] = []
        self.folds = Folds()
        self.edits = EditMode(app)
        self.keys = KeyMap.usual()
        self.appearance = Appearance()
        self.model = self.instead_of = ""
        self.plan: Plan = ()
        self.plan_mode = False
        self._written: dict[str, Plan] = {}
        self.windows = windows_of(app)
        self.changed: Callable[[], None] = lambda: None
        self.fill: Callable[[str], None] | None = None
        self.card_choices = 0
        self.seen: int | None = None
        self._stop = False
        self._beginning = threading.Lock()
        self._answered = ""
        self._learning: dict[str, asyncio.Task[None]] = {}
        self._front_end: tuple[str | None, AgentCore, dict[str, Any]] | None = None

    @property
    def server(self) -> RemoteApplication | None:
        """The server that has the session; None if it is kept by this process."""
        return server_of(self.app)

    @property
    def context(self) -> int:
        """How many tokens the last request and its answer had."""
        return self.meters.context

    def begin(self) -> str:
        """Return the session's id; a new session is created with the first message, so that none is empty."""
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
        """Continue in another session; None for one that is created with the next message."""
        self.session_id = session_id
        self.queue.forget()
        self.forget_front_end()
        self.edits.allowed = self.edits.auto = False
        await asyncio.to_thread(self.edits.look, session_id)
        self.meters, self.seen = Meters(), None
        self.plan, self.plan_mode = (), False
        if session_id is not None:
            session = await self.app.load_session_async(session_id)
            self.plan, self.plan_mode = plan_of(session), in_plan_mode(session)
            self.meters, model = await asyncio.to_thread(_used, self.app, session_id)
            self.meters.window = self.windows.known(model)
            self._learn_window(model)
        await self.refresh_queue()

    def lend_key(self, session_id: str) -> None:
        """Give the provider of a session its stored key, if it was not in use at the start; in a thread."""
        if server_of(self.app) is None:
            catalogue_of(self.app).lend_key_of_session(session_id)

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
                    self.seen = event.get("seq") or self.seen
                    self._count(event)
                    self._follow_plan(event)
                    await show(event)
        finally:
            self.running = False
        return True

    async def follow(
        self, show: Callable[[Mapping[str, Any]], Awaitable[None]], after: int | None = None
    ) -> bool:
        """Show what another process does with the session, until it is done.

        Args:
            after: Behind which event; None for those to come.

        Returns:
            Whether that process gave the session back without telling how it ended.
        """
        if self.session_id is None:
            return False
        self.running, self._stop = True, False
        try:
            if after is None:
                after = await self.app.last_event_async(self.session_id)
            while not self._stop:
                holder = await self.app.holder_async(self.session_id)
                events = await self.app.events_async(self.session_id, after)
                for event in events:
                    after = self.seen = event["seq"]
                    if event["type"] == "usage":
                        self._count(event)
                    await show(event)
                    if event["type"] in ("final", "error"):
                        return False
                if holder is None and not events:
                    return True
                await asyncio.sleep(0 if events else _LOOK_AGAIN)
        finally:
            self.running = False
        return False

    def add(self, text: str, mode: InputMode, attached: Sequence[Attachment] = ()) -> None:
        """Say something while the agent is working: between two steps, or after its answer.

        It is safe when this returns.
        """
        self.app.enqueue(self.begin(), text, mode, attachments=[one.part for one in attached])

    async def refresh_queue(self, *, step: int = 0, held: bool = True) -> list[QueuedMessage]:
        """Look again at what waits, and return what was delivered since.

        Args:
            step: Which step of a run it is.
            held: Whether what waits goes nowhere by itself.
        """
        if self.session_id is None:
            self.queue.forget()
            return []
        stored = await self.app.queued_async(self.session_id)
        return self.queue.refresh(stored, held=held, step=step)

    async def take_back(self) -> str | None:
        """Take the last message back that waits, and return what it says; None if there is none any more."""
        last = self.queue.last()
        if last is None or self.session_id is None:
            return None
        taken = await self.app.withdraw_async(self.session_id, last.seq)
        if taken:
            self.queue.forget(last.seq)
            return last.text
        await self.refresh_queue()
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

    async def next_question(self) -> Question | None:
        """Return the first question that the agent waits for; None if there is none."""
        if self.session_id is None:
            return None
        approvals = await self.app.approvals_async(self.session_id)
        if not approvals:
            return None
        return Question.of(approvals[0], await self.app.load_session_async(self.session_id))

    async def reader(self) -> Reader:
        """Return the model that reads the next message, with what is known of what it can read.

        Raises:
            AgentError: If no agent is declared, or it cannot run.
        """
        if server_of(self.app) is not None:  # the server knows what its models can read
            return Reader("")
        who = await who_answers(self)
        self.model = who.model.id.rstrip(":")
        agent_id, model_id = who.agent.spec.id, who.model.id
        window = await asyncio.to_thread(self.windows.find, agent_id, model_id)
        text_only = await asyncio.to_thread(self.windows.reads_only_text, agent_id, model_id)
        return Reader(model_id, window, text_only)

    async def follow_model(self) -> str:
        """Give the agent the tools that suit the model that answers now; return a line if they changed.

        Raises:
            AgentError: If no agent is declared, or it cannot run.
        """
        if server_of(self.app) is not None:
            return ""
        with suppress(AgentError):
            who = await who_answers(self)
            self.model, own = who.model.id.rstrip(":"), who.agent.model.id.rstrip(":")
            self.instead_of = "" if self.model == own else own
        return await follow_model(self)

    def about_call(self, call_id: str) -> dict[str, Any]:
        """Return the arguments of a call of this session, and the line about it; called in a thread."""
        found = None if self.session_id is None else stored_call(self.app, self.session_id, call_id)
        if found is None:
            return {}
        call, arguments = found
        preview = ""
        if server_of(self.app) is None:  # else its tools are not here
            with suppress(AgentError):
                core, config = self.front_end()
                preview = core.format_tool_call_preview(dict(call), config)["preview"]
        return {"arguments": arguments, "preview": preview}

    def preview_of(self, call_id: str) -> str:
        """Return the line about a call of this session; empty if there is none. Called in a thread."""
        return str(self.about_call(call_id).get("preview") or "")

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
            session = None if session_id is None else self.app.load_session(session_id)
            agent = self.app.runtime.resolve(agent_of(self.app, session))
            known = self._front_end = (session_id, agent.core, dict(agent.config))
        return known[1], known[2]

    def forget_front_end(self) -> None:
        """Forget the agent that answers: it or its settings may have changed."""
        self._front_end = None

    def _follow_plan(self, event: Mapping[str, Any]) -> None:
        """Keep the plan as the agent writes it down."""
        kind, call_id = event["type"], event.get("call_id", "")
        if kind == "tool_call_start" and event["name"] == WRITE_PLAN:
            self._written[call_id] = read_plan((event["arguments"] or {}).get("items"))
        elif kind == "tool_call_result" and call_id in self._written:
            written = self._written.pop(call_id)
            if not event["is_error"]:
                self.plan = written
                self.changed()

    async def count_again(self) -> None:
        """Take from the log what the session has used: an action may have asked a model something."""
        if self.session_id is not None and not self.meters.is_estimate:
            used = await asyncio.to_thread(used_by_model, self.app, self.session_id)
            self.meters.tokens = sum(one.total_tokens for one in used.values())
            self.meters.cost = sum(one.cost for one in used.values())
            self.changed()

    def _count(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "usage" and event.get("beside"):
            self.meters.count_delegate(event["usage"])
        elif event["type"] == "usage":
            self.meters.count(event["usage"], self.windows.known(event["model"]))
            self._learn_window(event["model"])
        elif event["type"] == "tool_call_partial":
            for usage in _delegate_usage(event["part"]):
                self.meters.count_delegate(usage)
        elif event["type"] in ("final", "turn_end") and not self.meters.is_counted:
            self.meters.estimate(str(message.content or "") for message in event["session"].messages)

    def _learn_window(self, model: str) -> None:
        """Find the context window of the model that has answered, once, in the background."""
        self._answered = model
        if not self.windows.was_looked_for(model) and model not in self._learning:
            self._learning[model] = asyncio.create_task(self._learn(self.meters, model))

    async def _learn(self, meters: Meters, model: str) -> None:
        with suppress(AgentError):
            agent_id = await asyncio.to_thread(agent_of_stored, self.app, self.session_id)
            window = await asyncio.to_thread(self.windows.find, agent_id, model)
            if self._answered == model:
                meters.window = window
                self.changed()


def _delegate_usage(part: Any) -> list[Mapping[str, Any]]:
    """Return what a delegate used, if that is what a tool's partial output tells."""
    while isinstance(part, dict) and part.get("type") == "tool_call_partial":
        part = part.get("part")
    return [part["usage"]] if isinstance(part, dict) and part.get("type") == "usage" else []


def _used(app: AgentApplication, session_id: str) -> tuple[Meters, str]:
    """Return what a session has used up to now, as its log tells, and the model that answered last."""
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
        usage = message.usage
        if usage is not None:
            counts = (usage.get("input_tokens"), usage.get("output_tokens"))
            return sum(count for count in counts if isinstance(count, int))
    return 0
