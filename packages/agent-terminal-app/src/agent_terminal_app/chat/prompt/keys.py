"""The keyboard: what arrives from the terminal, and what each key press does.

Input is read in large pieces, with a limit on pastes. The bindings connect the actions of `keymap` to the
prompt.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from operator import methodcaller
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Always, Condition, Filter, has_completions, has_focus, is_searching
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.bindings.search import (
    reverse_incremental_search,
    start_reverse_incremental_search,
)
from prompt_toolkit.keys import Keys

from agent_terminal_app.chat.keymap import SHIFT_ENTER
from agent_terminal_app.chat.picker import Picker

if TYPE_CHECKING:
    from typing import TextIO

    from prompt_toolkit.key_binding import KeyPressEvent

    from agent_terminal_app.chat.keymap import KeyMap
    from agent_terminal_app.chat.prompt.prompt import Prompt

LONGEST_PASTE = 4_000_000
"""How many characters of a paste are taken; more is a file to be attached."""

_PIECE = 65_536
_SHIFT_ENTER = ("\x1b[27;2;13~", "\x1b[13;2u")
"""What terminals send for Shift+Enter, if they are set up to distinguish it from Enter."""
_FOCUS_IN, _FOCUS_OUT = "c-f16", "c-f17"
"""The names under which the prompt knows that the user turned to the terminal, or away; no key sends them."""
_BEGIN, _END = "\x1b[200~", "\x1b[201~"


class Keyboard(PosixStdinReader):
    """Reads from a terminal.

    The usual reader takes a kilobyte at a time, and looks through all of a paste for its end each time:
    a large one would take minutes. It also never stops reading a terminal that is gone.
    """

    def __init__(self, handle: int, encoding: str = "utf-8") -> None:
        super().__init__(handle, encoding=encoding)
        self._pasting = False
        self._room = 0
        self._carry = ""

    def read(self, count: int = _PIECE) -> str:
        """Return what was typed or pasted; nothing if the terminal is gone."""
        if self.closed:
            return ""
        try:
            data = os.read(self.stdin_fd, count)
        except InterruptedError:
            return ""
        except OSError:
            data = b""
        self.closed = not data
        return self.bounded(self._stdin_decoder.decode(data))

    def bounded(self, text: str) -> str:
        """Return a text without what is too much of a paste."""
        kept = []
        while text:
            if self._pasting:
                piece, text = self._paste(text)
            else:
                head, begin, text = text.partition(_BEGIN)
                piece = head + begin
                self._pasting, self._room = bool(begin), LONGEST_PASTE
            kept.append(piece)
        return "".join(kept)

    def _paste(self, text: str) -> tuple[str, str]:
        """Return the piece of a paste that is kept, and what comes behind the paste."""
        pasted, end, rest = (self._carry + text).partition(_END)
        self._carry = ""
        if not end:  # the mark of the end may be cut in two
            pasted, self._carry = pasted[: 1 - len(_END)], pasted[1 - len(_END) :]
        kept = pasted[: self._room]
        self._room -= len(kept)
        self._pasting = not end
        return kept + end, rest


def open_keyboard(stdin: TextIO | None = None) -> Vt100Input:
    """Return the terminal's keyboard as the prompt takes it."""
    ANSI_SEQUENCES.update(dict.fromkeys(_SHIFT_ENTER, Keys(SHIFT_ENTER)))
    ANSI_SEQUENCES.update({"\x1b[I": Keys(_FOCUS_IN), "\x1b[O": Keys(_FOCUS_OUT)})
    stdin = stdin or sys.stdin
    keyboard = Vt100Input(stdin)
    keyboard.stdin_reader = Keyboard(stdin.fileno(), encoding=stdin.encoding)
    return keyboard


_PAGE = 10

Handler = Callable[["KeyPressEvent"], None]


def chat_keys(prompt: Prompt, keymap: KeyMap) -> KeyBindings:
    """Return the keys of a chat."""
    binder = Binder(prompt, keymap)
    _sending_keys(binder, prompt)
    _deciding_keys(binder, prompt)
    _answering_keys(binder, prompt)
    _stopping_keys(binder, prompt)
    _editing_keys(binder, prompt)
    _looking_keys(binder, prompt)
    _picking_keys(binder, prompt)
    return binder.bindings


