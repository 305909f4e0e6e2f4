"""The agent at work: one request after the other, what waits meanwhile, and what it asks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_app import SessionHeld
from agent_core import AgentError
from agent_core.log import get_logger
from agent_terminal_app.chat.approvals import Approvals
from agent_terminal_app.chat.held import Words, give_back
from agent_terminal_app.chat.progress import Progress
from agent_terminal_app.chat.rendering import Renderer
from agent_terminal_app.chat.text import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from agent_terminal_app.chat.attachments import Attachment
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.remarks import Remarks
    from agent_terminal_app.chat.screen import Screen

_BOUNDARIES = ("step_start", "turn_end", "final", "error")
"""The events at which messages that waited may have been delivered."""

_log = get_logger("chat")


class Work:
    """What the agent does, and what can be said to it meanwhile.

    Args:
        screen: Where it is shown.
        remarks: Says what happens around it.
        changed: Called when there is something else to show around the prompt.

    Attributes:
        progress: What goes on now.
        approvals: What is asked.
        last: Whether no further request shall begin by itself.
        held: Called with words that were not said, since another process has the session.
    """

    def __init__(self, screen: Screen, remarks: Remarks, changed: Callable[[], None]) -> None:
        self.progress = Progress(changed)
        self.approvals = Approvals(screen)
        self.last = False
        self.held: Callable[[Conversation, Words, SessionHeld], Awaitable[None]] = self._refuse
        self._screen = screen
        self._remarks = remarks
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()  # so that they are not forgotten before they are done
        self._ended_well = False
        self._set_aside = False

    @property
    def running(self) -> bool:
        """Whether the agent is at work."""
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
        """Say something to the agent, which is at rest; without words it goes on with what waits.

        Args:
            take_over: Whether the session is taken from another process that has it.
        """
        words = Words(text, attached)
        saying = partial(self._say_words, conversation, words, take_over=take_over)
        self._task = asyncio.create_task(self._run(conversation, saying, words))

    def watch(self, conversation: Conversation) -> None:
        """Show what another process does with the session, and go on here if it leaves anything."""
        self._task = asyncio.create_task(
            self._run(conversation, partial(self._watch, conversation), Words(""))
        )

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
        elif conversation.waiting.held:  # what was said first is read first
            await self._keep(conversation, text, attached, queue=True)
            self.begin(conversation, "")
        else:
            self._remarks.echo(shown)
            self.begin(conversation, text, attached)

    def send_held(self, conversation: Conversation) -> None:
        """Send what is held back, if anything is."""
        if not self.running and conversation.waiting.held:
            self.begin(conversation, "")

    async def _keep(
        self, conversation: Conversation, text: str, attached: Sequence[Attachment], *, queue: bool
    ) -> None:
        """Keep words until they can be delivered; they are safe then."""
        await asyncio.to_thread(conversation.add, text, "queue" if queue else "steer", attached)
        await self.look_at_waiting(conversation)
        if not self._screen.is_live:
            self._remarks.note(f"{'queued' if queue else 'will be read after this step'}: {one_line(text)}")

    def _go_on(self, conversation: Conversation) -> None:
        """Send what came in the moment in which the agent had answered, and did not look any more."""
        if self._ended_well and conversation.waiting and not self.running and not self.last:
            self.begin(conversation, "")

    async def _refuse(self, conversation: Conversation, words: Words, held: SessionHeld) -> None:
        """Say that another process has the session, where nobody can be asked what to do about it."""
        self._remarks.fail(held)
        self._remarks.note(give_back(conversation, words))

    # Questions

    def asks(self, conversation: Conversation) -> bool:
        """Say whether the person was asked something and has not answered, nor left it."""
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
        await self.look_at_waiting(conversation)

    async def answer(self, conversation: Conversation, line: str) -> None:
        """Take a line as the answer to the question that is open."""
        if await self.approvals.take(conversation, line):
            self.begin(conversation, "")
        await self.look_at_waiting(conversation)

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
        self._beside(self.look_at_waiting(conversation))
        return True

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    # The work itself

    async def _run(
        self, conversation: Conversation, talking: Callable[[Renderer], Awaitable[None]], words: Words
    ) -> None:
        renderer = Renderer(self._screen, conversation.folds, self.progress)
        self._set_aside = self._ended_well = False
        self.progress.begin()
        held: SessionHeld | None = None
        try:
            await talking(renderer)
        except SessionHeld as error:
            held = error
        except AgentError as error:
            self._remarks.fail(error)
        except Exception as error:  # noqa: BLE001 - a mistake in one turn must not end the whole sitting
            _log.error("turn_failed", error=repr(error))
            self._remarks.fail(error)
        finally:
            renderer.end()
            self.progress.end()
        await self.ask(conversation)
        conversation.waiting.answered()
        self._changed()
        if held is not None:
            await self.held(conversation, words, held)
        if self._task is asyncio.current_task():  # else the answer to that has begun something else
            self._task, self._ended_well = None, renderer.ended_well
            self._go_on(conversation)

    async def _say_words(
        self, conversation: Conversation, words: Words, renderer: Renderer, *, take_over: bool
    ) -> None:
        show = partial(self._show, conversation, renderer)
        if not await conversation.say(words.text, show, words.attached, take_over=take_over):
            self._remarks.note("stopped before it was sent; Up brings your words back")

    async def _watch(self, conversation: Conversation, renderer: Renderer) -> None:
        await self.look_at_waiting(conversation)
        if await conversation.follow(partial(self._show, conversation, renderer)):
            renderer.ended_well = True
        elif self.progress.stopping:
            self._remarks.note("it goes on there; what you queued is answered there")

    async def _show(self, conversation: Conversation, renderer: Renderer, event: Mapping[str, Any]) -> None:
        if event["type"] in _BOUNDARIES:
            renderer.end()
            if conversation.waiting:
                await self.look_at_waiting(conversation, event.get("round", 0))
        if event["type"] == "tool_call_result" and not renderer.has_begun(event["call_id"]):
            arguments = await asyncio.to_thread(conversation.arguments_of, event["call_id"])
            event = {**event, "arguments": arguments}
        renderer.show(event)
        if event["type"] == "turn_end":
            conversation.waiting.answered()

    async def look_at_waiting(self, conversation: Conversation, step: int = 0) -> None:
        """Show the messages that were delivered meanwhile, where they stand in the conversation."""
        going_on = self.progress.running and not self.progress.stopping
        asked = not self._set_aside and self.approvals.waits_in(conversation)
        for message in await conversation.refresh_waiting(step=step, held=not going_on and not asked):
            self._remarks.echo(message.text)
        self._changed()

    def stop(self, conversation: Conversation) -> bool:
        """Stop the agent, which is seen at once; False if it is at rest."""
        if not self.running:
            return False
        self.progress.stop()
        conversation.interrupt()
        return True

    async def settle(self) -> None:
        """Wait until the agent is at rest."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
