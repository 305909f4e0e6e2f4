"""The events of a run as lines: words as they come, one line for each tool call and each thought.

Current work goes to `Progress`, for screens with a line that changes. On other screens the start of a call
is a line as well. `Remarks` are the chat's own lines: notes, errors, and the echo of what was typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.rendering.displays import display_lines
from agent_terminal_app.chat.rendering.folds import took
from agent_terminal_app.chat.rendering.markdown import LineMarkdown
from agent_terminal_app.chat.rendering.text import clean, fitted, one_line, styled
from agent_terminal_app.chat.rendering.wrap import rows_of, wrapped
from agent_terminal_app.errors import category_code, is_limit, key_command, limit_lines
from agent_terminal_app.rows import cells, in_rows, prose_rows

if TYPE_CHECKING:
    from agent_terminal_app.chat.rendering.folds import Call, Folds, Thought
    from agent_terminal_app.chat.rendering.progress import Progress
    from agent_terminal_app.chat.rendering.screen import Asides, Screen


def as_said(text: str, width: int | None) -> list[str]:
    """Return a message of the user in rows: one mark for all of it, however many there are."""
    rows = prose_rows(clean(text).removesuffix("\n"), None if width is None else width - 2)
    return [f"{'  ' if number else '» '}{row}" for number, row in enumerate(rows)]


class Remarks:
    """Says things on a screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def note(self, text: str, *, failed: bool = False) -> None:
        """Show a line that is not part of the conversation."""
        self._show(text, "red" if failed else "dim")

    def fail(self, error: BaseException) -> None:
        text = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
        self._show(f"Error: {clean(text)}", "red")

    def echo(self, text: str) -> None:
        """Show what was typed where it belongs, if the prompt that it was typed into is empty by then."""
        if self._screen.is_live:
            for line in as_said(text, self._screen.width):
                self._screen.line(styled(line, "bold", color=self._screen.color))

    def _show(self, text: str, style: str) -> None:
        for line in wrapped(text, self._screen.width):
            self._screen.line(styled(line, style, color=self._screen.color))


_PREVIEW = 100
_MOST_DIFF_LINES = 20
_MOST_REASON_ROWS = 6
_NARROW, _BRIEF = 60, 1.0
"""On fewer cells than these, a call that took fewer seconds than these is shown without them."""
_TAIL, _TAIL_OF_FAILURE = 5, 12
_THINKING, _STATUS, _RETRY = "thinking", "status", "retry"


