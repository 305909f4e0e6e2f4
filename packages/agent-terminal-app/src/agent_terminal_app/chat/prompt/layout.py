"""The rows around the prompt: opened folds, current work, waiting messages, completions, the status line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_completions, is_done
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.layout import (
    CompletionsMenu,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import (
    ConditionalProcessor,
    PasswordProcessor,
    Processor,
    Transformation,
    TransformationInput,
)
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from agent_core.clean_text import mask
from agent_terminal_app.chat.appearance import branch_of
from agent_terminal_app.chat.keymap import KeyMap
from agent_terminal_app.chat.picker import MOST_ROWS
from agent_terminal_app.chat.rendering.folds import fold_lines
from agent_terminal_app.chat.rendering.text import (
    first_style,
    fitted,
    one_line,
    styled,
    unstyled,
)
from agent_terminal_app.rows import cells, cut_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app.plans import Plan
    from agent_terminal_app.chat.loop import Chat
    from agent_terminal_app.chat.rendering.folds import Fold, Folds


class Pane:
    """The fold that is open, if one is.

    Args:
        keys: What opens, scrolls and closes it.
    """

    def __init__(self, keys: KeyMap | None = None) -> None:
        self._keys = keys or KeyMap.usual()
        self._fold: Fold | None = None
        self._offset = 0
        self._made: tuple[tuple[int, int, int], str, list[str]] | None = None

    @property
    def is_open(self) -> bool:
        return self._fold is not None

    def open_next(self, folds: Folds) -> None:
        """Open the last fold; if one is open, the one before it; behind the first one, none."""
        self._fold = folds.find() if self._fold is None else folds.before(self._fold.number)
        self._offset = 0

    def close(self) -> None:
        self._fold = None

    def scroll(self, rows: int) -> None:
        self._offset = max(0, self._offset + rows)

    def lines(self, width: int, height: int, *, color: bool) -> list[str]:
        """Return the lines that are seen, within bounds, and how to see others."""
        if self._fold is None:
            return []
        title, rows = self._rows(self._fold, width, color=color)
        room = max(height - 2, 1)
        self._offset = min(self._offset, max(0, len(rows) - room))
        seen = rows[self._offset : self._offset + room]
        first, last = self._offset + 1, self._offset + len(seen)
        place = f"lines {first}-{last} of {len(rows)} · " if len(rows) > room else ""
        return [title, *seen, fitted(f"{place}{self._how()}", width)]

    def _how(self) -> str:
        keys = self._keys
        older = f"{keys.first('open')} older, " if keys.first("open") else ""
        scroll = f"{keys.first('scroll_up')} {keys.first('scroll_down')}".strip()
        return f"{older}{f'{scroll} scroll, ' if scroll else ''}{keys.first('stop')} closes"

    def _rows(self, fold: Fold, width: int, *, color: bool) -> tuple[str, list[str]]:
        """Return a fold as rows; they are made once, since they are drawn again and again."""
        key = (fold.number, fold.size, width)
        if self._made is None or self._made[0] != key:
            title, *body = fold_lines(fold, width=width, color=color)
            self._made = (key, title, [row for line in body for row in _rows(line, width)])
        return self._made[1], self._made[2]


def _rows(line: str, width: int) -> list[str]:
    """Return a line cut into rows; its style goes on from row to row."""
    plain = unstyled(line)
    if cells(plain) <= width:
        return [line]
    style, rows = first_style(line), []
    while plain and (place := cut_place(plain, width)):
        rows.append(f"{style}{plain[:place]}\x1b[0m" if style else plain[:place])
        plain = plain[place:]
    return rows


STYLE = Style.from_dict(
    {
        "around": "dim",
        "prompt": "bold",
        "marked": "reverse",
        "completion-menu": "noinherit",
        "completion-menu.completion": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit dim",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit",
        "scrollbar.arrow": "noinherit",
    }
)
_MOST_DOING = 4
_MOST_PLANNED = 8
_BOXES = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "dropped": "[-]"}
_MENU = 8
_PROMPT, _CONTINUED = "» ", "  "


def toolbar(chat: Chat, width: int) -> str:
    """Return the last line: the parts that the settings name; those at the end go first if it is too long.

    What the chat does, and that it does not ask about edits, is always there.
    """
    parts = [(name, text) for name in chat.appearance.parts if (text := status_part(chat, name))]
    for name in ("state", "mode"):
        if name not in chat.appearance.parts and (text := status_part(chat, name)):
            parts.insert(0, (name, text))
    while cells(" · ".join(text for _, text in parts)) > width - 1:
        last = next((one for one in reversed(parts) if one[0] not in ("state", "mode")), None)
        if last is None:
            break
        parts.remove(last)
    return fitted(" · ".join(text for _, text in parts), width - 1)


def status_part(chat: Chat, name: str) -> str:
    """Return a part of the status line as of now; empty if there is nothing to say."""
    if name == "state":
        return _state(chat)
    if (conversation := chat.conversation) is None:
        return ""
    if name == "mode":
        return "plan mode" if conversation.plan_mode else conversation.edits.label
    if name in ("context", "session", "cost"):
        return conversation.meters.part(name)
    if name == "model":
        return one_line(conversation.model)
    folder = Path.cwd()
    return one_line(folder.name) if name == "folder" else branch_of(folder) if name == "branch" else ""


def _state(chat: Chat) -> str:
    if asked := _asked(chat):
        return asked
    if chat.progress.running:
        return chat.progress.state()
    if chat.busy:
        return "working · Esc stops"
    if chat.conversation is None:
        return "starting …"
    return _asking(chat) if chat.asking else _idle(chat)


def _idle(chat: Chat) -> str:
    if last := chat.card_choices:
        return f"press 1{f' to {last}' if last > 1 else ''} to choose · Esc leaves it"
    return f"ready · {chat.keys.first('help')} help" if chat.keys.first("help") else "ready · /help"


def _asking(chat: Chat) -> str:
    """Return which keys answer, from when they do."""
    if not chat.is_ready_for_answers:
        return "a question …"
    keys = [key for key in chat.answer_keys if key.isalpha() and key != "m"]
    return f"your answer? {' '.join(keys)} · Esc: no" if keys else "your answer? · Esc: no"


def plan_lines(plan: Plan, width: int, most: int, *, color: bool) -> list[str]:
    """Return a plan as a checklist; of a long one the part around the item that is being worked on."""
    done = sum(one.is_done for one in plan)
    now = next((n for n, one in enumerate(plan) if one.state == "in_progress"), min(done, len(plan) - 1))
    start = min(max(now - 1, 0), max(len(plan) - most, 0))
    lines = [styled(fitted(f"Plan: {done} of {len(plan)} done", width), "bold", color=color)]
    for one in plan[start : start + most]:
        text = fitted(f"{_BOXES.get(one.state, '[ ]')} {one_line(one.text)}", width)
        style = "dim" if one.is_done else "bold" if one.state == "in_progress" else ""
        lines.append(styled(text, style, color=color))
    left = len(plan) - start - most
    return [*lines, styled(f"… {left} more", "dim", color=color)] if left > 0 else lines


def _asked(chat: Chat) -> str:
    """Return how a command is answered that waits for the user; empty if none does."""
    if chat.picker is not None:
        star = " · Ctrl+F favourite" if chat.picker.has_star else ""
        typing = "type an answer" if chat.picker.takes_words else "type to narrow down"
        return f"{typing} · ↑↓ Enter{star} · Esc leaves it"
    if chat.asks_for_a_line:
        hidden = ", it is not shown" if chat.asks_for_a_secret else ""
        keys = "" if chat.asks_for_a_secret else " ".join(chat.answer_keys)
        return f"press {keys} · Esc leaves it" if keys else f"type your answer{hidden} · Esc leaves it"
    return ""


def _hiding(chat: Chat) -> Processor:
    """Return what hides the typed text, except its length, while a secret is asked for."""
    return ConditionalProcessor(PasswordProcessor(), Condition(lambda: chat.asks_for_a_secret))


class ShowUnseen(Processor):
    """Shows that there is a character where one would see nothing, or text that is turned around."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Put a mark in the place of each."""
        typed = transformation_input.fragments
        shown: StyleAndTextTuples = [(style, mask(text)) for style, text, *_ in typed]
        return Transformation(shown)