class Binder:
    """Binds what actions do to the keys that they have.

    Args:
        prompt: Knows what is typed.
        keymap: The keys in force.

    Attributes:
        bindings: What is bound.
        typing: Whether the prompt has the keys, and nothing else.
    """

    def __init__(self, prompt: Prompt, keymap: KeyMap) -> None:
        self.bindings = KeyBindings()
        self.typing = has_focus(prompt.line.buffer)
        self._keymap = keymap
        self._at_the_beginning = self.typing & Condition(
            lambda: not prompt.line.buffer.text and not prompt.chat.asks_for_a_line
        )

    def bind(self, action: str, when: Filter | None = None) -> Callable[[Handler], Handler]:
        """Let a function be what an action does; its usual keys that it has lost do nothing."""
        allowed = Always() if when is None else when

        def place(handler: Handler) -> Handler:
            for key in self._keymap.keys[action]:
                only = allowed & self._at_the_beginning if key.is_typed else allowed
                self.bindings.add(*key.codes, filter=only)(handler)
            for key in self._keymap.freed(action):
                if not key.is_typed:
                    self.bindings.add(*key.codes, filter=allowed)(_do_nothing)
            return handler

        return place


def _do_nothing(_event: KeyPressEvent) -> None:
    """Ignore a key that has lost its action, instead of leaving it to the line editor."""


def _sending_keys(binder: Binder, prompt: Prompt) -> None:
    @binder.bind("send", binder.typing)
    def _send(event: KeyPressEvent) -> None:
        """Send; take the completion that is chosen; behind a backslash begin a new line."""
        buffer = event.current_buffer
        if prompt.line.is_chosen:
            prompt.line.take_completion()
        elif buffer.document.text_before_cursor.endswith("\\") and not prompt.chat.asks_for_a_secret:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            prompt.send()

    @binder.bind("new_line", binder.typing)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @binder.bind("complete", binder.typing)
    def _complete(event: KeyPressEvent) -> None:
        """Take a completion; queue while the agent works; look for completions."""
        buffer = event.current_buffer
        if prompt.chat.asks_for_a_secret:
            return  # a secret is never passed to completers
        if prompt.line.has_choice:
            prompt.line.take_completion()
        elif prompt.chat.running and buffer.text.strip():
            prompt.send(queue=True)
        else:
            buffer.start_completion(select_first=False)


def _deciding_keys(binder: Binder, prompt: Prompt) -> None:
    @binder.bind("take_back", binder.typing)
    def _take_back(_event: KeyPressEvent) -> None:
        prompt.take_back()

    @binder.bind("mode", binder.typing)
    def _mode(event: KeyPressEvent) -> None:
        """Go back in a list of completions that is open; else go on to the next mode."""
        if prompt.line.has_choice:
            event.current_buffer.complete_previous()
        else:
            prompt.next_mode()


_ANSWERS = "ynadm 123456789"
"""Every key that may answer a question of the agent; which of them do depends on the question."""


def _answering_keys(binder: Binder, prompt: Prompt) -> None:
    """Let single keys answer, while nothing is typed and the question could be read."""

    def bind(key: str) -> None:
        answers = Condition(lambda: not prompt.line.buffer.text and key in prompt.chat.answer_keys)

        @binder.bindings.add(key, filter=binder.typing & answers, eager=True)
        def _answer(event: KeyPressEvent) -> None:
            """Answer; a key that comes together with others is a text that was pasted, or typed ahead.

            Enter by itself is a habit, and comes in the same piece where the connection is slow.
            """
            behind = event.app.key_processor.input_queue
            if any(one.key != Keys.ControlM for one in behind):
                event.current_buffer.insert_text(event.data)
            else:
                behind.clear()
                prompt.answer(key)

    for key in _ANSWERS:
        bind(key)


