"""The prompt: always there, with keys, completion and history, below the conversation.

It is an application that draws a few rows below what was written, never the whole terminal. Lines that are
sent are handed to the chat one after the other, so that typing goes on while they are processed.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import termios
import time
from contextlib import suppress
from select import select
from typing import TYPE_CHECKING, Any

from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from agent_terminal_app.chat.appearance import notice
from agent_terminal_app.chat.prompt.input_line import InputLine, Line
from agent_terminal_app.chat.prompt.keys import LONGEST_PASTE, chat_keys, open_keyboard
from agent_terminal_app.chat.prompt.layout import STYLE, PromptLayout
from agent_terminal_app.chat.prompt.pager import Pager
from agent_terminal_app.chat.prompt.screen import PromptApplication, PromptScreen, Redraw
from agent_terminal_app.chat.rendering.renderer import Remarks
from agent_terminal_app.chat.rendering.screen import on_signals, prints_as_lines
from agent_terminal_app.output import this_command

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.chat.loop import Chat

__all__ = ["Prompt", "PromptScreen", "run_prompt"]

_ESCAPE = 0.04
"""For how many seconds an Esc may still be the beginning of another key."""

_TWICE = 0.8
"""Within how many seconds a second Esc belongs to the first."""

_AGAIN = 2.0
"""Within how many seconds a second Ctrl+C leaves."""

_CHORD = 1.0
"""For how many seconds the first of two keys, as Ctrl+X Ctrl+E, waits for the second."""

_QUIET, _LONGEST_DROP = 0.15, 2.0
"""Leaving by Ctrl+C drops input until none has come for so many seconds, and how long that takes at most."""
_PATIENCE = 5.0
"""For how many seconds the agent may tidy up at the end."""

_HUNG_UP, _INTERRUPTED = 129, 130


class Prompt:
    """The prompt of one chat.

    Args:
        chat: What takes the lines.
        screen: Where everything is shown that is not the prompt.
        history: Where what was typed is kept; None for nowhere.

    Attributes:
        chat: What takes the lines.
        line: What is typed.
        layout: What stands around it.
        code: The exit code.
    """

    def __init__(self, chat: Chat, screen: PromptScreen, history: Path | None) -> None:
        self.chat = chat
        self.code = 0
        self.line = InputLine(chat, history)
        self.layout = PromptLayout(chat, self.line.buffer)
        self._screen = screen
        self._remarks = Remarks(screen)
        self._lines: asyncio.Queue[Line] = asyncio.Queue()
        self._taking: asyncio.Task[None] | None = None
        self._escaped = 0.0
        self._was_interrupted = False
        self.line.buffer.on_text_changed += lambda _buffer: self._stay()
        self._application = self._make_application()
        self._pager = Pager(self._application, screen)
        self._redraw = Redraw(self.layout.seen, self._application.invalidate, lambda: chat.progress.running)
        self._application.before_render += lambda _application: self._before_render()

    def _before_render(self) -> None:
        self.layout.focus(self._application.layout)
        self._redraw.is_drawn()

    def _make_application(self) -> PromptApplication:
        application = PromptApplication(
            layout=self.layout.layout(),
            style=STYLE,
            key_bindings=chat_keys(self, self.chat.keys),
            color_depth=lambda: ColorDepth.DEPTH_4_BIT if self._screen.color else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            input=open_keyboard(),
            output=open_terminal(),
        )
        application.ttimeoutlen = _ESCAPE
        # A list may have been opened or closed since everything was drawn; the key is for what is there now.
        application.key_processor.before_key_press += lambda _keys: self.layout.focus(application.layout)
        application.key_processor.after_key_press += lambda _keys: self._key_was_pressed()
        return application

    def _key_was_pressed(self) -> None:
        self.chat.pressed()
        self._be_quick_with_escape()

    def _be_quick_with_escape(self) -> None:
        """Let an Esc count at once that nothing followed: the keyboard has waited for that already."""
        begun = self._application.key_processor.key_buffer
        only_escape = len(begun) == 1 and begun[0].key == "escape"
        self._application.timeoutlen = _ESCAPE / 5 if only_escape else _CHORD

    async def run(self) -> None:
        """Read lines until the user leaves, or the terminal is gone.

        Raises:
            AgentError: If the application cannot be opened.
            EOFError: If the terminal is gone.
        """
        self.chat.start().add_done_callback(self._opened)
        self.chat.changed = self._look_again
        self.chat.notify = self._notify
        self._screen.attach(self._application, asyncio.get_running_loop())
        helpers = [asyncio.create_task(self._take_lines()), asyncio.create_task(self._leave_when_asked())]
        for helper in helpers:
            helper.add_done_callback(self._ended)
        try:
            self._screen.report_focus()
            await self._application.run_async(set_exception_handler=False, handle_sigint=False)
        finally:
            self.chat.changed = lambda: None
            self._redraw.stop()
            for helper in helpers:
                helper.cancel()
            self._screen.detach()

    def _look_again(self) -> None:
        if self.layout.is_list_new(self._application.layout):  # its keys must not go to the prompt
            self._application.invalidate()
        self._redraw.look_again()

    def _notify(self, text: str) -> None:
        output = self._application.output
        output.write_raw(notice(text))
        output.flush()

    def focus_is(self, *, there: bool) -> None:
        """Note whether the user looks at the terminal."""
        self.chat.appearance.has_focus = there

    def _opened(self, opening: asyncio.Task[Any]) -> None:
        self._ended(opening)
        if self.chat.conversation is not None:
            self.chat.conversation.fill = self.line.fill

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """End the prompt with the error of a task that runs alongside it, if there is one."""
        error = None if task.cancelled() else task.exception()
        if error is not None and self._is_there:
            self._application.exit(exception=error)

    @property
    def _is_there(self) -> bool:
        return self._application.is_running and not self._application.is_done

    # What the keys do

    def send(self, *, queue: bool = False) -> None:
        """Send what is typed."""
        line = self.line.take(queue=queue)
        if line.secret:
            self.line.forget()
        self._lines.put_nowait(line)

    def answer(self, key: str) -> None:
        """Answer the question of the agent by a key."""
        line = self.chat.answer_keys[key]
        self._lines.put_nowait(Line(line, line, question=self.chat.shown_question, is_key=True))

    def say_first(self, text: str) -> None:
        """Say something as soon as the chat is open; it answers no question, since none was seen."""
        self.chat.typing(text)
        self._lines.put_nowait(Line(text, text))

    def run_command(self, command: str) -> None:
        """Run a command without typing it."""
        self._lines.put_nowait(Line(command, command))

    def interrupt(self) -> bool:
        """Stop the current work, also a line that waits for the application; False if there is nothing."""
        if self.chat.conversation is None and self._taking is not None:
            return self._taking.cancel()
        was_hidden = self.chat.asks_for_a_secret
        stopped = self.chat.interrupt()
        if was_hidden:  # what was begun would be seen now
            self.line.forget()
        return stopped

    def escape(self) -> None:
        """Close what is open, else stop the current work; pressed twice with nothing typed, rewind."""
        last, self._escaped = self._escaped, 0.0
        if self.line.buffer.complete_state is not None:
            self.line.buffer.cancel_completion()
        elif self.layout.pane.is_open:
            self.layout.pane.close()
        elif not self.line.buffer.text and self.chat.leave_card():
            self._application.invalidate()
        elif not self.interrupt() and not self.line.buffer.text:
            now = time.monotonic()
            if now - last < _TWICE:
                self.run_command("/rewind list")
            else:
                self._escaped = now

    def end_by_signal(self, code: int) -> None:
        """End the prompt, unless the signal is Ctrl+C in a pager, which is for the pager."""
        if not (self._pager.is_open and code == _INTERRUPTED):
            self.leave(code)

    def leave(self, code: int = 0) -> None:
        """End the prompt, and the pager that has the terminal."""
        self.code = code
        self._pager.stop()
        if self._is_there:
            self._application.exit()

    def leave_if_asked_twice(self) -> None:
        """Leave, if this was asked for a moment ago; else say that once more leaves.

        Who presses Ctrl+C a little too late, to stop the agent, stays in the chat.
        """
        if self.layout.notice:
            self._was_interrupted = True
            self.leave()
            return
        self.layout.notice = f"{self.chat.keys.first('interrupt') or 'Ctrl+C'} again to leave"
        self._application.invalidate()
        asyncio.get_running_loop().call_later(_AGAIN, self._stay)

    def _stay(self) -> None:
        if self.layout.notice:
            self.layout.notice = ""
            self._application.invalidate()

    def forget_typed_ahead(self) -> None:
        """Drop what is pasted or typed after the Ctrl+C that has left, up to the end of this process.

        The shell would run it.
        """
        if self._was_interrupted and sys.stdin.isatty():
            drop_input(sys.stdin.fileno())
            atexit.register(drop_input, sys.stdin.fileno())

    def suspend(self) -> None:
        """Give the shell the terminal, until the user comes back."""
        self._screen.report_focus(on=False)
        self._application.suspend_to_background()
        self._screen.report_focus()

    def take_back(self) -> None:
        """Take the last message back that waits."""
        self._application.create_background_task(self._take_back())

    async def _take_back(self) -> None:
        if text := await self.chat.take_back():
            self.line.fill(text)
        self._application.invalidate()

    def next_mode(self) -> None:
        """Ask before edits from now on, or do not, as soon as there is anything to ask about."""
        if self.chat.conversation is not None:
            self._application.create_background_task(self.chat.next_mode())

    def show_transcript(self) -> None:
        """Show the whole session in a pager."""
        conversation = self.chat.conversation
        if conversation is None or conversation.session_id is None:
            self._remarks.note("nothing has been said yet")
        else:
            self._pager.show(conversation.app, conversation.session_id)

    def paste(self, text: str) -> None:
        self.line.paste(text)
        if len(text) >= LONGEST_PASTE:
            limit = f"only the first {LONGEST_PASTE:,} characters are pasted"
            self._remarks.note(f"{limit}; a file can be attached: @FILE")

    def edit(self) -> None:
        """Edit what is typed in an editor; lines that come in between are shown afterwards."""
        self._screen.hold()
        self.line.buffer.open_in_editor().add_done_callback(lambda _task: self._screen.release())

    # What happens alongside the keys

    async def _take_lines(self) -> None:
        """Hand the lines over, one after the other."""
        while True:
            line = await self._lines.get()
            self._taking = asyncio.create_task(self._take(line))
            await asyncio.wait([self._taking])
            if self._taking.cancelled():
                self._give_back(line)
            else:
                self._taking.result()
            self._taking = None

    async def _take(self, line: Line) -> None:
        if line.secret and not self.chat.asks_for_a_secret:
            self._remarks.note("no question is open any more; what you typed was discarded")
        elif line.is_key:
            await self.chat.answer(line.text, line.question)
        elif not await self.chat.take(line.text, queue=line.queue, shown=line.shown, seen=line.question):
            self._give_back(line)
        # Only now: until then the chat must know whether the line was begun before a question came.
        self.chat.typing(self.line.buffer.text)

    def _give_back(self, line: Line) -> None:
        self.line.give_back(line)
        self._application.invalidate()

    async def _leave_when_asked(self) -> None:
        await self.chat.left.wait()
        self.leave()


def drop_input(terminal: int) -> None:
    """Drop what was typed, unseen, until nothing has come for a moment: a paste comes in several pieces."""
    until = time.monotonic() + _LONGEST_DROP
    with suppress(OSError, ValueError, termios.error):
        before = termios.tcgetattr(terminal)
        unseen = [*before]
        unseen[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(terminal, termios.TCSANOW, unseen)
        try:
            while time.monotonic() < until and select([terminal], [], [], _QUIET)[0]:
                if not os.read(terminal, 65_536):
                    break
        finally:
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def open_terminal() -> Vt100_Output:
    """Return the terminal to draw on; it is never asked where its cursor is, since some do not answer."""
    terminal = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM", ""), enable_bell=False)
    terminal.enable_cpr = False
    return terminal


async def run_prompt(chat: Chat, history: Path | None, first: str = "") -> int:
    """Read lines from the terminal until the user leaves; the agent works at the same time.

    Args:
        history: Where what was typed is kept; None for nowhere.
        first: What is said before anything is typed.

    Returns:
        The exit code.

    Raises:
        AgentError: If the application cannot be opened.
    """
    screen = chat.screen
    assert isinstance(screen, PromptScreen)
    prompt = Prompt(chat, screen, history)
    if first:
        prompt.say_first(first)
    with on_signals(prompt.end_by_signal):
        try:
            with prints_as_lines(screen):
                await prompt.run()
        except (EOFError, OSError, termios.error):  # the terminal is gone, and so is whom to tell
            prompt.code = prompt.code or _HUNG_UP
            screen.mute()
        finally:
            with suppress(TimeoutError):
                await asyncio.wait_for(chat.close(), _PATIENCE)
            with suppress(OSError, termios.error):
                prompt.forget_typed_ahead()
    if line := _how_to_go_on(chat):
        Remarks(screen).note(line)
    return prompt.code


def _how_to_go_on(chat: Chat) -> str:
    """Return how the session is resumed, if it is kept anywhere."""
    conversation = chat.conversation
    if conversation is None or conversation.session_id is None or conversation.app.is_ephemeral:
        return ""
    return f"resume with: {this_command()} chat --session {conversation.session_id}"
