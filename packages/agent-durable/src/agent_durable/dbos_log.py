"""What DBOS says, as lines of our own log: by itself it would write to the terminal, with tracebacks."""

from __future__ import annotations

import logging

from dbos import error as dbos_error

from agent_core.log import get_logger

_CANCELLED = (dbos_error.DBOSAwaitedWorkflowCancelledError, dbos_error.DBOSWorkflowCancelledError)
_dbos = logging.getLogger("dbos")
_log = get_logger("durable")


class _Lines(logging.Handler):
    """Passes on one line for each record: errors as warnings, since runs outlive them."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, _CANCELLED):
            return  # somebody wanted that
        tell = _log.warning if record.levelno >= logging.ERROR else _log.info
        tell("dbos_says", text=record.getMessage(), error=None if error is None else str(error))


def adopt() -> None:
    """Take over what DBOS logs, unless somebody else has done so."""
    if not _dbos.handlers:  # DBOS writes to the terminal only if nobody listens
        _dbos.propagate = False
        _dbos.addHandler(_Lines())
