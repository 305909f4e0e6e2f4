"""The keys. One table: each function says in its first line what the key does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, has_completions, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

    from agent_terminal_app.chat.prompt import Prompt

_PAGE = 10


def chat_keys(prompt: Prompt) -> KeyBindings:
    """Return the keys of a chat."""
    keys = KeyBindings()
    _sending_keys(keys, prompt)
    _stopping_keys(keys, prompt)
    _editing_keys(keys, prompt)
    _looking_keys(keys, prompt)
    return keys


def _sending_keys(keys: KeyBindings, prompt: Prompt) -> None:
    typing = has_focus(prompt.line.buffer)

    @keys.add("enter", filter=typing)
    def _send(event: KeyPressEvent) -> None:
        """Send; take the completion that is chosen; behind a backslash begin a new line."""
        buffer = event.current_buffer
        if prompt.line.is_chosen:
            prompt.line.take_completion()
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            prompt.send()

    @keys.add("escape", "enter", filter=typing)
    @keys.add("c-j", filter=typing)
    def _new_line(event: KeyPressEvent) -> None:
        """Begin a new line."""
        event.current_buffer.insert_text("\n")

    @keys.add("tab", filter=typing)
    def _tab(event: KeyPressEvent) -> None:
        """Take a completion; queue while the agent works; look for completions."""
        buffer = event.current_buffer
        if prompt.line.has_choice:
            prompt.line.take_completion()
        elif prompt.chat.running and buffer.text.strip():
            prompt.send(queue=True)
        else:
            buffer.start_completion(select_first=False)

    @keys.add("escape", "up", filter=typing)
    def _take_back(_event: KeyPressEvent) -> None:
        """Take back the last message that waits, to edit it."""
        prompt.take_back()


def _stopping_keys(keys: KeyBindings, prompt: Prompt) -> None:
    typing = has_focus(prompt.line.buffer)

    @keys.add("escape", filter=typing & ~is_searching)
    def _stop(_event: KeyPressEvent) -> None:
        """Close what is open; else stop what goes on; twice, with nothing typed, go back a message."""
        prompt.escape()

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _interrupt(event: KeyPressEvent) -> None:
        """Stop what goes on; else clear what is typed, which Up brings back; else leave."""
        if prompt.interrupt():
            return
        if prompt.line.buffer.text:
            event.app.layout.focus(prompt.line.buffer)
            prompt.line.clear()
        else:
            prompt.leave()

    @keys.add("c-d", filter=typing & Condition(lambda: not prompt.line.buffer.text))
    def _leave(_event: KeyPressEvent) -> None:
        """Leave."""
        prompt.leave()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        """Let the shell have the terminal for a while."""
        event.app.suspend_to_background()


def _editing_keys(keys: KeyBindings, prompt: Prompt) -> None:
    typing = has_focus(prompt.line.buffer)
    behind_mark = typing & Condition(lambda: prompt.line.mark_before_cursor() is not None)

    @keys.add(Keys.BracketedPaste, filter=typing)
    def _paste(event: KeyPressEvent) -> None:
        """Paste; a large text is shown as a mark."""
        prompt.paste(event.data)

    @keys.add("backspace", filter=behind_mark)
    @keys.add("c-h", filter=behind_mark)
    @keys.add("c-w", filter=behind_mark)
    @keys.add("escape", "backspace", filter=behind_mark)
    def _delete_mark(_event: KeyPressEvent) -> None:
        """Delete a whole mark."""
        prompt.line.delete_mark()

    @keys.add("c-g", filter=typing)
    def _edit(_event: KeyPressEvent) -> None:
        """Edit what is typed in $EDITOR."""
        prompt.edit()


def _looking_keys(keys: KeyBindings, prompt: Prompt) -> None:
    pane_is_open = Condition(lambda: prompt.around.pane.is_open)

    @keys.add("c-o")
    def _open(_event: KeyPressEvent) -> None:
        """Open the last tool call or thought; again, the one before."""
        if prompt.chat.conversation is not None:
            prompt.around.pane.open_next(prompt.chat.conversation.folds)

    @keys.add("pageup", filter=pane_is_open)
    def _up(_event: KeyPressEvent) -> None:
        """Show what is above in what is open."""
        prompt.around.pane.scroll(-_PAGE)

    @keys.add("pagedown", filter=pane_is_open)
    def _down(_event: KeyPressEvent) -> None:
        """Show what is below in what is open."""
        prompt.around.pane.scroll(_PAGE)

    @keys.add("c-l")
    def _clear(event: KeyPressEvent) -> None:
        """Clear the screen."""
        event.app.renderer.clear()

    @keys.add("f1", filter=~has_completions)
    def _help(_event: KeyPressEvent) -> None:
        """Show the help."""
        prompt.run_command("/help")
