"""The agent at work: one request after the other, the messages that wait, and the questions it asks.

A session may be in use by another process. Then the user is asked what to do, and nothing that was typed
is lost: it is queued there, said here, or put back into the input line.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app import SessionHeld
from agent_core import AgentError
from agent_core.log import get_logger
from agent_terminal_app.chat.questions.approvals import Approvals
from agent_terminal_app.chat.rendering.progress import Progress
from agent_terminal_app.chat.rendering.renderer import Renderer
from agent_terminal_app.chat.rendering.text import one_line
from agent_terminal_app.errors import Exit, code_of
from agent_terminal_app.first_run.ask import choose_by_typing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from agent_terminal_app.chat.attachments import Attachment
    from agent_terminal_app.chat.commands.registry import Talk
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.rendering.renderer import Remarks
    from agent_terminal_app.chat.rendering.screen import Asides, Screen

_CONTINUE = "Continue your answer exactly where it was cut off."
_CHOICE = "Number or name (Enter: 1; Esc leaves it)"
_QUEUE, _TAKE_OVER, _KEEP = 0, 1, 2
_DRAFT_CHOICES = (
    "queue  your message waits there, and is answered there",
    "take over  the session continues here, and stops there at its next step",
    "keep  nothing is sent; your message goes back into the input line",
)
_QUEUE_CHOICES = (
    "wait  the queued messages are answered there",
    "take over  the session continues here, and stops there at its next step",
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that is not sent yet; empty if the agent should continue with what is queued."""

    text: str
    attached: Sequence[Attachment] = ()

    def __bool__(self) -> bool:
        """Say whether there is anything."""
        return bool(self.text or self.attached)


async def ask_about_session_in_use(talk: Talk, work: Work, draft: Draft, in_use: SessionHeld) -> None:
    """Ask what to do with a message for a session that another process uses, and do it."""
    title = f"This session is in use by {one_line(in_use.holder.owner)}. What now?"
    options = _DRAFT_CHOICES if draft else _QUEUE_CHOICES
    chosen = await choose_by_typing(title, options, tell=talk.line, read=partial(talk.ask, _CHOICE))
    if chosen == _TAKE_OVER:
        work.begin(talk.conversation, draft.text, draft.attached, take_over=True)
    elif chosen == _QUEUE:
        if draft:
            await asyncio.to_thread(talk.conversation.add, draft.text, "queue", draft.attached)
        work.watch(talk.conversation)
    else:
        talk.note(return_draft(talk.conversation, draft))


def return_draft(conversation: Conversation, draft: Draft) -> str:
    """Put a draft back into the input line, and return what to tell the user."""
    if not draft:
        return "nothing was sent; queued messages are kept"
    conversation.attached += [one for one in draft.attached if not _is_mentioned(one, draft.text)]
    conversation.changed()
    if conversation.fill is None:
        return f"not sent: {one_line(draft.text)}"
    conversation.fill(draft.text)
    return "not sent; your message is in the input line"


def _is_mentioned(attachment: Attachment, text: str) -> bool:
    """Say whether a file goes with a text because that mentions it."""
    return "@" in text and Path(attachment.label).name in text


_BOUNDARIES = ("step_start", "turn_end", "final", "error")
"""The events at which messages that waited may have been delivered."""

_log = get_logger("chat")


