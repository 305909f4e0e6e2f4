"""The line that is being typed: its text, history and completions.

A large paste is shown as a mark, and put back when the line is sent. The history for Up and Ctrl+R is kept
in a file that only its owner can read.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.clipboard import InMemoryClipboard
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from agent_terminal_app.chat.prompt.completion import ChatCompleter, FeatureCompletion, accepted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agent_terminal_app.chat.loop import Chat

_MOST_LINES = 10
_MOST_CHARACTERS = 2000
_MARK = re.compile(r"\[pasted text #(\d+), [\d,]+ (?:lines?|characters)\]")
_REMEMBERED = 20_000


class Pastes:
    """The large pastes of one chat."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, text: str) -> str:
        """Return what stands in the prompt for a paste: itself, or a mark if it is large."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= _MOST_LINES and len(text) <= _MOST_CHARACTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[pasted text #{number}, {size}]"

    def marks(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the marks are."""
        for found in _MARK.finditer(text):
            if int(found[1]) in self._texts:
                yield found.span()

    def around(self, text: str, place: int) -> tuple[int, int] | None:
        """Return the mark that a place is in or behind of, if there is one."""
        return next(((start, end) for start, end in self.marks(text) if start < place <= end), None)

    def put_back(self, text: str) -> str:
        """Return a text with the pastes in place of their marks."""
        return _MARK.sub(lambda found: self._texts.get(int(found[1]), found[0]), text)

    def to_remember(self, text: str) -> str:
        """Return a text as history keeps it: whole if that is not too much, and else with other marks.

        A mark with a number would mean another paste in the next chat.
        """
        whole = self.put_back(text)
        if len(whole) <= _REMEMBERED:
            return whole
        return _MARK.sub(lambda found: found[0].replace(f" #{found[1]}", ""), text)


_MOST = 1_000
_LARGEST = 1_000_000


def open_history(path: Path | None) -> History:
    """Return the history of a file; without a usable file, one that is forgotten at the end."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(_open(path), "rb"):
            pass
    except OSError:  # what was typed is a comfort; a full or foreign disk must not prevent a chat
        return InMemoryHistory()
    _shorten(path)
    return TypedHistory(path)


class TypedHistory(FileHistory):
    """What was typed, the last thousand lines of it; what begins with a space is not kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        """Return what was typed, the last line first."""
        with suppress(OSError):
            return islice(super().load_history_strings(), _MOST)
        return ()

    def store_string(self, string: str) -> None:
        """Add a line, in one write, so that two chats do not mix theirs."""
        if string.startswith(" "):
            return
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        entry = f"\n# {datetime.now(tz=UTC).isoformat()}\n{lines}"
        with suppress(OSError), os.fdopen(_open(self._path), "ab") as file:
            file.write(entry.encode(errors="replace"))


def _open(path: Path) -> int:
    """Open the file to append to it; it is its owner's alone, also if it was there before."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    os.fchmod(handle, 0o600)
    return handle


def _shorten(path: Path) -> None:
    """Drop the older half of a file that has become large."""
    with suppress(OSError):
        if path.stat().st_size <= _LARGEST:
            return
        data = path.read_bytes()
        start = data.find(b"\n# ", len(data) // 2)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_bytes(data[max(start, 0) :])
        fresh.replace(path)


_SOON = 0.05


class Line(NamedTuple):
    """A line that was typed.

    Attributes:
        text: All of it.
        shown: The same with marks for large pastes.
        queue: Whether it waits until the agent has answered.
        secret: Whether it is a secret, which must not be shown.
        question: Which question of the agent was on the screen; empty if none was.
        is_key: Whether it was a single key that answers that question.
    """

    text: str
    shown: str
    queue: bool = False
    secret: bool = False
    question: str = ""
    is_key: bool = False


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
        # The keyboard passes bytes that are not characters as halves of surrogate pairs.
        shown = self.buffer.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if shown.strip() and not self._chat.asks_for_a_line:
            self.buffer.history.append_string(self._pastes.to_remember(shown))
        self.buffer.reset()
        whole, secret = self._pastes.put_back(shown), self._chat.asks_for_a_secret
        return Line(whole, shown, queue, secret, self._chat.shown_question)

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
        """Put a line back that could not be taken, unless another one was begun."""
        if not self.buffer.text:
            self.buffer.document = Document(line.shown)

    # Marks

    def paste(self, text: str) -> None:
        self.buffer.insert_text(self._pastes.take(text))

    def mark_before_cursor(self) -> tuple[int, int] | None:
        """Return where the mark is that the cursor stands behind."""
        return self._pastes.around(self.buffer.text, self.buffer.cursor_position)

    def delete_mark(self) -> None:
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
