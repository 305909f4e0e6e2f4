"""What the chat itself says, beside the person and the agent: remarks, problems, and what was typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_terminal_app.chat.inline import wrapped
from agent_terminal_app.chat.text import clean, styled

if TYPE_CHECKING:
    from agent_terminal_app.chat.screen import Screen


class Remarks:
    """Says things on a screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def note(self, text: str) -> None:
        """Show a line that is no part of the conversation."""
        self._show(text, "dim")

    def fail(self, error: BaseException) -> None:
        """Show what went wrong."""
        text = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
        self._show(f"Error: {clean(text)}", "red")

    def echo(self, text: str) -> None:
        """Show what was typed where it belongs, if the prompt that it was typed into is empty by then."""
        if self._screen.is_live:
            first, *more = clean(text).split("\n")
            for line in (f"» {first}", *(f"  {line}" for line in more)):
                self._screen.line(styled(line, "bold", color=self._screen.color))

    def _show(self, text: str, style: str) -> None:
        for line in wrapped(text, self._screen.width):
            self._screen.line(styled(line, style, color=self._screen.color))