class Work:
    """What the agent does, and what can be said to it while it works.

    Args:
        screen: Where it is shown.
        remarks: Says what happens around it.
        changed: Called when the rows around the prompt may have changed.
        asides: What is shown besides the answers.
        done: Called when the agent has stopped working.

    Attributes:
        progress: The current work.
        approvals: What is asked.
        failure: The exit code of the last request that has failed; 0 if none has.
        last: Whether no further request should begin by itself.
        on_session_in_use: Called with a draft that was not sent, because another process uses the session.
    """

    def __init__(
        self,
        screen: Screen,
        remarks: Remarks,
        changed: Callable[[], None],
        asides: Asides | None = None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._asides = asides
        self.progress = Progress(changed)
        self.approvals = Approvals(screen, changed)
        self.failure = 0
        self.last = False
        self.on_session_in_use: Callable[[Conversation, Draft, SessionHeld], Awaitable[None]] = self._refuse
        self._screen = screen
        self._remarks = remarks
        self._changed = changed
        self._done = done
        self._task: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()  # so that they are not forgotten before they are done
        self._ended_well = False
        self._set_aside = False
        self._stopped_by = ""
        self._stopped_in: str | None = None  # the session whose work that limit has stopped

    @property
    def running(self) -> bool:
        """Whether the agent is working."""
        return self._task is not None and not self._task.done()

    # Saying something

    def begin(
        self,
        conversation: Conversation,
        text: str,
        attached: Sequence[Attachment] = (),
        *,
        take_over: bool = False,
    ) -> None:
        """Send a message to the agent, which is idle; an empty one continues with what is queued.

        Args:
            take_over: Whether the session is taken from another process that has it.
        """
        draft = Draft(text, attached)
        saying = partial(self._say_words, conversation, draft, take_over=take_over)
        self._task = asyncio.create_task(self._run(conversation, saying, draft))

    def watch(self, conversation: Conversation, after: int | None = None) -> None:
        """Show what another process does with the session, and continue here if it leaves anything.

        Args:
            after: Behind which event; None for those to come.
        """
        watching = partial(self._watch, conversation, after)
        self._task = asyncio.create_task(self._run(conversation, watching, Draft("")))

    async def say(
        self,
        conversation: Conversation,
        text: str,
        shown: str,
        attached: Sequence[Attachment],
        *,
        queue: bool,
    ) -> None:
        """Say something to the agent, whatever it does: now, after its step, or after its answer."""
        if self.running:
            await self._keep(conversation, text, attached, queue=queue)
            self._go_on(conversation)
        elif conversation.queue.held:  # what was said first is read first
            await self._keep(conversation, text, attached, queue=True)
            self.begin(conversation, "")
        else:
            self._remarks.echo(shown)
            self.begin(conversation, text, attached)

    def resume(self, conversation: Conversation) -> None:
        """Continue with the messages that are held back, or with work that a limit or a crash has stopped."""
        if self.running:
            return
        has_more = bool(self._stopped_by) and self._stopped_in == conversation.session_id
        if has_more and self._stopped_by == "length" and not conversation.queue.held:
            self._remarks.echo(_CONTINUE)
            self.begin(conversation, _CONTINUE)
        elif conversation.queue.held or has_more:
            self.begin(conversation, "")

    def can_resume(self, session_id: str, stopped_by: str) -> None:
        """Let `resume` continue a session that a crash or a limit, by its code, has stopped before."""
        self._stopped_by, self._stopped_in = stopped_by, session_id

    async def _keep(
        self, conversation: Conversation, text: str, attached: Sequence[Attachment], *, queue: bool
    ) -> None:
        """Store a message until it can be delivered."""
        await asyncio.to_thread(conversation.add, text, "queue" if queue else "steer", attached)
        await self.refresh_queue(conversation)
        if not self._screen.is_live:
            self._remarks.note(f"{'queued' if queue else 'will be read after this step'}: {one_line(text)}")

    def _go_on(self, conversation: Conversation) -> None:
        """Send what arrived just after the agent had looked at the queue for the last time."""
        if self._ended_well and conversation.queue and not self.running and not self.last:
            self.begin(conversation, "")

    async def _refuse(self, conversation: Conversation, draft: Draft, in_use: SessionHeld) -> None:
        """Report that another process uses the session, where nobody can be asked what to do about it."""
        self._remarks.fail(in_use)
        self._remarks.note(return_draft(conversation, draft))

    # Questions

    def asks(self, conversation: Conversation) -> bool:
        """Say whether the user was asked something and has not answered, nor left it."""
        return not self.running and not self._set_aside and self.approvals.waits_in(conversation)

    async def has_question(self, conversation: Conversation) -> bool:
        """Say whether a line is the answer to a question, also to one that came from elsewhere."""
        if self._set_aside or self.running:
            return False
        return self.asks(conversation) or bool(await asyncio.to_thread(conversation.questions))

    async def ask(self, conversation: Conversation) -> None:
        """Show what a session waits for, if it does."""
        self._set_aside = False
        await asyncio.to_thread(conversation.edits.look, conversation.session_id)
        await self.approvals.ask(conversation)
        await self.refresh_queue(conversation)

    async def answer(self, conversation: Conversation, line: str, seen: str | None = None) -> None:
        """Take a line as the answer to the question that is open.

        Args:
            seen: Which question was shown when the line was sent; None if nobody knows.
        """
        if await self.approvals.take(conversation, line, seen):
            self.begin(conversation, "")
        await self.refresh_queue(conversation)

    async def go_on_if_decided(self, conversation: Conversation) -> None:
        """Let the agent go on if its question was answered by a grant."""
        if self.asks(conversation) and await self.approvals.was_decided(conversation):
            self.begin(conversation, "")
        self._changed()

    def leave_question(self, conversation: Conversation) -> bool:
        """Leave the question that is open: its call is not run. False if there is none."""
        if not self.asks(conversation):
            return False
        self._set_aside = True
        self._remarks.note("the call is not run; say what to do instead")
        self._in_background(self.refresh_queue(conversation))
        return True

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    # The work itself

    async def _run(
        self, conversation: Conversation, talking: Callable[[Renderer], Awaitable[None]], draft: Draft
    ) -> None:
        renderer = Renderer(self._screen, conversation.folds, self.progress, self._asides)
        self._set_aside = self._ended_well = False
        self._stopped_by = ""
        self.progress.begin()
        in_use: SessionHeld | None = None
        try:
            await talking(renderer)
        except SessionHeld as error:
            in_use = error
        except AgentError as error:
            self.failure = code_of(error)
            self._remarks.fail(error)
            if draft.text and renderer.is_silent:
                self._remarks.note("your message was not sent; Up brings it back")
        except Exception as error:  # a bug in one turn must not end the whole chat
            self.failure = Exit.FAILURE
            _log.error("turn_failed", error=repr(error))
            self._remarks.fail(error)
        finally:
            renderer.end()
            self.progress.end()
        self.failure = renderer.failure or self.failure
        self._stopped_by, self._stopped_in = renderer.limit, conversation.session_id
        await self.ask(conversation)
        conversation.queue.answered()
        self._changed()
        if in_use is not None:
            await self.on_session_in_use(conversation, draft, in_use)
        if self._task is asyncio.current_task():  # else the answer to that has begun something else
            self._task, self._ended_well = None, renderer.ended_well
            self._go_on(conversation)
            if not self.running:
                self._done()

    async def _say_words(
        self, conversation: Conversation, draft: Draft, renderer: Renderer, *, take_over: bool
    ) -> None:
        show = partial(self._show, conversation, renderer)
        if not await conversation.say(draft.text, show, draft.attached, take_over=take_over):
            self._remarks.note("stopped before it was sent; Up brings your message back")

    async def _watch(self, conversation: Conversation, after: int | None, renderer: Renderer) -> None:
        await self.refresh_queue(conversation)
        if await conversation.follow(partial(self._show, conversation, renderer), after):
            renderer.ended_well = True
        elif self.progress.stopping:
            self._remarks.note("it continues there; your queued messages are answered there")

    async def _show(self, conversation: Conversation, renderer: Renderer, event: Mapping[str, Any]) -> None:
        if event["type"] in _BOUNDARIES:
            renderer.end()
            if conversation.queue:
                await self.refresh_queue(conversation, event.get("round", 0))
        if event["type"] == "tool_call_result" and not renderer.has_begun(event["call_id"]):
            event = {**event, **await asyncio.to_thread(conversation.about_call, event["call_id"])}
        renderer.show(event)
        if event["type"] == "turn_end":
            conversation.queue.answered()

    async def refresh_queue(self, conversation: Conversation, step: int = 0) -> None:
        """Show the messages that were delivered since, at their place in the conversation."""
        going_on = self.progress.running and not self.progress.stopping
        asked = not self._set_aside and self.approvals.waits_in(conversation)
        for message in await conversation.refresh_queue(step=step, held=not going_on and not asked):
            self._remarks.echo(message.text)
        self._changed()

    def stop(self, conversation: Conversation) -> bool:
        """Stop the agent, which is seen at once; False if it is idle."""
        if not self.running:
            return False
        self.progress.stop()
        conversation.interrupt()
        return True

    async def settle(self) -> None:
        """Wait until the agent is idle."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
