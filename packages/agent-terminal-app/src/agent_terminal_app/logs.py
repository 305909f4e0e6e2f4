"""The log of one command: begun before it, ended after it, and never on the screen.

Nothing of it is loaded before there is something to write. What is logged by the platform, by plugins and by
the libraries under them goes to files (`log_files`); what people should know is told them in words, by events
and errors, and these carry the same request id as the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Handler
    from pathlib import Path

    from agent_terminal_app.log_files import LogHandler

LEVELS = ("debug", "info", "warning", "error", "off")
"""How much is logged, from all to nothing."""
DEFAULT_LEVEL = "info"

_SHORTEST_SECRET = 4
_hidden: set[str] = set()
_log: _Log | None = None


class _Log:
    """A log that is being written: its handler, and how things were before it."""

    def __init__(self, folder: Callable[[], Path], level: str) -> None:
        import logging

        self._handler = _lazy_handler(folder)
        self._root = logging.getLogger()
        self._level_before = self._root.level
        self._root.addHandler(self._handler)
        self._root.setLevel(level.upper())
        logging.captureWarnings(capture=True)

    def close(self) -> None:
        import logging

        logging.captureWarnings(capture=False)
        self._root.removeHandler(self._handler)
        self._root.setLevel(self._level_before)
        self._handler.close()


def _lazy_handler(folder: Callable[[], Path]) -> Handler:
    """Return a handler that makes the real one for the first line: most commands never write any."""
    import logging

    class LazyHandler(logging.Handler):
        real: LogHandler | None = None

        def emit(self, record: logging.LogRecord) -> None:
            if self.real is None:
                from agent_terminal_app.log_files import LogHandler

                self.real = LogHandler(folder(), _hidden)
            self.real.emit(record)

        def close(self) -> None:
            if self.real is not None:
                self.real.close()
            super().close()

    return LazyHandler()


def start_log(folder: Callable[[], Path], level: str = DEFAULT_LEVEL) -> None:
    """Send what is logged from now on to files in a folder, which is asked for with the first line."""
    global _log  # noqa: PLW0603 - Python has one log per process as well
    stop_log()
    if level == "off":
        keep_off_the_screen()
    else:
        _log = _Log(folder, level)


def stop_log() -> None:
    """Log nothing any more."""
    global _log  # noqa: PLW0603
    if _log is not None:
        _log.close()
        _log = None


def is_logging() -> bool:
    """Say whether there is a log to write to."""
    return _log is not None


def note(event: str, *, level: str = "info", **fields: Any) -> None:
    """Write a line of our own, if there is a log."""
    if _log is None:
        return
    import logging

    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("agent_terminal_app").log(number, event, extra={"fields": fields})


def note_failure(event: str, error: BaseException, **fields: Any) -> None:
    """Write that something failed, with everything that an error knows about itself."""
    if _log is None:
        return
    from agent_runtime.errors import describe

    note(event, level="error", **fields, error=describe(error))


def note_traceback(event: str, error: BaseException) -> None:
    """Write an error that nobody expected, with the way to it."""
    if _log is None:
        return
    import traceback

    lines = traceback.format_exception(error)
    note(event, level="error", error=f"{type(error).__name__}: {error}", traceback="".join(lines))


def hide(secret: str) -> None:
    """Keep a value out of the log from now on, wherever it stands.

    One that is too short to be told from ordinary text cannot be hidden.
    """
    if len(secret) >= _SHORTEST_SECRET:
        _hidden.add(secret)


def hidden() -> frozenset[str]:
    """Return the values that were seen here and that nobody else shall see."""
    return frozenset(_hidden)


def keep_off_the_screen() -> None:
    """Keep warnings of the log off stderr where there is no log to take them."""
    import logging

    logging.getLogger("agent_core").addHandler(logging.NullHandler())
