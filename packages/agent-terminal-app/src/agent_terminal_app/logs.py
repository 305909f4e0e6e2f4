"""The log of one command: JSON lines in files that only their owner can read, and never on the screen.

What the platform, plugins and libraries log goes to these files. What the user should know is shown by
events and errors, which carry the same request id as the log. No file is made before there is something to
write.

All commands of a user share the newest file. Each line is one write at the end of the file, so lines of two
processes never mix. A full file is followed by one with the next number, and only the newest are kept.

Secrets are removed before a line is written: every value that the key store gave out or that the
environment has under a secret's name, and whatever looks like a key. That happens while texts are whole;
only then are long ones cut.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.safe_files import make_private_folder
from agent_terminal_app import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from agent_app.redaction import Redactor

LEVELS = ("debug", "info", "warning", "error", "off")
"""How much is logged, from everything to nothing."""
DEFAULT_LEVEL = "info"
LEVEL_VARIABLE = "AGENT_LOG_LEVEL"
"""Sets the level where no flag does."""

LARGEST_FILE = 10 << 20
"""How many bytes a file may have."""
KEPT = 10
"""How many files are kept."""
LONGEST_TEXT = 8_000
"""How many characters of one text are written."""
LONGEST_LINE = 64_000
"""How many bytes a line may have."""

_PATTERN = "agent-*.jsonl"
_SHORTEST_SECRET = 4
_hidden: set[str] = set()
_open: list[_Log] = []
"""The log of this process, if there is one: Python has one root logger as well."""


def start_log(folder: Callable[[], Path], level: str = DEFAULT_LEVEL) -> None:
    """Send what is logged from now on to files in a folder, which is asked for with the first line."""
    stop_log()
    if level == "off":
        keep_off_the_screen()
    else:
        _open.append(_Log(folder, level))


def stop_log() -> None:
    """Close the log, and put Python's logging back as it was before."""
    while _open:
        _open.pop().close()


def is_logging() -> bool:
    """Say whether there is a log to write to."""
    return bool(_open)


def note(event: str, *, level: str = "info", **fields: Any) -> None:
    """Write a line of our own, if there is a log."""
    if not _open:
        return
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("agent_terminal_app").log(number, event, extra={"fields": fields})


def note_failure(event: str, error: BaseException, **fields: Any) -> None:
    """Write that something failed, with everything that an error knows about itself."""
    if not _open:
        return
    note(event, level="error", **fields, error=lazy.describe(error))


def note_traceback(event: str, error: BaseException) -> None:
    """Write an unexpected error with its traceback."""
    lines = traceback.format_exception(error)
    note(event, level="error", error=f"{type(error).__name__}: {error}", traceback="".join(lines))


def hide(secret: str) -> None:
    """Keep a value out of the log from now on, wherever it stands.

    One that is as short as ordinary words cannot be hidden.
    """
    if len(secret) >= _SHORTEST_SECRET:
        _hidden.add(secret)


def hidden() -> frozenset[str]:
    """Return the values that this process has used and nobody else should see."""
    return frozenset(_hidden)


def keep_off_the_screen() -> None:
    """Keep warnings of the log off stderr where there is no log to take them."""
    logging.getLogger("agent_core").addHandler(logging.NullHandler())


class _Log:
    """A log that is being written: its handler, and how logging was set up before it."""

    def __init__(self, folder: Callable[[], Path], level: str) -> None:
        self._handler = LogHandler(folder, _hidden)
        self._root = logging.getLogger()
        self._level_before = self._root.level
        self._root.addHandler(self._handler)
        self._root.setLevel(level.upper())
        logging.captureWarnings(capture=True)

    def close(self) -> None:
        logging.captureWarnings(capture=False)
        self._root.removeHandler(self._handler)
        self._root.setLevel(self._level_before)
        self._handler.close()


class LogHandler(logging.Handler):
    """Writes records of `logging` to files, and is silent whatever happens.

    Args:
        folder: Where the files are; asked for with the first record, since most commands never write any.
        secrets: Values that must not be seen; the collection may grow.
    """

    def __init__(self, folder: Callable[[], Path], secrets: Collection[str] = ()) -> None:
        super().__init__()
        self._folder = folder
        self._files: LogFiles | None = None
        self._secrets = secrets
        self._redactor: tuple[int, Redactor] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a log that cannot be written must not cost anybody their work."""
        with suppress(
            Exception
        ):  # there is nobody to report it to: the log is broken, the screen is the user's
            if self._files is None:
                self._files = LogFiles(self._folder())
            self._files.write(as_line(record, self._current_redactor()))

    def close(self) -> None:
        """Close the file."""
        if self._files is not None:
            self._files.close()
        super().close()

    def _current_redactor(self) -> Redactor:
        known = len(self._secrets)
        if self._redactor is None or self._redactor[0] != known:
            self._redactor = (known, lazy.Redactor.from_environment(secrets=tuple(self._secrets)))
        return self._redactor[1]


class LogFiles:
    """Numbered files in a folder, of which the newest takes the lines."""

    def __init__(self, folder: Path, *, largest: int = LARGEST_FILE, kept: int = KEPT) -> None:
        self._folder = folder
        self._largest = largest
        self._kept = kept
        self._file: int | None = None
        self._torn = False

    def write(self, line: bytes) -> None:
        """Write a line with its end.

        Raises:
            OSError: If that cannot be done.
        """
        file = self._open_for(len(line))
        whole = b"\n" + line if self._torn else line  # half a line stays alone
        self._torn = os.write(file, whole) < len(whole)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open_for(self, size: int) -> int:
        """Return a file that has room: the one that is open, the newest, or a new one."""
        if self._file is not None and not self._has_room(self._file, size):
            self.close()
        if self._file is None:
            self._file = self._open_newest(size)
        return self._file

    def _has_room(self, file: int, size: int) -> bool:
        about = os.fstat(file)
        return about.st_nlink > 0 and about.st_size + size <= self._largest

    def _open_newest(self, size: int) -> int:
        make_private_folder(self._folder)
        there = sorted(self._folder.glob(_PATTERN))
        if there:
            file = _opened(there[-1])
            if self._has_room(file, size):
                return file
            os.close(file)
        number = int(there[-1].stem.rpartition("-")[2]) + 1 if there else 1
        file = _opened(self._folder / f"agent-{number:06}.jsonl")
        for old in there[: max(0, len(there) + 1 - self._kept)]:
            old.unlink(missing_ok=True)
        return file


def _opened(path: Path) -> int:
    """Open a file to write at its end; nobody else can read it, and a link is not followed."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(file, 0o600)
    return file


def as_line(record: logging.LogRecord, redactor: Redactor) -> bytes:
    """Return a record as it is written: one JSON object, without secrets, not too long."""
    line = json.dumps(_cut(redactor.data(_plain(_fields(record))))).encode()
    if len(line) > LONGEST_LINE:
        line = json.dumps({**_cut(redactor.data(_head(record))), "too_long": len(line)}).encode()
    return line + b"\n"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    head, own = _head(record), getattr(record, "fields", None)
    fields = head | {key: value for key, value in (own or {}).items() if key not in head}
    if record.exc_info and record.exc_info[1] is not None:
        fields["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
    return fields


def _head(record: logging.LogRecord) -> dict[str, Any]:
    return {
        "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "pid": record.process,
        "event": getattr(record, "event", None) or record.getMessage(),
    }


def _plain(value: Any) -> Any:
    """Return what JSON can hold: a secret can only be found in text."""
    return json.loads(json.dumps(value, default=str, skipkeys=True))


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value
