"""The chat as a whole: lines come in, the agent works beside them, lines go out.

What is typed and what the agent does happen at the same time, on one event loop. Opening the application
takes a moment (models, plugins, sessions), so that happens in a thread while the first words are typed.
"""

from __future__ import annotations

import asyncio
import re
import threading
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_core.log import get_logger
from agent_terminal_app.chat.approvals import Approvals
from agent_terminal_app.chat.attachments import Attachment, check_together, read_file
from agent_terminal_app.chat.conversation import Conversation
from agent_terminal_app.chat.dialogue import Dialogue
from agent_terminal_app.chat.inline import wrapped
from agent_terminal_app.chat.mentions import find_mentions
from agent_terminal_app.chat.progress import Progress
from agent_terminal_app.chat.rendering import Renderer
from agent_terminal_app.chat.shell_line import ShellLine
from agent_terminal_app.chat.text import clean, one_line, styled
from agent_terminal_app.chat.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from agent_app import AgentApplication
    from agent_terminal_app.chat.commands import Talk
    from agent_terminal_app.chat.screen import Screen

_log = get_logger("chat")
_COMMAND = re.compile(r"/[^\s/]*(\s|$)")
_BOUNDARIES = ("step_start", "turn_end", "final", "error")


class Chat:
    """One sitting at the terminal.

    Args:
        open_app: Opens the application; called in a thread.
        screen: Where lines go.
        session_id: The session to go on with; by default a new one.

    Attributes:
        progress: What goes on now.
        left: Set when the person wants to leave.
        changed: Called when there is something else to show around the prompt.
    """

    def __init__(
        self, open_app: Callable[[], AgentApplication], screen: Screen, session_id: str | None = None
    ) -> None:
        self._open_app = open_app
        self._screen = screen
        self._session_id = session_id
        self._conversation: Conversation | None = None
        self._working: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[Conversation] | None = None
        self._approvals = Approvals(screen)
        self._set_aside = False
        self._ended_well = False
        self._is_closing = False
        self._dialogue = Dialogue(screen, self._command_ended)
        self._shell = ShellLine(screen.line)
        self._shelling: asyncio.Task[None] | None = None
        self._workspace: Workspace | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # so that they are not forgotten before they are done
        self.changed: Callable[[], None] = lambda: None
        self.progress = Progress(self._progress_changed)
        self.left = asyncio.Event()

    def _progress_changed(self) -> None:
        self.changed()

    # What others ask

    @property
    def screen(self) -> Screen:
        """Where lines go."""
        return self._screen

    @property
    def running(self) -> bool:
        """Whether the agent is at work."""
        return self._working is not None and not self._working.done()

    @property
    def busy(self) -> bool:
        """Whether there is something that Esc stops."""
        return self.running or self._dialogue.running or self._is_shelling

    @property
    def _is_shelling(self) -> bool:
        return self._shelling is not None and not self._shelling.done()

    @property
    def asking(self) -> bool:
        """Whether the agent waits for an answer."""
        return self._conversation is not None and not self.running and self._waits(self._conversation)

    @property
    def asks_for_a_line(self) -> bool:
        """Whether a command waits for a line."""
        return self._dialogue.asking

    @property
    def conversation(self) -> Conversation | None:
        """The conversation, once the application is open."""
        return self._conversation

    def workspace(self) -> Workspace:
        """Return the files that can be mentioned; called in a thread."""
        root = Path.cwd() if self._conversation is None else self._conversation.folder()
        if self._workspace is None or self._workspace.root != root:
            self._workspace = Workspace(root)
        return self._workspace

    def waiting_lines(self) -> list[str]:
        """Return what waits, and what goes with the next message."""
        if self._conversation is None:
            return []
        attached = [one.line() for one in self._conversation.attached]
        return [*attached, *self._conversation.waiting.lines()]

    # Opening

    def start(self) -> asyncio.Task[Conversation]:
        """Begin to open the application; called on the event loop."""
        self._opening = asyncio.create_task(self._open())
        return self._opening

    async def ready(self) -> None:
        """Wait until the application is open, and what the session waits for was shown."""
        await self._opened()

    async def _open(self) -> Conversation:
        app = await _in_own_thread(self._open_app)
        await asyncio.to_thread(import_module, "agent_terminal_app.chat.own_commands")  # registers them
        conversation = Conversation(app)
        for problem in app.problems:
            self._note(f"! plugin {problem.plugin!r} is left out: {one_line(problem.reason)}")
        if self._session_id is not None:
            await conversation.go_to(self._session_id)
            await self._approvals.ask(conversation)
        self._conversation = conversation
        self.changed()
        return conversation

    async def _opened(self) -> Conversation:
        assert self._opening is not None
        return await asyncio.shield(self._opening)

    # Lines

    def typing(self, text: str) -> None:
        """Note what stands in the input, so that no line answers a question that came while it was typed."""
        self._approvals.typing(text)

    def typed_before(self) -> None:
        """Note that the next line was typed before it could be known what is asked."""
        self._approvals.typed_before()

    async def take(self, line: str, *, queue: bool = False, shown: str | None = None) -> bool:
        """Take a line that was typed: words, a command, a line for the shell, or the answer to a question.

        Args:
            queue: Whether words wait until the agent has answered, if it is at work.
            shown: What is shown of the line, if that is not the line itself.

        Returns:
            False if it could not be taken; why is told.

        Raises:
            AgentError: If the application cannot be opened.
        """
        if self._dialogue.asking:
            self._echo(line)
            await self._dialogue.answer(line)
            return True
        conversation = await self._opened()
        if not line.strip():
            await self._send_held(conversation)
        elif _COMMAND.match(line):
            self._echo(line)
            await self._command(conversation, line)
        elif line.startswith("!") and line[1:].strip():
            self._echo(line)
            self._run_shell(conversation, line[1:].strip())
        elif await self._has_question(conversation):
            self._echo(line)
            await self._answer(conversation, line)
        else:
            return await self._say(conversation, line, shown or line, queue=queue)
        return True

    async def _say(self, conversation: Conversation, text: str, shown: str, *, queue: bool) -> bool:
        try:
            attached = await self._gather(conversation, text)
        except AgentError as error:
            self._fail(error)
            return False
        conversation.attached.clear()
        if self.running:
            await asyncio.to_thread(conversation.add, text, "queue" if queue else "steer", attached)
            await self._look_at_waiting(conversation)
            self._go_on(conversation)
            if not self._screen.is_live:
                self._note(f"{'queued' if queue else 'will be read after this step'}: {one_line(text)}")
        else:
            self._echo(shown)
            self._work(conversation, text, attached)
        return True

    async def _gather(self, conversation: Conversation, text: str) -> list[Attachment]:
        """Return everything that goes with a text: what was attached, and the files that it mentions.

        Raises:
            NotAttached: If one of these cannot be sent.
        """
        attached = list(conversation.attached)
        if "@" in text:
            root = await asyncio.to_thread(conversation.folder)
            mentions = await asyncio.to_thread(find_mentions, text, [Path.cwd(), root])
            attached += [await asyncio.to_thread(read_file, path) for path in mentions.files]
            for missing in mentions.missing:
                self._note(f"! @{one_line(missing)} is no file here: sent as words")
        check_together(attached)
        return attached

    async def _send_held(self, conversation: Conversation) -> None:
        if not self.running and conversation.waiting.held:
            self._work(conversation, "")

    async def _answer(self, conversation: Conversation, line: str) -> None:
        if await self._approvals.take(conversation, line):
            self._work(conversation, "")
        await self._look_at_waiting(conversation)

    def _waits(self, conversation: Conversation) -> bool:
        """Say whether the person was asked something and has not answered, nor left it."""
        return not self._set_aside and self._approvals.waits_in(conversation)

    async def _has_question(self, conversation: Conversation) -> bool:
        if self._set_aside or self.running:
            return False
        return self._waits(conversation) or bool(await asyncio.to_thread(conversation.questions))

    async def take_back(self) -> str | None:
        """Take the last message back that waits, or what goes with the next one; return the text of it."""
        conversation = self._conversation
        if conversation is None:
            return None
        text = await conversation.take_back()
        if text is None and conversation.attached:
            conversation.attached.pop()
            text = ""
        self.changed()
        return text

    # Commands

    async def _command(self, conversation: Conversation, line: str) -> None:
        if self._dialogue.running:
            self._note("another command is at work; Esc stops it")
            return
        from agent_terminal_app.chat.commands import Talk  # loaded by now: see `_open`

        talk = Talk(conversation, self._screen, self._dialogue.ask, partial(self._work, conversation))
        await self._dialogue.begin(self._run_command(talk, line))

    async def _run_command(self, talk: Talk, line: str) -> None:
        """Run a command; if it went on to another session, ask what that one waits for."""
        conversation, before = talk.conversation, talk.conversation.session_id
        from agent_terminal_app.chat.commands import run_command

        await run_command(talk, line)
        conversation.forget_front_end()
        if conversation.session_id != before and not self.running:
            self._set_aside = False
            await self._approvals.ask(conversation)
            await self._look_at_waiting(conversation)

    def _command_ended(self, error: BaseException | None) -> None:
        from agent_terminal_app.chat.commands import Quit

        if isinstance(error, Quit):
            self.left.set()
        elif error is not None:
            self._fail(error)
        self.changed()

    def _run_shell(self, conversation: Conversation, command: str) -> None:
        if self._is_shelling:
            self._note("another command runs; Esc stops it")
            return
        self._shelling = asyncio.create_task(self._shell_out(conversation, command))

    async def _shell_out(self, conversation: Conversation, command: str) -> None:
        try:
            ran = await self._shell.run(command, await asyncio.to_thread(conversation.folder))
        except OSError as error:
            self._fail(error)
            return
        conversation.attached.append(ran.attachment())
        self._note(ran.line())
        self.changed()

    # The agent

    def _work(self, conversation: Conversation, text: str, attached: Sequence[Attachment] = ()) -> None:
        self._working = asyncio.create_task(self._run(conversation, text, attached))

    async def _run(self, conversation: Conversation, text: str, attached: Sequence[Attachment]) -> None:
        renderer = Renderer(self._screen, conversation.folds, self.progress)
        show = partial(self._show, conversation, renderer)
        self._set_aside = self._ended_well = False
        self.progress.begin()
        try:
            if not await conversation.say(text, show, attached):
                self._note("stopped before it was sent; Up brings your words back")
        except AgentError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a mistake in one turn must not end the whole sitting
            _log.error("turn_failed", error=repr(error))
            self._fail(error)
        finally:
            renderer.end()
            self.progress.end()
        await self._approvals.ask(conversation)
        await self._look_at_waiting(conversation)
        conversation.waiting.answered()
        self.changed()
        self._working, self._ended_well = None, renderer.ended_well
        self._go_on(conversation)

    def _go_on(self, conversation: Conversation) -> None:
        """Send what came in the moment in which the agent had answered, and did not look any more."""
        if self._ended_well and conversation.waiting and not self.running and not self._is_closing:
            self._work(conversation, "")

    async def _show(self, conversation: Conversation, renderer: Renderer, event: Mapping[str, Any]) -> None:
        if event["type"] in _BOUNDARIES:
            renderer.end()
            if conversation.waiting:
                await self._look_at_waiting(conversation, event.get("round", 0))
        renderer.show(event)
        if event["type"] == "turn_end":
            conversation.waiting.answered()

    async def _look_at_waiting(self, conversation: Conversation, step: int = 0) -> None:
        """Show the messages that were delivered meanwhile, where they stand in the conversation."""
        going_on = self.progress.running and not self.progress.stopping
        held = not going_on and not self._waits(conversation)
        for message in await conversation.refresh_waiting(step=step, held=held):
            self._echo(message.text)
        self.changed()

    # Stopping

    def interrupt(self) -> bool:
        """Stop the command, else the shell's line, else the agent, else leave a question aside.

        Returns:
            False if there is nothing to stop.
        """
        return self._dialogue.stop() or self._stop_shell() or self._stop_agent() or self._leave_question()

    def _stop_shell(self) -> bool:
        if self._shelling is None or self._shelling.done():
            return False
        if not self._shell.stop():
            self._shelling.cancel()
            self._shelling = None
            self._note("stopped before it ran")
        return True

    def _stop_agent(self) -> bool:
        if not self.running or self._conversation is None:
            return False
        self.progress.stop()
        return self._conversation.interrupt() or self.running

    def _leave_question(self) -> bool:
        if not self.asking:
            return False
        self._set_aside = True
        self._note("the call is not run; say what to do instead")
        assert self._conversation is not None
        self._beside(self._look_at_waiting(self._conversation))
        return True

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until the agent is done, and the command as well, or asks something."""
        await self._dialogue.settle()
        while tasks := [
            task for task in (self._shelling, self._working) if task is not None and not task.done()
        ]:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Stop the agent, keep everything, and let go."""
        self._is_closing = True
        while self._dialogue.running:
            self._dialogue.stop()
            await self._dialogue.settle()
        self._stop_shell()
        self._stop_agent()
        await self.finish()
        if self._opening is not None:
            self._opening.cancel()
        if self._conversation is not None:
            self._conversation.app.close()

    # Showing

    def _echo(self, text: str) -> None:
        """Show what was typed where it belongs, if the prompt that it was typed into is gone by then."""
        if self._screen.is_live:
            first, *more = clean(text).split("\n")
            for line in (f"» {first}", *(f"  {line}" for line in more)):
                self._screen.line(styled(line, "bold", color=self._screen.color))

    def _fail(self, error: BaseException) -> None:
        text = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
        for line in wrapped(f"Error: {clean(text)}", self._screen.width):
            self._screen.line(styled(line, "red", color=self._screen.color))

    def _note(self, text: str) -> None:
        for line in wrapped(text, self._screen.width):
            self._screen.line(styled(line, "dim", color=self._screen.color))


async def talk_through(chat: Chat, next_line: Callable[[], Awaitable[str | None]]) -> None:
    """Take lines one after the other, each answered before the next; for pipes and plain terminals."""
    chat.start()
    try:
        await chat.ready()
        while not chat.left.is_set() and (line := await next_line()) is not None:
            await chat.take(line)
            await chat.finish()
    finally:
        await chat.close()


async def _in_own_thread(work: Callable[[], Any]) -> Any:
    """Do something in a thread that keeps nobody from leaving."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(method: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            method(value)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
            found = (done.set_exception, error)
        else:
            found = (done.set_result, result)
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, *found)

    threading.Thread(target=run, name="opening", daemon=True).start()
    return await done
