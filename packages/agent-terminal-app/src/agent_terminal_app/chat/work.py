"""The agent at work: one request after the other, what waits meanwhile, and what it asks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_core.log import get_logger
from agent_terminal_app.chat.approvals import Approvals
from agent_terminal_app.chat.progress import Progress
from agent_terminal_app.chat.rendering import Renderer
from agent_terminal_app.chat.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

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
    """

    def __init__(self, screen: Screen, remarks: Remarks, changed: Callable[[], None]) -> None:
        self.progress = Progress(changed)
        self.approvals = Approvals(screen)
        self.last = False
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

    def begin(self, conversation: Conversation, text: str, attached: Sequence[Attachment] = ()) -> None:
        """Say something to the agent, which is at rest; without words it goes on with what waits."""
        self._task = asyncio.create_task(self._run(conversation, text, attached))

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
        await self.approvals.ask(conversation)
        await self.look_at_waiting(conversation)

    async def answer(self, conversation: Conversation, line: str) -> None:
        """Take a line as the answer to the question that is open."""
        if await self.approvals.take(conversation, line):
            self.begin(conversation, "")
        await self.look_at_waiting(conversation)

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

    async def _run(self, conversation: Conversation, text: str, attached: Sequence[Attachment]) -> None:
        renderer = Renderer(self._screen, conversation.folds, self.progress)
        self._set_aside = self._ended_well = False
        self.progress.begin()
        try:
            if not await conversation.say(text, partial(self._show, conversation, renderer), attached):
                self._remarks.note("stopped before it was sent; Up brings your words back")
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
        self._task, self._ended_well = None, renderer.ended_well
        self._go_on(conversation)

    async def _show(self, conversation: Conversation, renderer: Renderer, event: Mapping[str, Any]) -> None:
        if event["type"] in _BOUNDARIES:
            renderer.end()
            if conversation.waiting:
                await self.look_at_waiting(conversation, event.get("round", 0))
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
