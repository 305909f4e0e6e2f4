"""What is typed: a prompt that is always there, with keys, completion and history, below the chat."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from agent_terminal_app.chat.above import PromptScreen
from agent_terminal_app.chat.bindings import chat_keys
from agent_terminal_app.chat.completion import ChatCompleter, FeatureCompletion, accepted
from agent_terminal_app.chat.keyboard import LONGEST_PASTE, open_keyboard
from agent_terminal_app.chat.layout import STYLE, Around
from agent_terminal_app.chat.pastes import Pastes
from agent_terminal_app.chat.resizing import ResizingApplication
from agent_terminal_app.chat.terminal import on_signals, prints_as_lines
from agent_terminal_app.chat.text import styled
from agent_terminal_app.chat.typed import open_history

if TYPE_CHECKING:
    from pathlib import Path

    from prompt_toolkit.application import Application
    from prompt_toolkit.input.vt100 import Vt100Input

    from agent_terminal_app.chat.loop import Chat

__all__ = ["Prompt", "PromptScreen", "run_prompt"]

_ESCAPE = 0.05
"""For how many seconds an Esc may still be the beginning of another key."""

_TWICE = 0.8
"""Within how many seconds a second Esc belongs to the first."""

_CHORD = 1.0
_SOON = 0.05
_SECOND = 1.0
_HUNG_UP = 129
_PATIENCE = 5.0
"""For how many seconds the agent may tidy up at the end."""

_NOWHERE = "sqlite://"


class Line(NamedTuple):
    """A line that was sent."""

    text: str
    shown: str
    queue: bool


class Prompt:
    """The prompt of one chat.

    Args:
        chat: What takes the lines.
        screen: Where everything is shown that is not the prompt.
        history: Where what was typed is kept; None for nowhere.

    Attributes:
        buffer: What is typed.
        around: What stands around it.
        code: The exit code.
    """

    def __init__(self, chat: Chat, screen: PromptScreen, history: Path | None) -> None:
        self.chat = chat
        self.code = 0
        self._screen = screen
        self._pastes = Pastes()
        self._lines: asyncio.Queue[Line] = asyncio.Queue()
        self._taking: asyncio.Task[None] | None = None
        self._taken: Line | None = None
        self._cursor = 0
        self._drawn: tuple[object, ...] = ()
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0
        self._escaped = 0.0
        self._completer = ChatCompleter(chat)
        self.buffer = Buffer(
            completer=ThreadedCompleter(self._completer),
            complete_while_typing=Condition(lambda: not chat.asks_for_a_line),
            history=open_history(history),
            multiline=True,
            tempfile_suffix=".md",
            on_text_changed=lambda buffer: chat.typing(buffer.text),
            on_cursor_position_changed=lambda _buffer: self._step_over_marks(),
            on_completions_changed=lambda _buffer: self._complete_again_soon(),
        )
        self.around = Around(chat, self.buffer, color=screen.color)
        self.application = self._application(open_keyboard())

    def _application(self, keyboard: Vt100Input) -> Application[None]:
        application = ResizingApplication(
            layout=self.around.layout(),
            style=STYLE,
            key_bindings=chat_keys(self),
            color_depth=ColorDepth.DEPTH_4_BIT if self._screen.color else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            input=keyboard,
            output=open_terminal(),
        )
        application.ttimeoutlen = _ESCAPE
        application.key_processor.after_key_press += lambda _keys: self._be_quick_with_escape()
        return application

    def _be_quick_with_escape(self) -> None:
        """Let an Esc that nothing followed count at once; two keys in a row, as Ctrl+X Ctrl+E, have time."""
        begun = self.application.key_processor.key_buffer
        only_escape = len(begun) == 1 and begun[0].key == "escape"
        self.application.timeoutlen = _ESCAPE / 5 if only_escape else _CHORD

    async def run(self) -> None:
        """Read lines until the person leaves, or the terminal is gone."""
        opening = self.chat.start()
        opening.add_done_callback(self._opened)
        self.chat.changed = self.look_again
        self._screen.attach(self.application, asyncio.get_running_loop())
        helpers = [asyncio.create_task(self._take_lines()), asyncio.create_task(self._leave_when_told())]
        for helper in helpers:
            helper.add_done_callback(self._helper_ended)
        try:
            await self.application.run_async(set_exception_handler=False, handle_sigint=False)
        finally:
            self.chat.changed = lambda: None
            for helper in helpers:
                helper.cancel()
            self._screen.detach()

    def _opened(self, opening: asyncio.Task[Any]) -> None:
        if opening.cancelled():
            return
        if (error := opening.exception()) is not None:
            self._end(error)
        elif (conversation := self.chat.conversation) is not None:
            conversation.fill = self.fill

    def _helper_ended(self, helper: asyncio.Task[None]) -> None:
        if not helper.cancelled() and (error := helper.exception()) is not None:
            self._end(error)

    def _end(self, error: BaseException) -> None:
        if self.application.is_running and not self.application.is_done:
            self.application.exit(exception=error)

    # What the keys do

    def send(self, *, queue: bool = False) -> None:
        """Send what is typed."""
        shown = self.buffer.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        line = Line(self._pastes.put_back(shown), shown, queue)
        if shown.strip() and not self.chat.asks_for_a_line:
            self.buffer.history.append_string(self._pastes.to_remember(shown))
        self._empty()
        self._lines.put_nowait(line)

    def run_command(self, command: str) -> None:
        """Run a command without typing it."""
        self._lines.put_nowait(Line(command, command, queue=False))

    def interrupt(self) -> bool:
        """Stop what goes on, also a line that waits for the application; False if there is nothing."""
        if self._taken is not None and self.chat.conversation is None and self._taking is not None:
            self._taking.cancel()
            return True
        return self.chat.interrupt()

    def escape(self) -> None:
        """Close what is open, else stop what goes on; twice, with nothing typed, go back before a message."""
        last, self._escaped = self._escaped, 0.0
        if self.buffer.complete_state is not None:
            self.buffer.cancel_completion()
        elif self.around.pane.is_open:
            self.around.pane.close()
        elif not self.interrupt() and not self.buffer.text:
            now = time.monotonic()
            if now - last < _TWICE:
                self.run_command("/rewind")
            else:
                self._escaped = now

    def clear(self) -> None:
        """Clear what is typed; Up brings it back."""
        self.buffer.history.append_string(self._pastes.to_remember(self.buffer.text))
        self._empty()

    def _empty(self) -> None:
        self.buffer.reset()
        self.chat.typing("")

    def leave(self, code: int = 0) -> None:
        """End the prompt."""
        self.code = code
        if self.application.is_running and not self.application.is_done:
            self.application.exit()

    def fill(self, text: str) -> None:
        """Put a text into the prompt; what is typed there is behind it then."""
        rest = f"\n{self.buffer.text}" if self.buffer.text else ""
        self.buffer.document = Document(text + rest, len(text))

    def take_back(self) -> None:
        """Take the last message back that waits."""
        self.application.create_background_task(self._take_back())

    async def _take_back(self) -> None:
        if text := await self.chat.take_back():
            self.fill(text)
        self.application.invalidate()

    def paste(self, text: str) -> None:
        """Insert a paste, or a mark for it."""
        self.buffer.insert_text(self._pastes.take(text))
        if len(text) >= LONGEST_PASTE:
            self._note(
                f"only the first {LONGEST_PASTE:,} characters are pasted; a file can be attached: @FILE"
            )

    def mark_before_cursor(self) -> tuple[int, int] | None:
        """Return where the mark is that the cursor stands behind."""
        return self._pastes.around(self.buffer.text, self.buffer.cursor_position)

    def delete_mark(self) -> None:
        """Delete the mark before the cursor."""
        if (mark := self.mark_before_cursor()) is not None:
            text = self.buffer.text
            self.buffer.document = Document(text[: mark[0]] + text[mark[1] :], mark[0])

    def _step_over_marks(self) -> None:
        """Keep the cursor out of marks: it goes on to the side to which it was moving."""
        place, before = self.buffer.cursor_position, self._cursor
        mark = self._pastes.around(self.buffer.text, place)
        if mark is not None and place < mark[1]:
            self.buffer.cursor_position = mark[1] if place > before else mark[0]
        self._cursor = self.buffer.cursor_position

    def _complete_again_soon(self) -> None:
        """Complete what is typed now, if what was typed before took so long that this was passed over."""
        if self.application.is_running:
            asyncio.get_running_loop().call_later(_SOON, self._complete_again)

    def _complete_again(self) -> None:
        typed = self.buffer.document.text_before_cursor
        was_passed_over = self.buffer.complete_state is None and typed != self._completer.asked
        if was_passed_over and (typed.startswith("/") or "@" in typed):
            self.buffer.start_completion(select_first=False)

    def take_completion(self) -> None:
        """Put the chosen completion in, or the first one, and ask its feature what it becomes."""
        state = self.buffer.complete_state
        if state is None or not state.completions:
            return
        chosen = state.current_completion or state.completions[0]
        before = state.original_document
        self.buffer.apply_completion(chosen)
        if isinstance(chosen, FeatureCompletion) and self.chat.conversation is not None:
            start = before.cursor_position + chosen.start_position
            self.application.create_background_task(self._ask_feature(chosen, start))

    async def _ask_feature(self, chosen: FeatureCompletion, start: int) -> None:
        assert self.chat.conversation is not None
        text = self.buffer.text
        snippet = await asyncio.to_thread(accepted, self.chat.conversation, text, chosen)
        if snippet is not None and self.buffer.text == text:
            rest = text[start + len(chosen.text) :]
            self.buffer.document = Document(text[:start] + snippet.text + rest, start + snippet.cursor)

    def edit(self) -> None:
        """Edit what is typed in an editor; what happens meanwhile is shown afterwards."""
        self._screen.hold()
        self.buffer.open_in_editor().add_done_callback(lambda _task: self._screen.release())

    # What happens beside the keys

    async def _take_lines(self) -> None:
        """Hand the lines over, one after the other."""
        while True:
            self._taken = await self._lines.get()
            self._taking = asyncio.create_task(self._take(self._taken))
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._taking])
            if self._taking.cancelled():
                self._give_back(self._taken)
            else:
                self._taking.result()
            self._taken = None

    async def _take(self, line: Line) -> None:
        if not await self.chat.take(line.text, queue=line.queue, shown=line.shown):
            self._give_back(line)

    def _give_back(self, line: Line) -> None:
        """Put a line back into the prompt that could not be taken."""
        if not self.buffer.text:
            self.buffer.document = Document(line.shown)
            self.application.invalidate()

    async def _leave_when_told(self) -> None:
        await self.chat.left.wait()
        self.leave()

    def look_again(self) -> None:
        """Draw what stands around the prompt again, if it has changed: at once, but not all the time."""
        self._look_in(max(0.0, self._looked + _SOON - asyncio.get_running_loop().time()))

    def _look_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is not None and self._timer.when() <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer, self._looked = None, asyncio.get_running_loop().time()
        seen = self.around.seen()
        if seen != self._drawn:
            self._drawn = seen
            self.application.invalidate()
        if self.chat.progress.running:  # time goes by, and is shown
            self._look_in(_SECOND)

    def _note(self, text: str) -> None:
        self._screen.line(styled(text, "dim", color=self._screen.color))


def open_terminal() -> Vt100_Output:
    """Return the terminal to draw on; it is never asked where its cursor is, since some do not answer."""
    term = os.environ.get("TERM", "")
    terminal = Vt100_Output.from_pty(sys.stdout, term=term, enable_bell=False)
    terminal.enable_cpr = False
    return terminal


async def run_prompt(chat: Chat, history: Path | None) -> int:
    """Read lines from the terminal until the person leaves; the agent works meanwhile.

    Returns:
        The exit code.

    Raises:
        AgentError: If the application cannot be opened.
    """
    screen = chat.screen
    assert isinstance(screen, PromptScreen)
    prompt = Prompt(chat, screen, history)
    with on_signals(prompt.leave):
        try:
            with prints_as_lines(screen):
                await prompt.run()
        except (EOFError, OSError, termios.error):  # the terminal is gone, and so is whom to tell
            prompt.code = prompt.code or _HUNG_UP
            screen.mute()
        finally:
            with suppress(TimeoutError):
                await asyncio.wait_for(chat.close(), _PATIENCE)
    if line := _how_to_go_on(chat):
        screen.line(styled(line, "dim", color=screen.color))
    return prompt.code


def _how_to_go_on(chat: Chat) -> str:
    """Return how the session is resumed, if it is kept anywhere."""
    conversation = chat.conversation
    if conversation is None or conversation.session_id is None or conversation.app.store.url == _NOWHERE:
        return ""
    return f"resume with: agent chat --session {conversation.session_id}"
