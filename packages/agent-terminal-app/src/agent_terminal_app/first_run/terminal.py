"""Asking in a terminal: the same questions, with completion, and Esc to leave."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.shortcuts import CompleteStyle

from agent_terminal_app.first_run.ask import choose_by_typing
from agent_terminal_app.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prompt_toolkit.key_binding import KeyPressEvent

_CHOICE = "Number or name (Enter: 1, Esc: leave): "
_FOR_ESCAPE = 0.2
"""How many seconds after Esc the rest of a key may come, such as an arrow's over a slow line."""


class TerminalAsk:
    """Asks with a prompt; what is said goes above it, and stays."""

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        """Show a list and read a number, or a part of a name."""
        read = partial(self._read, _CHOICE, [option.partition("  ")[0] for option in options])
        return await choose_by_typing(title, options, tell=self.tell, read=read)

    async def secret(self, prompt: str) -> str | None:
        """Read a line and show only how long it is."""
        return await self._read(prompt, hidden=True)

    async def line(self, prompt: str) -> str | None:
        """Read a line."""
        return await self._read(prompt)

    def tell(self, text: str) -> None:
        """Write lines that are safe to show."""
        say(text)

    async def _read(self, prompt: str, options: Sequence[str] = (), *, hidden: bool = False) -> str | None:
        session: PromptSession[str] = PromptSession(
            key_bindings=_leaving(),
            completer=WordCompleter(list(options), ignore_case=True, match_middle=True, sentence=True),
            complete_while_typing=bool(options),
            complete_style=CompleteStyle.COLUMN,
            reserve_space_for_menu=0 if hidden or not options else 6,
        )
        session.app.ttimeoutlen = _FOR_ESCAPE
        try:
            return await session.prompt_async(prompt, is_password=hidden, handle_sigint=False)
        except (EOFError, KeyboardInterrupt):
            return None


def _leaving() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", eager=True)
    @keys.add("c-c")
    @keys.add("c-d")
    def _leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError)

    return keys
