"""What is typed: an inline prompt with keys, completion and history, above which the chat scrolls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import print_formatted_text

from agent_core import AgentError
from agent_terminal_app.chat.commands import Quit, names
from agent_terminal_app.chat.screen import terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyPressEvent

    from agent_terminal_app.chat.loop import Chat


class PromptScreen:
    """Lines above the prompt, committed to the terminal's own scrollback."""

    def __init__(self, *, color: bool) -> None:
        self.color = color

    @property
    def width(self) -> int:
        """How many characters fit, as of now."""
        return terminal_width()

    def line(self, text: str = "") -> None:
        """Show a line above the prompt."""
        print_formatted_text(ANSI(text))


class CommandCompleter(Completer):
    """Completes what stands behind a slash at the beginning."""

    def get_completions(self, document: Document, complete_event: Any) -> Iterable[Completion]:  # noqa: ARG002
        """Yield the commands that begin like what was typed."""
        text = document.text_before_cursor
        if not text.startswith("/") or " " in text:
            return
        for name, about in names():
            if name.startswith(text[1:]):
                yield Completion(f"/{name}", start_position=-len(text), display_meta=about)


async def run_prompt(chat: Chat, history: Path | None) -> None:
    """Read lines from the terminal until the person leaves; the agent works meanwhile."""
    session: PromptSession[str] = PromptSession(
        history=_history(history),
        completer=CommandCompleter(),
        complete_while_typing=True,
        key_bindings=_keys(chat),
        bottom_toolbar=lambda: _toolbar(chat),
        refresh_interval=0.5,
        erase_when_done=False,
    )
    chat.start()
    with patch_stdout(raw=True):
        try:
            await _read(chat, session)
        finally:
            await chat.close()


async def _read(chat: Chat, session: PromptSession[str]) -> None:
    while True:
        try:
            line = await session.prompt_async("» ", handle_sigint=False)
        except KeyboardInterrupt:
            if not chat.interrupt():
                return
            continue
        except EOFError:
            return
        queue = line.startswith(_QUEUED)
        try:
            await chat.take(line.removeprefix(_QUEUED), queue=queue)
        except Quit:
            return
        except AgentError as error:
            print_formatted_text(ANSI(f"\x1b[31m{error}\x1b[0m"))
            return


_QUEUED = "\x00"  # in front of a line that was sent by Tab


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    return FileHistory(str(path))


def _toolbar(chat: Chat) -> str:
    conversation = chat.conversation
    if conversation is None:
        return " getting ready …"
    state = "working, Esc stops" if chat.running else "ready, /help for help"
    queued = f" · {conversation.queued} waiting" if conversation.queued else ""
    return f" {state}{queued} · {conversation.meters()}"


def _keys(chat: Chat) -> KeyBindings:
    keys = KeyBindings()
    running = Condition(lambda: chat.running)
    typed = Condition(lambda: bool(get_app().current_buffer.text))

    @keys.add("escape", eager=True, filter=running)
    def _stop(_event: KeyPressEvent) -> None:
        chat.interrupt()

    @keys.add("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        if not chat.interrupt():
            if event.current_buffer.text:
                event.current_buffer.reset(append_to_history=True)
            else:
                event.app.exit(exception=EOFError)

    @keys.add("tab", filter=running & typed)
    def _queue(event: KeyPressEvent) -> None:
        event.current_buffer.text = _QUEUED + event.current_buffer.text
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def run(chat: Chat, history: Path | None) -> None:
    """Run the prompt on an event loop of its own."""
    asyncio.run(run_prompt(chat, history))
