"""The chat as a whole: lines come in, the agent works at the same time, lines go out.

Typing and the agent's work share one event loop. Opening the application takes a moment (models, plugins,
sessions), so it happens in a thread while the first message is typed.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent_core import AgentError
from agent_terminal_app.chat.agent import agent_of_stored
from agent_terminal_app.chat.appearance import Appearance
from agent_terminal_app.chat.attachments import Workspace, gather
from agent_terminal_app.chat.commands.registry import Quit, Talk, load_commands, run_command
from agent_terminal_app.chat.keymap import KeyMap
from agent_terminal_app.chat.questions.dialogue import Dialogue
from agent_terminal_app.chat.rendering.renderer import Remarks
from agent_terminal_app.chat.rendering.screen import Asides
from agent_terminal_app.chat.rendering.text import one_line
from agent_terminal_app.chat.shell import Shell
from agent_terminal_app.chat.work import Work, ask_about_session_in_use, return_draft
from agent_terminal_app.errors import limit_lines
from agent_terminal_app.output import is_terminal
from agent_terminal_app.views.sessions import broken_off_calls, in_chat, limit_of, opening_notices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from agent_app import AgentApplication, SessionHeld
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.picker import Picker
    from agent_terminal_app.chat.rendering.progress import Progress
    from agent_terminal_app.chat.rendering.screen import Screen
    from agent_terminal_app.chat.work import Draft

R = TypeVar("R")

_MOST_SHOWN = 10
"""How many lines are shown of an answer that a crash has cut short."""
_COMMAND = re.compile(r"/[^\s/]*(\s|$)")


class Chat:
    """One chat at the terminal.

    Args:
        open_app: Opens the application; called in a thread.
        screen: Where lines go.
        session_id: The session to continue; by default a new one.
        keys: The keys in force.
        appearance: How it looks.

    Attributes:
        screen: Where lines go.
        keys: The keys in force.
        appearance: How it looks.
        notify: Tells the user's desktop something, where there is one.
        left: Set when the user wants to leave.
        changed: Called when the rows around the prompt may have changed.
    """

    def __init__(
        self,
        open_app: Callable[[], AgentApplication],
        screen: Screen,
        session_id: str | None = None,
        keys: KeyMap | None = None,
        appearance: Appearance | None = None,
    ) -> None:
        self.screen = screen
        self.appearance = appearance or Appearance()
        self.notify: Callable[[str], None] = lambda _text: None
        self.keys = keys or KeyMap.usual()
        self.left = asyncio.Event()
        self.changed: Callable[[], None] = lambda: None
        self._open_app = open_app
        self._session_id = session_id
        self._opening: asyncio.Task[Conversation] | None = None
        self._notices: asyncio.Task[None] | None = None
        self._conversation: Conversation | None = None
        self._workspace: Workspace | None = None
        self._asides = Asides(screen)
        self._remarks = Remarks(self._asides)
        self._work = Work(screen, self._remarks, self._has_changed, self._asides, self._is_done)
        self._shell_commands = Shell(
            self._asides, self._remarks, self._has_changed, self.keys.first("take_back")
        )
        self._dialogue = Dialogue(self._asides, self._command_ended, self._has_changed)
        if screen.is_live or is_terminal(sys.stdin):
            self._work.on_session_in_use = self._session_in_use
        self._turning = asyncio.Lock()
        self._others: set[asyncio.Task[None]] = set()  # so that they are not forgotten before they are done
        self._listening: asyncio.Task[None] | None = None

    def _has_changed(self) -> None:
        self.changed()

    def _is_done(self) -> None:
        """Have a plan approved; tell the desktop of a user who looks elsewhere that the agent is done."""
        conversation = self._conversation
        if conversation is not None and conversation.plan_mode and conversation.plan and self._can_ask:
            self._in_background(self._ask_about_plan(conversation))
        if self.appearance.wants_notice():
            where = Path.cwd().name or "/"  # people have several chats open
            self.notify(f"The agent asks you something in {where}." if self.asking else f"Done in {where}.")
        self._listen()

    # Others in the same session

    def _listen(self) -> None:
        """Wait for what a page or another terminal has the agent do in the session, if a server has it."""
        self._stop_listening()
        conversation = self._conversation
        if conversation is None or conversation.session_id is None or not self.screen.is_live:
            return
        if conversation.server is not None and not self._work.last:
            self._listening = asyncio.create_task(self._wait_for_others(conversation))

    def _stop_listening(self) -> None:
        if self._listening is not None and self._listening is not asyncio.current_task():
            self._listening.cancel()
        self._listening = None

    async def _wait_for_others(self, conversation: Conversation) -> None:
        server, session_id = conversation.server, conversation.session_id
        assert server is not None
        assert session_id is not None
        try:
            begun = await server.wait_for_run(session_id, conversation.seen)
            recent = await asyncio.to_thread(server.read_messages, session_id)
        except AgentError:
            return  # whatever is said next tells that the server is gone
        if conversation.session_id == session_id and not self.running:
            self._remarks.note("answered elsewhere" if begun["resumed"] else "said elsewhere:")
            said = next((one.content for one in reversed(recent) if one.role == "user"), "")
            if not begun["resumed"] and isinstance(said, str):
                self._remarks.echo(said)
            self._work.watch(conversation, begun["seq"] - 1)

    @property
    def _can_ask(self) -> bool:
        """Whether somebody is there who can be asked, and is not being asked something else."""
        has_user = self.screen.is_live or is_terminal(sys.stdin)
        return has_user and not self._work.last and not self.asking and not self._dialogue.running

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        self._others.add(task := asyncio.create_task(work))
        task.add_done_callback(self._others.discard)

    async def _learn_model(self, conversation: Conversation) -> None:
        """Find out which model answers, for the status line."""
        with suppress(AgentError):
            await conversation.reader()
            self.changed()

    async def _ask_about_plan(self, conversation: Conversation) -> None:
        from agent_terminal_app.chat.commands.plan import ask_about_plan  # loaded with the other commands

        await self._dialogue.begin(partial(ask_about_plan, self._talk(conversation)))

    # What is seen around the prompt

    @property
    def conversation(self) -> Conversation | None:
        """The conversation, once the application is open."""
        return self._conversation

    @property
    def progress(self) -> Progress:
        """What the agent does now."""
        return self._work.progress

    @property
    def failure(self) -> int:
        """The exit code of the last request that has failed; 0 if none has."""
        return self._work.failure

    @property
    def running(self) -> bool:
        """Whether the agent is working."""
        return self._work.running

    @property
    def busy(self) -> bool:
        """Whether there is something that Esc stops."""
        return self.running or self._dialogue.running or self._shell_commands.running

    @property
    def asking(self) -> bool:
        """Whether the agent waits for an answer."""
        return self._conversation is not None and self._work.asks(self._conversation)

    @property
    def asks_for_a_line(self) -> bool:
        """Whether a command waits for a line."""
        return self._dialogue.asking

    @property
    def asks_for_a_secret(self) -> bool:
        """Whether that line must neither be shown nor kept."""
        return self._dialogue.asking_for_a_secret

    @property
    def answer_keys(self) -> Mapping[str, str]:
        """The keys that are an answer at once, each with the line that it stands for; often none."""
        if self._dialogue.asking:
            return {key: key for key in self._dialogue.keys}
        if self.asking:
            return self._work.approvals.keys
        return {str(number): f"/{number}" for number in range(1, self.card_choices + 1)}

    @property
    def card_choices(self) -> int:
        """How many choices of the card that was shown last can be taken by their number."""
        conversation = self._conversation
        return 0 if conversation is None or self.busy else conversation.card_choices

    def leave_card(self) -> bool:
        """Let numbers be text again; False if there is no card to choose from."""
        if not self.card_choices or self._conversation is None:
            return False
        self._conversation.card_choices = 0
        return True

    @property
    def is_ready_for_answers(self) -> bool:
        """Whether a question of the agent has been on the screen long enough to be answered."""
        return self._work.approvals.is_ready

    @property
    def shown_question(self) -> str:
        """The id of the question that was shown last; empty if none is open."""
        return self._work.approvals.shown_id if self.asking else ""

    @property
    def picker(self) -> Picker | None:
        """The list that a command has the user choose from, if there is one."""
        return self._dialogue.picker

    def waiting_lines(self) -> list[str]:
        """Return what waits, and what goes with the next message."""
        if self._conversation is None:
            return []
        attached = [one.line() for one in self._conversation.attached]
        keys = self.keys
        waiting = self._conversation.queue.lines(send=keys.first("send"), take_back=keys.first("take_back"))
        return [*attached, *waiting]

    def workspace(self) -> Workspace:
        """Return the files that can be mentioned; called in a thread."""
        root = Path.cwd() if self._conversation is None else self._conversation.folder()
        if self._workspace is None or self._workspace.root != root:
            self._workspace = Workspace(root)
        return self._workspace

    # Opening

    def start(self) -> asyncio.Task[Conversation]:
        """Begin to open the application; called on the event loop."""
        self._opening = asyncio.create_task(self._open())
        return self._opening

    async def ready(self) -> Conversation:
        """Wait until the application is open, and what the session waits for was shown.

        Raises:
            AgentError: If the application cannot be opened.
        """
        assert self._opening is not None
        return await asyncio.shield(self._opening)

    async def _open(self) -> Conversation:
        conversation = await in_own_thread(partial(_open_conversation, self._open_app))
        app = conversation.app
        conversation.keys, conversation.changed = self.keys, self._has_changed
        conversation.appearance = self.appearance
        for problem in app.problems:
            said = "" if problem.takes_part else " was skipped"
            self._remarks.note(f"! plugin {problem.plugin!r}{said}: {one_line(problem.reason)}")
        if self._session_id is not None:
            await self._resume(conversation, self._session_id)
        self._conversation = conversation
        self._listen()
        self._notices = asyncio.create_task(self._show_notices(conversation))
        if "model" in self.appearance.parts:
            self._in_background(self._learn_model(conversation))
        self.changed()
        return conversation

    async def notices_shown(self) -> None:
        """Wait until the plugins' notices at the start were shown."""
        if self._notices is not None:
            await asyncio.wait({self._notices})

    async def _show_notices(self, conversation: Conversation) -> None:
        try:
            found = await in_own_thread(partial(opening_notices, conversation.app, conversation.session_id))
        except AgentError as error:
            self._remarks.fail(error)
            return
        for notice in found:
            todo = in_chat(notice)
            mark = "! " if notice.is_problem else ""
            self._remarks.note(f"{mark}{one_line(notice.text)}{f': {todo}' if todo else ''}")

    async def _resume(self, conversation: Conversation, session_id: str) -> None:
        """Continue a session: show how it ended, and what it waits for."""
        await self._talk(conversation).open_session(session_id)
        await self._show_end(conversation, session_id)
        await self._work.ask(conversation)

    async def _show_end(self, conversation: Conversation, session_id: str) -> None:
        """Say what has stopped a session, if that was a crash or a limit, and let Enter continue."""
        app = conversation.app
        state = await asyncio.to_thread(app.session_state, session_id)
        if state["unfinished"] is not None:
            self._work.can_resume(session_id, "crash")
            await self._tell_of_crash(conversation, state["unfinished"])
        elif reason := await asyncio.to_thread(limit_of, app, session_id, state["last_event"]):
            self._work.can_resume(session_id, reason["code"])
            agent_id = await asyncio.to_thread(agent_of_stored, app, session_id)
            for line in limit_lines(agent_id, reason):
                self._remarks.note(line)

    async def _tell_of_crash(self, conversation: Conversation, unfinished: Mapping[str, Any]) -> None:
        """Say what a crash has cut short, and that Enter asks again."""
        if lost := await asyncio.to_thread(broken_off_calls, unfinished, conversation.preview_of):
            self._remarks.note("! The program ended in the middle of the last answer. The agent will read:")
            for line in lost:
                self._remarks.note(f"!   {line}")
            self._remarks.note("! Enter continues.")
            return
        self._remarks.note("! The program ended before this was answered. Enter asks again.")
        if shown := unfinished["text"].strip().splitlines():
            self._remarks.note("! The answer had begun:")
            for line in shown[-_MOST_SHOWN:]:
                self._remarks.note(f"!   {one_line(line)}")

    # Lines

    def typing(self, text: str) -> None:
        """Note what stands in the input, so that no line answers a question that came while it was typed."""
        self._work.approvals.typing("" if self.asks_for_a_secret else text)

    def pressed(self) -> None:
        """Note that a key was pressed."""
        self._work.approvals.pressed()

    def typed_before(self) -> None:
        """Note that the next line was typed before it could be known what is asked."""
        self._work.approvals.typed_before()

    async def take(
        self, line: str, *, queue: bool = False, shown: str | None = None, seen: str | None = None
    ) -> bool:
        """Take a line that was typed: words, a command, a line for the shell, or the answer to a question.

        Args:
            queue: Whether words wait until the agent has answered, if it is working.
            shown: What is shown of the line, if that is not the line itself.
            seen: Which question was on the screen when the line was sent; None if nobody knows.

        Returns:
            False if it could not be taken; the reason was shown.

        Raises:
            AgentError: If the application cannot be opened.
        """
        await self._dialogue.act_on_choice()
        if self._dialogue.asking:
            self._remarks.echo("(not shown)" if self.asks_for_a_secret else line)
            await self._dialogue.answer(line)
            return True
        conversation = await self.ready()
        conversation.card_choices = 0
        if not line.strip():
            self._work.resume(conversation)
        elif _COMMAND.match(line):
            self._remarks.echo(line)
            await self._command(conversation, line)
        elif line.startswith("!") and line[1:].strip():
            self._remarks.echo(line)
            self._shell_commands.start(conversation, line[1:].strip())
        elif await self._work.has_question(conversation):
            self._remarks.echo(line)
            await self._work.answer(conversation, line, seen)
        else:
            return await self._say(conversation, line, shown or line, queue=queue)
        return True

    async def answer(self, line: str, question: str) -> None:
        """Answer a question by a key, if it is still the one that is open; or choose from a card."""
        conversation = await self.ready()
        if not question:
            await self.take(line)
        elif self.shown_question == question:
            self._remarks.echo(line)
            await self._work.answer(conversation, line, question)

    async def _say(self, conversation: Conversation, text: str, shown: str, *, queue: bool) -> bool:
        try:
            gathered = await gather(conversation, text)
        except AgentError as error:
            self._remarks.fail(error)
            return False
        for missing in gathered.missing:
            self._remarks.note(f"! @{one_line(missing)} is not a file here: sent as text")
        conversation.attached.clear()
        await self._work.say(conversation, text, shown, gathered.attached, queue=queue)
        return True

    async def _session_in_use(self, conversation: Conversation, draft: Draft, in_use: SessionHeld) -> None:
        """Ask what to do with a message for a session that another process uses."""
        if self._dialogue.running:
            self._remarks.fail(in_use)
            self._remarks.note(return_draft(conversation, draft))
            return
        await self._dialogue.begin(
            partial(ask_about_session_in_use, self._talk(conversation), self._work, draft, in_use)
        )

    async def next_mode(self) -> None:
        """Ask before edits from now on, or do not; what waits for just that goes on."""
        conversation = await self.ready()
        async with self._turning:  # of two presses the second turns back what the first has turned
            try:
                self._remarks.note(await asyncio.to_thread(conversation.turn_mode))
            except AgentError as error:
                self._remarks.fail(error)
            await self._work.go_on_if_decided(conversation)

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

    async def _command(self, conversation: Conversation, line: str) -> None:
        if not await self._dialogue.begin(partial(self._run_command, self._talk(conversation), line)):
            self._remarks.note("waits until the command before it has ended; Esc stops both")

    def _talk(self, conversation: Conversation) -> Talk:
        dialogue = self._dialogue
        send = partial(self._work.begin, conversation)
        return Talk(conversation, self._asides, dialogue.ask, dialogue.pick, send)

    async def _run_command(self, talk: Talk, line: str) -> None:
        """Run a command; if it went on to another session, ask what that one waits for."""
        conversation, before = talk.conversation, talk.conversation.session_id
        await run_command(talk, line)
        conversation.forget_front_end()
        await asyncio.to_thread(conversation.edits.look, conversation.session_id)
        if conversation.session_id != before and not self.running:
            if conversation.session_id is not None:
                await self._show_end(conversation, conversation.session_id)
            await self._work.ask(conversation)
            self._listen()

    def _command_ended(self, error: BaseException | None) -> None:
        if isinstance(error, Quit):
            self.left.set()
        elif error is not None:
            self._remarks.fail(error)
        self.changed()

    # Stopping

    def interrupt(self) -> bool:
        """Stop the command, else the shell's line, else the agent, else leave a question aside.

        Returns:
            False if there is nothing to stop.
        """
        if self._dialogue.stop() or self._shell_commands.stop():
            return True
        conversation = self._conversation
        return conversation is not None and (
            self._work.stop(conversation) or self._work.leave_question(conversation)
        )

    async def finish(self) -> None:
        """Wait until the agent is done, and the command as well, or asks something."""
        await self._dialogue.settle()
        await self._shell_commands.settle()
        await self._work.settle()

    async def close(self) -> None:
        """Stop the agent, keep everything, and let go."""
        self._work.last = True
        self._stop_listening()
        while self._dialogue.running:
            self._dialogue.stop()
            await self._dialogue.settle()
        self._shell_commands.stop()
        if self._conversation is not None:
            self._work.stop(self._conversation)
        await self.finish()
        for task in (self._opening, self._notices):
            if task is not None:
                task.cancel()
        if self._conversation is not None:
            self._conversation.app.close()


def _open_conversation(open_app: Callable[[], AgentApplication]) -> Conversation:
    """Open the application; called in a thread, while the user types already.

    The conversation and the commands need most of the program, so they are loaded here: at the top of this
    module they would delay the prompt by half a second.
    """
    from agent_terminal_app.chat.conversation import Conversation

    app = open_app()
    load_commands()
    return Conversation(app)


async def talk_through(chat: Chat, next_line: Callable[[], Awaitable[str | None]], first: str = "") -> None:
    """Take lines one after the other, each answered before the next; for pipes and plain terminals.

    Args:
        first: What is said before the first line; it answers no question, since none was seen.
    """
    chat.typing(first)
    chat.start()
    try:
        await chat.ready()
        await chat.notices_shown()
        if first:
            await chat.take(first)
            chat.typing("")
            await chat.finish()
        while not chat.left.is_set() and (line := await next_line()) is not None:
            await chat.take(line)
            await chat.finish()
    finally:
        await chat.close()


async def in_own_thread(work: Callable[[], R]) -> R:
    """Run something slow in a daemon thread, which does not delay the exit, and return its result."""
    done: Future[R] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # it is raised where the result is awaited
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