class PromptLayout:
    """Everything around the prompt.

    Args:
        chat: What is shown.
        buffer: What is typed.

    Attributes:
        pane: What was opened.
        filter: What is typed to narrow a list down.
        notice: Replaces the last line while it is not empty.
    """

    def __init__(self, chat: Chat, buffer: Buffer) -> None:
        self.notice = ""
        self._chat = chat
        self._picking = Condition(lambda: chat.picker is not None)
        self.pane = Pane(chat.keys)
        self.search = SearchToolbar()
        self.filter = Buffer(multiline=False, on_text_changed=self._narrow)
        self.prompt = Window(
            BufferControl(
                buffer,
                input_processors=[ShowUnseen(), _hiding(chat)],
                include_default_input_processors=True,
                search_buffer_control=self.search.control,
                preview_search=True,
            ),
            height=lambda: Dimension(min=1, max=max(1, _size()[1] // 2)),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=_prefix,
        )

    def layout(self) -> Layout:
        """Return where everything is: what goes on above the prompt, what helps below it."""
        here = ~is_done
        rows = HSplit(
            [
                _lines(self.speaking, style=""),
                _lines(self._pane_lines, style=""),
                _lines(self.plan, style=""),
                _lines(self.doing, style="class:around"),
                _lines(self.waiting, style="class:around"),
                ConditionalContainer(self._picker_rows(), filter=here & self._picking),
                ConditionalContainer(self.prompt, filter=here & ~self._picking),
                self.search,
                ConditionalContainer(
                    CompletionsMenu(max_height=_MENU, scroll_offset=1), filter=has_completions
                ),
                ConditionalContainer(
                    Window(FormattedTextControl(self._toolbar), height=1, style="class:around"), filter=here
                ),
            ],
            align=VerticalAlign.TOP,
        )
        return Layout(rows, focused_element=self.prompt)

    def seen(self) -> tuple[object, ...]:
        """Return everything that may change by itself, to be compared with what was drawn."""
        listed = tuple(text for _style, text, *_ in self._choices())
        above = (tuple(self.speaking()), tuple(self.plan()), tuple(self.doing()), tuple(self.waiting()))
        return *above, self._toolbar(), self.pane.is_open, listed

    def is_list_new(self, layout: Layout) -> bool:
        """Say whether a list was opened or closed since the last time that everything was drawn."""
        return layout.has_focus(self.filter) != (self._chat.picker is not None)

    def focus(self, layout: Layout) -> None:
        """Let the open list have the keys, or the prompt if there is none."""
        if not self.is_list_new(layout):
            return
        if self._chat.picker is None:
            layout.focus(self.prompt)
        else:
            self.filter.reset()
            layout.focus(self.filter)

    def _narrow(self, _buffer: Buffer) -> None:
        if self._chat.picker is not None:
            self._chat.picker.narrow(self.filter.text)

    def _picker_rows(self) -> HSplit:
        """Return the rows of a list to choose from, and of what narrows it down."""
        return HSplit(
            [
                Window(
                    FormattedTextControl(self._choices),
                    height=lambda: Dimension.exact(
                        1 + sum(text.count("\n") for _, text, *_ in self._choices())
                    ),
                    dont_extend_height=True,
                ),
                Window(
                    BufferControl(self.filter, input_processors=[ShowUnseen()]),
                    height=1,
                    get_line_prefix=lambda _line, _wrap: [("class:prompt", "> ")],
                ),
            ]
        )

    def _choices(self) -> StyleAndTextTuples:
        picker = self._chat.picker
        if picker is None:
            return []
        width, height = _size()
        made: StyleAndTextTuples = [("class:prompt", fitted(picker.title, width - 1))]
        for row, marked in picker.rows(width - 1, max(3, min(MOST_ROWS, height - 8))):
            made += [("", "\n"), ("class:marked" if marked else "", row)]
        return [*made, ("", "\n"), ("class:around", picker.foot(width - 1))]

    def plan(self) -> list[str]:
        """Return the plan of the agent, as long as something of it is left to do."""
        conversation = self._chat.conversation
        if conversation is None or all(one.is_done for one in conversation.plan):
            return []
        width, height = _size()
        most = max(3, min(_MOST_PLANNED, height // 3))
        return plan_lines(conversation.plan, width - 1, most, color=self._chat.screen.color)

    def speaking(self) -> list[str]:
        """Return the row of the answer that is not full yet, if the answer comes slowly."""
        row = self._chat.progress.open_row
        return [fitted(row, _size()[0] - 1)] if row.strip() else []

    def doing(self) -> list[str]:
        """Return the current work, one line each."""
        return self._chat.progress.lines(_size()[0] - 1)[:_MOST_DOING]

    def waiting(self) -> list[str]:
        """Return what waits, one line each."""
        return [fitted(line, _size()[0] - 1) for line in self._chat.waiting_lines()]

    def _pane_lines(self) -> list[str]:
        width, height = _size()
        return self.pane.lines(width - 1, height * 2 // 3, color=self._chat.screen.color)

    def _toolbar(self) -> str:
        width = _size()[0]
        return fitted(self.notice, width - 1) if self.notice else toolbar(self._chat, width)


def _size() -> tuple[int, int]:
    size = get_app().output.get_size()
    return size.columns, size.rows


def _prefix(line: int, wrap: int) -> StyleAndTextTuples:
    return [("class:prompt", _PROMPT if line == 0 and wrap == 0 else _CONTINUED)]


def _lines(lines: Callable[[], list[str]], *, style: str) -> ConditionalContainer:
    """Return a window for lines that come and go."""
    shown = Window(
        FormattedTextControl(lambda: ANSI("\n".join(lines()))),
        height=lambda: Dimension.exact(len(lines())),
        style=style,
        dont_extend_height=True,
    )
    return ConditionalContainer(shown, filter=~is_done & Condition(lambda: bool(lines())))
