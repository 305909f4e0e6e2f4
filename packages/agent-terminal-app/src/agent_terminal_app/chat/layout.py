"""What stands around the prompt: what goes on, what waits, what was opened, what can be typed, the meters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.application import get_app
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

from agent_terminal_app.chat.modes import ALLOWED
from agent_terminal_app.chat.pane import Pane
from agent_terminal_app.chat.text import cells, fitted, unseen_marked

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.buffer import Buffer

    from agent_terminal_app.chat.loop import Chat

STYLE = Style.from_dict(
    {
        "around": "dim",
        "prompt": "bold",
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
_MENU = 8
_PROMPT, _CONTINUED = "» ", "  "


def toolbar(chat: Chat, width: int) -> str:
    """Return the last line: the state, the mode if edits are not asked about, as many meters as fit."""
    conversation = chat.conversation
    parts, kept = [_state(chat)], 1
    if conversation is not None:
        mode = [ALLOWED] if conversation.edits.allowed else []
        parts, kept = [*mode, *parts, *conversation.meters.parts()], 1 + len(mode)
    while len(parts) > kept and cells(" · ".join(parts)) > width - 1:
        parts.pop()
    return fitted(" · ".join(parts), width - 1)


def _state(chat: Chat) -> str:
    if chat.asks_for_a_line:
        hidden = ", it is not shown" if chat.asks_for_a_secret else ""
        return f"type your answer{hidden} · Esc leaves it"
    if chat.progress.running:
        return chat.progress.state()
    if chat.busy:
        return "working · Esc stops"
    if chat.conversation is None:
        return "starting …"
    if chat.asking:
        return "your answer? · Esc: no"
    return f"ready · {chat.keys.first('help')} help" if chat.keys.first("help") else "ready · /help"


def _hiding(chat: Chat) -> Processor:
    """Return what shows only how long a text is, while one is asked for that nobody shall see."""
    return ConditionalProcessor(PasswordProcessor(), Condition(lambda: chat.asks_for_a_secret))


class ShowUnseen(Processor):
    """Shows that there is a character where one would see nothing, or text that is turned around."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Put a mark in the place of each."""
        typed = transformation_input.fragments
        shown: StyleAndTextTuples = [(style, unseen_marked(text)) for style, text, *_ in typed]
        return Transformation(shown)


class Around:
    """Everything around the prompt.

    Args:
        chat: What is shown.
        buffer: What is typed.
        color: Whether styles are wanted.
    """

    def __init__(self, chat: Chat, buffer: Buffer, *, color: bool) -> None:
        self._chat = chat
        self._color = color
        self.pane = Pane(chat.keys)
        self.search = SearchToolbar()
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
                _lines(self._pane_lines, style=""),
                _lines(self.doing, style="class:around"),
                _lines(self.waiting, style="class:around"),
                ConditionalContainer(self.prompt, filter=here),
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
        return tuple(self.doing()), tuple(self.waiting()), toolbar(self._chat, _size()[0]), self.pane.is_open

    def doing(self) -> list[str]:
        """Return what goes on now, one line each."""
        return [fitted(line, _size()[0] - 1) for line in self._chat.progress.lines()[:_MOST_DOING]]

    def waiting(self) -> list[str]:
        """Return what waits, one line each."""
        return [fitted(line, _size()[0] - 1) for line in self._chat.waiting_lines()]

    def _pane_lines(self) -> list[str]:
        width, height = _size()
        return self.pane.lines(width - 1, height * 2 // 3, color=self._color)

    def _toolbar(self) -> str:
        return toolbar(self._chat, _size()[0])


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
