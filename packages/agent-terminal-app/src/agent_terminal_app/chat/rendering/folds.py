"""Tool calls and the model's thinking: shown as one line each, and opened on request.

A fold keeps only the beginning and the end of a long text, however much a tool prints.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from agent_terminal_app.chat.rendering.displays import as_json, display_lines, display_summary
from agent_terminal_app.chat.rendering.text import one_line, printed, styled

if TYPE_CHECKING:
    from collections.abc import Mapping

_HALF = 32_768
_LONGEST_LINE = 500
_MOST = 100
_MOST_LINES = 400


class Excerpt:
    """The beginning and the end of a text that may be long, and its length."""

    def __init__(self) -> None:
        self.length = 0
        self._head = ""
        self._tail: deque[str] = deque()
        self._in_tail = 0
        self._line = ""
        self._line_is_over = True

    def add(self, text: str) -> None:
        self.length += len(text)
        self._note_last_line(text)
        room = _HALF - len(self._head)
        self._head += text[:room]
        self._add_to_tail(text[room:])

    def _add_to_tail(self, text: str) -> None:
        if not text:
            return
        self._tail.append(text[-_HALF:])
        self._in_tail += len(self._tail[-1])
        while self._in_tail - len(self._tail[0]) >= _HALF:
            self._in_tail -= len(self._tail.popleft())

    def __bool__(self) -> bool:
        return self.length > 0

    def __str__(self) -> str:
        tail = "".join(self._tail)[-_HALF:]
        lost = self.length - len(self._head) - len(tail)
        return f"{self._head}\n… {lost:,} characters left out …\n{tail}" if lost else self._head + tail

    def last_line(self) -> str:
        """Return the last line that has something on it, safe to show."""
        return one_line(self._line)

    def _note_last_line(self, text: str) -> None:
        begun = "" if self._line_is_over else self._line
        lines = begun + text[-_LONGEST_LINE:].replace("\r", "\n")
        said = lines.rstrip("\n")
        self._line_is_over = len(said) < len(lines)
        if said.strip():
            self._line = said.rpartition("\n")[2][-_LONGEST_LINE:]


class Fold(Protocol):
    """Something that was shown as a line, and can be opened.

    Attributes:
        number: What people call it by.
        title: What it is, in a line.
    """

    number: int

    @property
    def title(self) -> str:
        """What it is, in a line."""

    @property
    def size(self) -> int:
        """Rises with everything that becomes known of it."""

    def lines(self, *, width: int | None, color: bool) -> list[str]:
        """Return everything that is known of it."""


@dataclass(slots=True)
class Thought:
    """What a model thought before it spoke."""

    number: int
    text: Excerpt = field(default_factory=Excerpt)
    seconds: float | None = None

    @property
    def title(self) -> str:
        return f"thinking, {took(self.seconds)}{self.text.length:,} characters"

    @property
    def size(self) -> int:
        """How much it has thought."""
        return self.text.length

    def lines(self, *, width: int | None, color: bool) -> list[str]:
        shown = display_lines({"type": "markdown", "content": str(self.text)}, width=width, color=False)
        return [styled(line, "dim", color=color) for line in shown]


@dataclass(slots=True)
class Call:
    """A tool call: what was asked, what came while it ran, what came of it."""

    number: int
    name: str
    preview: str
    arguments: Any = None
    display: Mapping[str, Any] | None = None
    output: Excerpt = field(default_factory=Excerpt)
    message: Mapping[str, Any] | None = None
    failed: bool = False
    seconds: float | None = None

    @property
    def title(self) -> str:
        return one_line(self.preview or f"{self.name}{_arguments_in_brackets(self.arguments)}")

    @property
    def size(self) -> int:
        """How much has come of it."""
        return self.output.length + (self.message is not None)

    @property
    def outcome(self) -> str:
        """What came of it, in a line."""
        if self.message is None:
            return "not finished"
        shown = _shown_result(self.message)
        if shown is not None and (ended := _exit(shown)):
            return ended
        said = str(self.message.get("content", ""))[:_HALF]
        return (
            display_summary(shown) if shown else one_line(said.removeprefix(_ERROR) if self.failed else said)
        )

    def output_lines(self) -> list[str]:
        """Return what a command printed, as far as its result has it; nothing if it was not a command."""
        shown = None if self.message is None else _shown_result(self.message)
        if shown is None or not _exit(shown):
            return []
        lines = [printed(line) for line in str(shown.get("content", "")).splitlines()]
        if lines and lines[-1] == f"[{_exit(shown)}]":  # it is in the line about the call
            lines.pop()
        return [] if lines == [_NO_OUTPUT] else lines

    def lines(self, *, width: int | None, color: bool) -> list[str]:
        """Return arguments, output, result and duration."""
        lines = _section("arguments", _argument_lines(self.arguments), color=color)
        if self.display is not None:
            lines += _section("shows", display_lines(self.display, width=width, color=color), color=color)
        if self.output:
            printed_lines = [printed(line) for line in str(self.output).splitlines()]
            lines += _section("output", printed_lines, color=color)
        if self.message is not None:
            name = "error" if self.failed else "result"
            result = _result_lines(self.message, width=width, color=color)
            lines += _section(f"{name}, {took(self.seconds)}".rstrip(", "), result, color=color)
        return lines


class Folds:
    """The folds of one chat, numbered from 1; of many only the last are kept."""

    def __init__(self) -> None:
        self._all: deque[Fold] = deque(maxlen=_MOST)
        self._count = 0

    def think(self) -> Thought:
        thought = Thought(self._next())
        self._all.append(thought)
        return thought

    def call(self, event: Mapping[str, Any]) -> Call:
        call = Call(self._next(), str(event["name"]), str(event.get("preview") or ""), event.get("arguments"))
        call.display = event.get("display")
        self._all.append(call)
        return call

    def find(self, number: int | None = None) -> Fold | None:
        """Return the fold of a number, or the last one."""
        if number is None:
            return self._all[-1] if self._all else None
        return next((fold for fold in self._all if fold.number == number), None)

    def before(self, number: int) -> Fold | None:
        """Return the fold before another."""
        return next((fold for fold in reversed(self._all) if fold.number < number), None)

    def _next(self) -> int:
        self._count += 1
        return self._count


def fold_lines(fold: Fold, *, width: int | None, color: bool) -> list[str]:
    """Return a fold as lines, within bounds, its title first."""
    lines = fold.lines(width=width, color=color)
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        left_out = styled(f"… {len(lines) - _MOST_LINES:,} lines left out …", "dim", color=color)
        lines = [*lines[:half], left_out, *lines[-half:]]
    return [styled(f"[{fold.number}] {fold.title}", "bold", color=color), *lines]


def took(seconds: float | None) -> str:
    """Return a duration with a comma behind it, or nothing if it is not known."""
    return "" if seconds is None else f"{seconds:.1f} s, "


def _section(name: str, lines: list[str], *, color: bool) -> list[str]:
    return [styled(f"  {name}", "dim", color=color), *(f"    {line}" for line in lines)]


def _arguments_in_brackets(arguments: Any) -> str:
    """Return the arguments of a call that has no line of its own, since it did not begin."""
    if isinstance(arguments, dict):
        return f"({', '.join(f'{name}={as_json(value)}' for name, value in arguments.items())})"
    return f"({arguments})" if arguments else ""


def _argument_lines(arguments: Any) -> list[str]:
    if isinstance(arguments, str):
        return [printed(line) for line in arguments.splitlines()]
    return [printed(line) for line in as_json(arguments, indent=2).splitlines()]


def _result_lines(message: Mapping[str, Any], *, width: int | None, color: bool) -> list[str]:
    shown = _shown_result(message) or {"type": "text", "content": str(message.get("content", ""))}
    return display_lines(shown, width=None if width is None else width - 4, color=color)


_NO_OUTPUT = "(no output)"
_ERROR = "Error: "
"""How the model reads a failure; a person sees it by the colour and the mark."""


def _exit(display: Mapping[str, Any]) -> str:
    """Return how a command ended; empty if that is not what a display is about."""
    if "exit_code" not in display:
        return ""
    code = display["exit_code"]
    if not isinstance(code, int):
        return "it may still run"
    return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"


def _shown_result(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    display = (message.get("metadata") or {}).get("display")
    return display if isinstance(display, dict) else None
