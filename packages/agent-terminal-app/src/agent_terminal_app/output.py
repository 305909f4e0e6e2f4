"""What commands print: tables for users, JSON for programs; both on stdout, and nothing else there.

A table on a terminal fits its width: the last column is cut, and where the others need all of it, each row
is shown as a list. In a pipe nothing is cut, so that a script gets whole values. Text from a conversation
may hold anything; control characters are removed from it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from bisect import bisect_right
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from wcwidth import wcswidth, wcwidth

from agent_core.clean_text import clean, reveal
from agent_terminal_app.errors import CommandError
from agent_terminal_app.rows import CODE_OR_LINK, in_rows, two_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

COMPLETION_VARIABLE = "_AGENT_COMPLETE"
"""Set by shells that want completions, and nothing else on any stream."""
# Escape sequences as terminals read them, and then every control but newline, return and tab.
_CONTROLS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    re.DOTALL,
)
_GAP = "  "
_NARROWEST = 16
"""How many cells the last column of a table needs; with fewer, its rows are lists."""
_USUAL = 80
_THOUSAND, _MILLION = 1_000, 1_000_000


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings, each column as wide as its widest value."""
    table = [list(headings), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    if is_terminal(sys.stdout):
        room = terminal_width() - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
        if room < min(widths[-1], _NARROWEST):
            _print_list(headings, table[1:])
            return
        widths[-1] = min(widths[-1], room)
    print_lines(_GAP.join(map(_fitted, row, widths)).rstrip() for row in table)


def _print_list(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the rows of a table one below the other: the first value, and under it the others by name."""
    names = [f"{_GAP}{heading.lower()}" for heading in headings[1:]]
    wide = max(map(_width, names), default=0)
    for first, *others in rows:
        print_rows([first])
        for name, value in zip(names, others, strict=True):
            if value:
                print_lines(two_columns(f"{name:<{wide}} ", value, terminal_width()))


def print_rows(lines: Iterable[str], hang: int | None = None) -> None:
    """Print lines; on a terminal in rows that end between words.

    Args:
        hang: How far all rows of a line but the first are set off; by default further than the line itself.
    """
    width = terminal_width() if is_terminal(sys.stdout) else None
    print_lines(row for line in lines for row in in_rows(line, width, hang))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines and flush them, so that a reader that has left is noticed here and not at the end.

    Raises:
        CommandError: If the program was started with its stdout closed, or what stdout leads to is full.
    """
    with writing_to("stdout"):
        for line in lines:
            _stdout().write(f"{line}\n")
        _stdout().flush()


def print_bytes(content: bytes) -> None:
    """Print bytes that need not be text.

    Raises:
        CommandError: As `print_lines` does.
    """
    with writing_to("stdout"):
        _stdout().buffer.write(content)
        _stdout().flush()


@contextmanager
def writing_to(place: object) -> Iterator[None]:
    """Name the place that could not be written in the error.

    Raises:
        CommandError: In place of the system's error; a broken pipe stays one.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write {place}: {error.strerror or error}") from error


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise CommandError("stdout is closed, so the result cannot be printed")
    return sys.stdout


def this_command() -> str:
    """Return what to type for this program: its name if the shell finds it under that, and else its path."""
    own = Path(sys.argv[0]).absolute() if sys.argv else Path()
    if own.name != "agent" or not own.is_file() or shutil.which("agent"):
        return "agent"
    return shlex.quote(os.path.relpath(own) if own.is_relative_to(Path.cwd()) else str(own))


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether a stream is a terminal; a stream that was closed before we started is None."""
    return stream is not None and stream.isatty()


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON; without an indent it takes one line."""
    print_lines([as_json(value, indent=indent)])


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON that any file can hold; objects with a dict form take that."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=_plain)
    # Half a surrogate pair has no bytes; escaped, every reader of JSON gets it back.
    return text if _is_encodable(text) else json.dumps(value, indent=indent, default=_plain)


def one_line(value: object) -> str:
    """Return a value as one line that is safe to show."""
    return " ".join(clean("" if value is None else str(value)).split())


def shown(text: str, *, raw: bool = False) -> str:
    """Return text for stdout: without what cannot be seen on a terminal, without controls in a pipe.

    A pipe may end in a terminal (`| tail`), so no escape sequence goes into one either.

    Args:
        raw: Whether a pipe gets the text as it is.
    """
    if is_terminal(sys.stdout):
        return clean(text)
    return (text if raw else _CONTROLS.sub("", text)).encode(errors="replace").decode()


def revealed(text: str, *, raw: bool = False) -> str:
    """Return text for stdout as `shown` does, with marks for what cannot be seen on a terminal."""
    return reveal(text, joiners=True) if is_terminal(sys.stdout) else shown(text, raw=raw)


def revealed_line(value: object) -> str:
    """Return a value as one line in which invisible characters are marked."""
    return " ".join(reveal(str(value), joiners=True).split())


def short_count(tokens: int) -> str:
    """Return a large number of tokens as people say it: 64k, 1M."""
    if tokens >= _MILLION:
        return f"{round(tokens / _MILLION, 1):g}M"
    return f"{round(tokens / _THOUSAND)}k" if tokens >= _THOUSAND else str(tokens)


def moment(seconds: float) -> str:
    """Return a time for reading, in the local time zone."""
    return datetime.fromtimestamp(seconds, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def say(text: str) -> None:
    """Write a message for the user on stderr, with nothing in it that is unsafe to show.

    On a terminal its rows end between words; a command in backquotes stays in one row if it fits.
    """
    if sys.stderr is None:
        return
    safe = clean(text).encode(errors="replace").decode()
    width = terminal_width(sys.stderr) if is_terminal(sys.stderr) else None
    rows = (row for line in safe.split("\n") for row in in_rows(line, width, keep=CODE_OR_LINK))
    sys.stderr.write("\n".join(rows) + "\n")
    sys.stderr.flush()


def _plain(value: Any) -> Any:
    """Return what JSON has no form for in one that it has."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return str(value)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _width(text: str) -> int:
    return max(wcswidth(text), 0)


def _fitted(text: str, width: int) -> str:
    """Return text in exactly so many columns, with a mark where it was cut."""
    if _width(text) <= width:
        return text + " " * (width - _width(text))
    kept = list(accumulate(max(wcwidth(char), 0) for char in text))
    cut = text[: bisect_right(kept, width - 1)]
    return cut + " " * (width - 1 - _width(cut)) + "…"


def terminal_width(stream: TextIO | None = None) -> int:
    """Return how many cells fit into a line of the terminal, as of now.

    Args:
        stream: The one that leads to it; by default stdout.
    """
    stream = stream or sys.__stdout__  # the terminal itself: what is printed may be redirected
    try:
        return os.get_terminal_size(1 if stream is None else stream.fileno()).columns or _USUAL
    except (OSError, ValueError):  # it may be closed, or no terminal
        return shutil.get_terminal_size((_USUAL, 24)).columns


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send everything that is printed on stdout, also by child processes, to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