def _stopping_keys(binder: Binder, prompt: Prompt) -> None:
    @binder.bind("stop", binder.typing & ~is_searching)
    def _stop(_event: KeyPressEvent) -> None:
        prompt.escape()

    @binder.bindings.add("<sigint>")
    @binder.bind("interrupt")
    def _interrupt(event: KeyPressEvent) -> None:
        """Stop the current work; else clear what is typed, which Up brings back; pressed twice, leave."""
        if prompt.interrupt():
            return
        if prompt.line.buffer.text:
            event.app.layout.focus(prompt.line.buffer)
            prompt.line.clear()
        else:
            prompt.leave_if_asked_twice()

    @binder.bind("leave", binder.typing & Condition(lambda: not prompt.line.buffer.text))
    def _leave(_event: KeyPressEvent) -> None:
        prompt.leave()

    @binder.bind("suspend")
    def _suspend(_event: KeyPressEvent) -> None:
        prompt.suspend()

    @binder.bindings.add(_FOCUS_IN)
    def _focus_in(_event: KeyPressEvent) -> None:
        prompt.focus_is(there=True)

    @binder.bindings.add(_FOCUS_OUT)
    def _focus_out(_event: KeyPressEvent) -> None:
        prompt.focus_is(there=False)


def _editing_keys(binder: Binder, prompt: Prompt) -> None:
    behind_mark = binder.typing & Condition(lambda: prompt.line.mark_before_cursor() is not None)
    may_be_seen = binder.typing & Condition(lambda: not prompt.chat.asks_for_a_secret)
    keys = binder.bindings

    @keys.add(Keys.BracketedPaste, filter=binder.typing)
    def _paste(event: KeyPressEvent) -> None:
        """Paste; a large text is shown as a mark."""
        prompt.paste(event.data)

    @keys.add("backspace", filter=behind_mark)
    @keys.add("c-h", filter=behind_mark)
    @keys.add("c-w", filter=behind_mark)
    @keys.add("escape", "backspace", filter=behind_mark)
    def _delete_mark(_event: KeyPressEvent) -> None:
        prompt.line.delete_mark()

    @binder.bind("edit", may_be_seen)
    def _edit(_event: KeyPressEvent) -> None:
        prompt.edit()

    @binder.bind("search", may_be_seen | is_searching)
    def _search(event: KeyPressEvent) -> None:
        """Look for what was typed before; again, for what was typed before that."""
        (reverse_incremental_search if is_searching() else start_reverse_incremental_search).call(event)


def _looking_keys(binder: Binder, prompt: Prompt) -> None:
    pane_is_open = Condition(lambda: prompt.layout.pane.is_open)

    @binder.bind("open")
    def _open(_event: KeyPressEvent) -> None:
        if prompt.chat.conversation is not None:
            prompt.layout.pane.open_next(prompt.chat.conversation.folds)

    @binder.bind("scroll_up", pane_is_open)
    def _up(_event: KeyPressEvent) -> None:
        prompt.layout.pane.scroll(-_PAGE)

    @binder.bind("scroll_down", pane_is_open)
    def _down(_event: KeyPressEvent) -> None:
        prompt.layout.pane.scroll(_PAGE)

    @binder.bind("transcript", binder.typing)
    def _transcript(_event: KeyPressEvent) -> None:
        prompt.show_transcript()

    @binder.bind("clear")
    def _clear(event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    nobody_asks = Condition(lambda: not prompt.chat.asks_for_a_line)  # else it would be the answer

    @binder.bind("model", binder.typing & nobody_asks)
    def _model(_event: KeyPressEvent) -> None:
        prompt.run_command("/model")

    @binder.bind("commands", binder.typing & nobody_asks)
    def _commands(_event: KeyPressEvent) -> None:
        prompt.run_command("/commands")

    @binder.bind("help", ~has_completions & nobody_asks)
    def _help(_event: KeyPressEvent) -> None:
        prompt.run_command("/help")


def _picking_keys(binder: Binder, prompt: Prompt) -> None:
    """Bind the keys of a list to choose from; all others narrow it down."""
    keys, picking = binder.bindings, has_focus(prompt.layout.filter)
    moves = {
        "up": -1,
        "c-p": -1,
        "s-tab": -1,
        "down": 1,
        "c-n": 1,
        "tab": 1,
        "pageup": -_PAGE,
        "pagedown": _PAGE,
    }

    def bind(key: str, do: Callable[[Picker], None]) -> None:
        @keys.add(key, filter=picking)
        def _do(_event: KeyPressEvent) -> None:
            if (picker := prompt.chat.picker) is not None:
                do(picker)

    for key, rows in moves.items():
        bind(key, methodcaller("move", rows))
    bind("enter", Picker.take)
    bind("escape", Picker.leave)
    bind("c-f", Picker.star)
