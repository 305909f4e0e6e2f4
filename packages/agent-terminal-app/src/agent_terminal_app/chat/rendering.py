"""The events of a run as lines: words as they come, a tool call as one line, the end as meters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_terminal_app.chat.markdown import LineMarkdown, clean, styled

if TYPE_CHECKING:
    from agent_terminal_app.chat.screen import Screen

_PREVIEW = 100


class Renderer:
    """Shows the events of one request."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._words = LineMarkdown(color=screen.color, width=screen.width)
        self._thinking = False

    def show(self, event: Mapping[str, Any]) -> None:
        """Show one event; those that say nothing to a person are left out."""
        handle = getattr(self, f"_on_{event['type']}", None)
        if handle is not None:
            handle(event)

    def _on_text(self, event: Mapping[str, Any]) -> None:
        self._thinking = False
        for line in self._words.feed(event["text"]):
            self._screen.line(line)

    def _on_reasoning(self, _event: Mapping[str, Any]) -> None:
        if not self._thinking:
            self._note("… thinking")
        self._thinking = True

    def _on_status(self, event: Mapping[str, Any]) -> None:
        self._note(f"… {clean(event['text'])}")

    def _on_tool_call_start(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        self._note(f"⚙ {_cut(event['preview'] or event['name'])}")

    def _on_tool_call_partial(self, event: Mapping[str, Any]) -> None:
        part = event["part"]
        text = part if isinstance(part, str) else part.get("text", "") if isinstance(part, Mapping) else ""
        if text and not (isinstance(part, Mapping) and part.get("type") in ("text", "reasoning")):
            self._note(f"  {_cut(str(text))}")

    def _on_tool_call_result(self, event: Mapping[str, Any]) -> None:
        mark, style = ("✗", "red") if event["is_error"] else ("✓", "green")
        text = f"  {mark} {_cut(str(event['message']['content']))} ({event['seconds']:.1f} s)"
        self._screen.line(styled(text, style, color=self._screen.color))

    def _on_retry(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        self._note(
            f"… {clean(event['message'])}; again in {event['seconds']:.0f} s "
            f"(attempt {event['attempt']} of {event['of']}, Esc stops)"
        )

    def _on_fallback(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        self._note(f"… {event['instead_of']} cannot answer, {event['model']} goes on")

    def _on_compaction(self, event: Mapping[str, Any]) -> None:
        self._note(
            f"… {event['messages']} older messages are sent as a summary from now on "
            f"({event['tokens_before']} → {event['tokens_after']} tokens); nothing is lost"
        )

    def _on_warning(self, event: Mapping[str, Any]) -> None:
        self._note(f"! {clean(event['message'])}")

    def _on_suspended(self, _event: Mapping[str, Any]) -> None:
        self._finish_words()  # what is asked is shown when the turn is over, see `approvals`

    def _on_turn_end(self, _event: Mapping[str, Any]) -> None:
        self._finish_words()

    def _on_final(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        code = event["reason"]["code"]
        if code == "cancelled":
            self._note("interrupted; what was said is kept")
        elif code not in ("natural_end", "suspended"):
            self._note(f"stopped: {event['reason']['detail'] or code}")

    def _on_error(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        self._screen.line(
            styled(f"Error: {clean(event['error']['message'])}", "red", color=self._screen.color)
        )

    def _finish_words(self) -> None:
        for line in self._words.end():
            self._screen.line(line)
        self._thinking = False

    def _note(self, text: str) -> None:
        self._screen.line(styled(text, "dim", color=self._screen.color))


def _cut(text: str) -> str:
    """Return the first line of a text, as much of it as fits."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= _PREVIEW else f"{line[: _PREVIEW - 1]}…"
