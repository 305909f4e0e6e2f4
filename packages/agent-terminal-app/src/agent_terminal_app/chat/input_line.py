"""The line that is being typed: its text with marks for large pastes, its history, its completions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.clipboard import InMemoryClipboard
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from agent_terminal_app.chat.completion import ChatCompleter, FeatureCompletion, accepted
from agent_terminal_app.chat.pastes import Pastes
from agent_terminal_app.chat.typed import open_history

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.chat.loop import Chat

_SOON = 0.05


class Line(NamedTuple):
    """A line that was typed.

    Attributes:
        text: All of it.
        shown: The same with marks for large pastes.
        queue: Whether it waits until the agent has answered.
        secret: Whether it was typed where nobody shall see it.
    """

    text: str
    shown: str
    queue: bool = False
    secret: bool = False


class InputLine:
    """What is typed in a chat.

    Args:
        chat: Knows what can be completed, and wants to know what is typed.
        history: Where what was typed is kept; None for nowhere.

    Attributes:
        buffer: The text and the cursor.
    """

    def __init__(self, chat: Chat, history: Path | None) -> None:
        self._chat = chat
        self._pastes = Pastes()
        self._completer = ChatCompleter(chat)
        self._cursor = 0
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

    # The whole line

    def take(self, *, queue: bool = False) -> Line:
        """Return what is typed, and begin an empty line."""
        # Bytes that are no characters came from the keyboard as halves of surrogate pairs.
        shown = self.buffer.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if shown.strip() and not self._chat.asks_for_a_line:
            self.buffer.history.append_string(self._pastes.to_remember(shown))
        self.buffer.reset()
        return Line(self._pastes.put_back(shown), shown, queue, self._chat.asks_for_a_secret)

    def forget(self) -> None:
        """Forget what is typed; nothing brings it back."""
        self.buffer.reset()
        get_app().clipboard = InMemoryClipboard()  # where what was cut would be pasted from
        self._chat.typing("")

    def clear(self) -> None:
        """Forget what is typed; Up brings it back."""
        self.buffer.history.append_string(self._pastes.to_remember(self.buffer.text))
        self.buffer.reset()
        self._chat.typing("")  # the buffer does not tell of this

    def fill(self, text: str) -> None:
        """Put a text in; what is typed is behind it then."""
        rest = f"\n{self.buffer.text}" if self.buffer.text else ""
        self.buffer.document = Document(text + rest, len(text))

    def give_back(self, line: Line) -> None:
        """Put a line back that could not be taken, unless another was begun meanwhile."""
        if not self.buffer.text:
            self.buffer.document = Document(line.shown)

    # Marks

    def paste(self, text: str) -> None:
        """Insert a paste, or a mark for it."""
        self.buffer.insert_text(self._pastes.take(text))

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

    # Completions

    @property
    def has_choice(self) -> bool:
        """Whether there are completions to choose from."""
        return self.buffer.complete_state is not None and bool(self.buffer.complete_state.completions)

    @property
    def is_chosen(self) -> bool:
        """Whether one of them is chosen."""
        state = self.buffer.complete_state
        return state is not None and state.current_completion is not None

    def take_completion(self) -> None:
        """Put the chosen completion in, or the first one, and ask its feature what it becomes."""
        state = self.buffer.complete_state
        if state is None or not state.completions:
            return
        chosen = state.current_completion or state.completions[0]
        start = state.original_document.cursor_position + chosen.start_position
        self.buffer.apply_completion(chosen)
        if isinstance(chosen, FeatureCompletion):
            get_app().create_background_task(self._ask_feature(chosen, start))

    async def _ask_feature(self, chosen: FeatureCompletion, start: int) -> None:
        conversation, text = self._chat.conversation, self.buffer.text
        if conversation is None:
            return
        snippet = await asyncio.to_thread(accepted, conversation, text, chosen)
        if snippet is not None and self.buffer.text == text:
            rest = text[start + len(chosen.text) :]
            self.buffer.document = Document(text[:start] + snippet.text + rest, start + snippet.cursor)

    def _complete_again_soon(self) -> None:
        """Complete what is typed now, if what was typed before took so long that this was passed over."""
        asyncio.get_running_loop().call_later(_SOON, self._complete_again)

    def _complete_again(self) -> None:
        typed = self.buffer.document.text_before_cursor
        was_passed_over = self.buffer.complete_state is None and typed != self._completer.asked
        if was_passed_over and (typed.startswith("/") or "@" in typed) and get_app().is_running:
            self.buffer.start_completion(select_first=False)
