"""Where the core's own log lines go.

The application decides. If it has imported and configured structlog, events go there; otherwise
they go to the standard library's logger ``agent_core``, which prints nothing by itself until
somebody configures logging. Neither is imported before the first line is written, so importing the core
costs nothing and a configuration made afterwards still counts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_core import lazy

if TYPE_CHECKING:
    import logging

    from agent_core.frozen import JsonObject

_LIBRARY = "agent_core"
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Logger:
    """Writes events with fields: ``log.warning("reserved_context_key", keys=["core"])``."""

    __slots__ = ("_name", "_standard")

    def __init__(self, name: str) -> None:
        self._name = name
        self._standard: logging.Logger | None = None

    def is_enabled(self, level: str) -> bool:
        """Say whether anybody would read lines of that level, for callers that would prepare them in vain."""
        # Asked several times in each request, so what is usual is found out without a call.
        structlog = _configured_structlog() if "structlog" in sys.modules else None
        if structlog is not None:
            try:
                return bool(structlog.get_logger(self._name).is_enabled_for(_LEVELS[level]))
            except Exception:  # an application's own class of loggers may know no such thing
                return True
        if "logging" not in sys.modules:  # and so nobody has asked for more than the default
            return _LEVELS[level] >= _LEVELS["warning"]
        return (self._standard or self._standard_logger()).isEnabledFor(_LEVELS[level])

    def debug(self, event: str, **fields: object) -> None:
        """Say something only a person debugging wants to read."""
        self._write("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Say that something ordinary happened."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Say that something was tolerated which its author should know about."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Say that something failed without stopping the request."""
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: JsonObject) -> None:
        structlog = _configured_structlog()
        if structlog is not None:
            getattr(structlog.get_logger(self._name), level)(event, **fields)
            return
        if _LEVELS[level] < _LEVELS["warning"] and "logging" not in sys.modules:
            return  # nobody can have asked for it, and loading it takes a while
        logger = self._standard_logger()
        if logger.isEnabledFor(_LEVELS[level]):
            details = " ".join(f"{key}={value!r}" for key, value in fields.items())
            known = {"event": event, "fields": fields}  # for handlers that keep fields
            logger.log(_LEVELS[level], "%s %s", event, details, extra=known)

    def _standard_logger(self) -> logging.Logger:
        if self._standard is None:
            # Not what `sys.modules` has: another thread may still be importing it.
            logging = lazy.logging
            library = logging.getLogger(_LIBRARY)
            if not any(isinstance(one, logging.NullHandler) for one in library.handlers):
                library.addHandler(logging.NullHandler())  # else the last resort would print to stderr
            self._standard = logging.getLogger(self._name)
        return self._standard


def _configured_structlog() -> Any:
    """Return structlog if the application has configured it; one that is still being imported is not."""
    structlog = sys.modules.get("structlog")
    is_configured = getattr(structlog, "is_configured", None)
    return structlog if is_configured is not None and is_configured() else None


def get_logger(part: str) -> Logger:
    """Return the logger of one part of the core, for example ``get_logger("context")``."""
    return Logger(f"{_LIBRARY}.{part}")