class Renderer:
    """Shows the events of one request.

    Args:
        screen: Where lines go.
        folds: Where everything is kept that is shown as one line.
        progress: The current work.
        asides: What is shown besides the answer, which waits for the end of a paragraph.

    Attributes:
        ended_well: Whether the request has ended because there was nothing more to do.
        limit: The limit that has stopped it, by the code of the reason; Enter continues then.
        failure: The exit code of the error with which it has failed; 0 if it has not.
    """

    def __init__(
        self, screen: Screen, folds: Folds, progress: Progress, asides: Asides | None = None
    ) -> None:
        self._asides = asides
        self._tail = ""
        self.ended_well = False
        self.limit = ""
        self.failure = 0
        self._agent_id = ""
        self._screen = screen
        self._folds = folds
        self._progress = progress
        self._words = LineMarkdown(color=screen.color, width=screen.width)
        self._thought: Thought | None = None
        self._calls: dict[str, Call] = {}
        self._written: dict[str, int] = {}
        self._steps: dict[str, str] = {}
        self._status = ""

    def show(self, event: Mapping[str, Any]) -> None:
        """Show one event; those that say nothing to the user are left out."""
        handle = getattr(self, f"_on_{event['type']}", None)
        if handle is not None:
            handle(event)

    @property
    def is_silent(self) -> bool:
        """Whether the request has not begun: then the message is not in the session either."""
        return not self._agent_id

    def has_begun(self, call_id: str) -> bool:
        """Say whether a call has begun that has no result yet."""
        return call_id in self._calls

    def end(self) -> None:
        """Show what was begun; no more events will come."""
        self._finish_words()

    # What the model says

    def _on_run_start(self, event: Mapping[str, Any]) -> None:
        self._agent_id = str(event["agent_id"])

    def _on_step_start(self, event: Mapping[str, Any]) -> None:
        self._progress.take_step(event["round"])

    def _on_text(self, event: Mapping[str, Any]) -> None:
        self._finish_thought()
        self._progress.done(_STATUS)
        self._words.width = self._screen.width
        lines = self._words.feed(event["text"])
        for line in lines:
            self._screen.line(line)
        self._progress.speak(self._words.open_row, begins=bool(lines))
        self._note_paragraph(event["text"])

    def _note_paragraph(self, text: str) -> None:
        """Let others wait while a paragraph has begun and not ended."""
        self._tail = (self._tail + text)[-2:]
        if self._asides is not None:
            is_over = self._tail == "\n\n"
            (self._asides.paragraph_ends if is_over else self._asides.paragraph_begins)()

    def _on_reasoning(self, event: Mapping[str, Any]) -> None:
        if self._thought is None:
            self._finish_words()
            self._thought = self._folds.think()
            self._progress.do(_THINKING, "… thinking")
        self._thought.text.add(event["text"])
        self._progress.tell(_THINKING, self._thought.text.last_line())

    def _on_status(self, event: Mapping[str, Any]) -> None:
        text = one_line(event["text"])
        self._progress.do(_STATUS, f"… {text}")
        if not self._screen.is_live and text != self._status:
            self._note(f"… {text}")
        self._status = text

    def _finish_thought(self) -> None:
        thought, self._thought = self._thought, None
        if thought is not None:
            thought.seconds = self._progress.done(_THINKING)
            self._note(
                f"… thought: {took(thought.seconds)}{thought.text.length:,} characters [{thought.number}]"
            )

    def _finish_words(self) -> None:
        self._finish_thought()
        self._progress.speak(None)
        for line in self._words.end():
            self._screen.line(line)
        self._tail = ""
        if self._asides is not None:
            self._asides.paragraph_ends()

    # Tool calls

    def _on_tool_call_args(self, event: Mapping[str, Any]) -> None:
        key = f"args {event['index']}"
        if key not in self._written:
            self._finish_thought()
            self._progress.do(key, f"… writing a call of {event['name'] or 'a tool'}")
        self._written[key] = self._written.get(key, 0) + len(event["arguments"])
        self._progress.tell(key, f"{self._written[key]:,} characters")

    def _on_tool_call_start(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        for key in self._written:
            self._progress.done(key)
        self._written.clear()
        call = self._calls[event["call_id"]] = self._folds.call(event)
        self._progress.do(event["call_id"], f"⚙ {call.title}")
        if not self._screen.is_live:
            self._note(f"⚙ {self._cut(call.title)}")

    def _on_tool_call_partial(self, event: Mapping[str, Any]) -> None:
        call_id, part = event["call_id"], event["part"]
        if (call := self._calls.get(call_id)) is None:
            return
        if (
            isinstance(part, Mapping) and part.get("type") == "step_start"
        ):  # of an agent that works for this one
            self._steps[call_id] = f"step {part['round']} · "
        text = part_text(part)
        if text:
            call.output.add(text)
        if text or call_id in self._steps:
            self._progress.tell(call_id, call.output.last_line(), front=self._steps.get(call_id, ""))

    def _on_tool_call_result(self, event: Mapping[str, Any]) -> None:
        began = event["call_id"] in self._calls
        call = self._calls.pop(event["call_id"], None) or self._folds.call(event)
        call.message, call.failed, call.seconds = event["message"], event["is_error"], event["seconds"]
        self._progress.done(event["call_id"])
        self._finish_words()
        self._show_call(call, began=began)
        self._show_diff(call)
        self._show_output(call)

    def _show_call(self, call: Call, *, began: bool) -> None:
        mark, style = ("✗", "red") if call.failed else ("✓", "green")
        below = ""
        seconds = call.seconds or 0
        is_worth_it = seconds >= _BRIEF or (self._screen.width or _PREVIEW) >= _NARROW
        end = f" ({seconds:.1f} s) [{call.number}]" if is_worth_it else f" [{call.number}]"
        if self._screen.is_live or not began:
            room = self._room(end)
            rest = room - cells(call.outcome) - cells(" → ")  # a short outcome is shown whole
            is_short = rest >= min(room // 3, cells(call.title))
            if call.failed and not is_short:  # nobody should have to open a call to learn why it failed
                text, below = fitted(call.title, room), call.outcome
            else:
                title = fitted(call.title, max(rest if rest >= room // 3 else room * 2 // 3, 1))
                text = self._cut(f"{title} → {call.outcome}", end)
        else:
            text = self._cut(f"  {call.outcome}", end).lstrip()
            mark = f"  {mark}"
        shown = styled(mark, style, color=self._screen.color)
        text = styled(text, "red", color=self._screen.color) if call.failed else text
        self._screen.line(f"{shown} {text}{styled(end, 'dim', color=self._screen.color)}")
        rows = in_rows(f"    {below}", self._screen.width, 4) if below else []
        for row in [*rows[:_MOST_REASON_ROWS], *(["    …"] if len(rows) > _MOST_REASON_ROWS else [])]:
            self._screen.line(styled(row, "red", color=self._screen.color))

    def _show_diff(self, call: Call) -> None:
        """Show what a call changed, which people want to see without being asked."""
        result = (call.message or {}).get("metadata", {}).get("display")
        for display in (result, call.display):
            if isinstance(display, Mapping) and display.get("type") == "diff":
                lines = display_lines(display, width=self._screen.width, color=self._screen.color)
                for line in lines[:_MOST_DIFF_LINES]:
                    self._screen.line(f"    {line}")
                if len(lines) > _MOST_DIFF_LINES:
                    self._note(f"    … {len(lines) - _MOST_DIFF_LINES:,} more lines [{call.number}]")
                return

    def _show_output(self, call: Call) -> None:
        """Show the end of what a command printed; what comes before is counted, and can be opened."""
        lines = call.output_lines()
        most = _TAIL_OF_FAILURE if call.failed else _TAIL
        hidden = len(lines) - most if len(lines) > most + 1 else 0
        if hidden:
            self._note(f"    … {hidden:,} lines before [{call.number}]")
        style = "red" if call.failed else "dim"
        for line in lines[hidden:]:
            for row in rows_of(f"    {line}", self._screen.width):
                self._screen.line(styled(row, style, color=self._screen.color))

    # What else happens

    def _on_retry(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        again = "; the answer starts over" if event.get("discarded") else ""
        self._progress.do(_RETRY, "… trying again", seconds=event["seconds"])
        self._note(
            f"… {clean(event['message'])}; again in {event['seconds']:.0f} s "
            f"(retry {event['attempt']} of {event['of']}, Esc stops){again}"
        )

    def _on_fallback(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        again = "; the answer starts over" if event.get("discarded") else ""
        self._note(f"… {clean(event['instead_of'])} cannot answer; {clean(event['model'])} continues{again}")

    def _on_handoff(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        self._note(f"→ {clean(event['to_agent'])} takes over from {clean(event['from_agent'])}")

    def _on_compaction(self, event: Mapping[str, Any]) -> None:
        self._note(
            f"… {event['messages']} older messages are sent as a summary from now on "
            f"({event['tokens_before']} → {event['tokens_after']} tokens); nothing is lost"
        )

    def _on_warning(self, event: Mapping[str, Any]) -> None:
        self._finish_words()  # it is about what comes next, and the words so far came before it
        self._note(f"! {clean(event['message'])}")

    def _on_lifecycle_error(self, event: Mapping[str, Any]) -> None:
        about = event.get("error")
        reason = about.get("message") if isinstance(about, Mapping) else about
        self._note(f"! {event.get('plugin')}, at {event['lifecycle']}: {one_line(str(reason))}")

    def _on_suspended(self, _event: Mapping[str, Any]) -> None:
        self._finish_words()  # what is asked is shown when the turn is over, see `approvals`

    def _on_turn_end(self, _event: Mapping[str, Any]) -> None:
        self._finish_words()

    def _on_final(self, event: Mapping[str, Any]) -> None:
        self._finish_words()
        code = event["reason"]["code"]
        self.ended_well = code in ("natural_end", "length")
        self.limit = code if is_limit(code) else ""
        if code == "cancelled":
            self._note("interrupted; the answer so far is kept")
        elif self.limit:
            for line in limit_lines(self._agent_id, event["reason"]):
                self._note(clean(line))
        elif code not in ("natural_end", "suspended"):
            self._note(f"stopped: {clean(event['reason']['detail'] or code)}")

    def _on_error(self, event: Mapping[str, Any]) -> None:
        self.failure = category_code(event["error"].get("category"))
        self._finish_words()
        for text in error_lines(event["error"]):
            for line in wrapped(text, self._screen.width):
                self._screen.line(styled(line, "red", color=self._screen.color))

    def _cut(self, text: str, end: str = "") -> str:
        return fitted(text, self._room(end))

    def _room(self, end: str = "") -> int:
        return max((self._screen.width or _PREVIEW) - cells(end) - 4, 1)

    def _note(self, text: str) -> None:
        for line in wrapped(text, self._screen.width):
            self._screen.line(styled(line, "dim", color=self._screen.color))


def error_lines(error: Mapping[str, Any]) -> list[str]:
    """Return what went wrong, what to do about it, and what the provider calls the request."""
    lines = [f"Error: {one_line(str(error['message']))}"]
    lines += [f"  {one_line(note)}" for note in error.get("notes", ())]
    step = error.get("next_step")
    if isinstance(step, str) and step not in lines[0]:
        lines.append(f"  {one_line(step)}")
    if command := key_command(error):
        lines.append(f"  {command}, or /setup")
    request_id = str(error.get("request_id") or "")
    return (
        [*lines, f"  request {one_line(request_id)}"] if request_id and request_id not in lines[0] else lines
    )


def part_text(part: Any) -> str:
    """Return what a tool's partial output says: its text, or that of a delegate's event."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type") == "reasoning":
        return ""
    if part.get("type") == "tool_call_start":
        return f"\n⚙ {part.get('preview') or part.get('name')}\n"
    text = part.get("text", part.get("content", part.get("output", "")))
    return text if isinstance(text, str) else ""
