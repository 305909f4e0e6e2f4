"""Logging the pieces of answers that were shown, for all sessions of an application together.

An answer that is being written may be ahead of its session's log for a tenth of a second. An alarm, a thread
and a transaction for each answer would cost more than the answers themselves where there are many of them. So
there is one alarm for all; and a database that has one writer at a time gets one transaction.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Protocol

from agent_core.io.workers import run_in_worker
from agent_runtime.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

LOG_SECONDS = 0.1
"""How long pieces of an answer that were shown may be missing in the log."""


class Answering(Protocol):
    """A session with an answer that is being written."""

    def begin_log(self, *, wait: bool) -> bool:
        """Take the pieces that the log does not have, and let nobody else write the session.

        Args:
            wait: Whether to wait for who writes it now; otherwise the answer is False then.
        """

    def log_taken(self) -> None:
        """Write the pieces; what goes wrong is for `end_log`."""

    def end_log(self, error: Exception | None) -> None:
        """Let others write the session; the pieces are owed again if they could not be written."""


class Groups(Protocol):
    """A store that may write several sessions in one transaction."""

    def group(self) -> AbstractContextManager[object] | None:
        """As of `SessionStore`."""


class PieceLog:
    """Has pieces logged soon after they were shown."""

    def __init__(self, store: Groups) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._behind: dict[Answering, None] = {}  # in the order in which they fell behind

    def soon(self, answering: Answering) -> None:
        """Log what a session shows from now on, after a tenth of a second at most."""
        with self._lock:
            alarm_is_set = bool(self._behind)
            self._behind[answering] = None
            if alarm_is_set:
                return
        SYSTEM_CLOCK.call_later(LOG_SECONDS, partial(run_in_worker, self._log_all))

    def now(self, answering: Answering) -> None:
        """Log what a session has shown, in a thread."""
        run_in_worker(partial(_log_one, answering))

    def _log_all(self) -> None:
        with self._lock:
            behind, self._behind = list(self._behind), {}
        group = self._store.group() if len(behind) > 1 else None
        if group is None:
            for answering in behind[1:]:
                self.now(answering)
            _log_one(behind[0])
            return
        free = []
        for answering in behind:
            if answering.begin_log(wait=False):
                free.append(answering)
            else:  # a commit takes along what was shown up to now; what comes behind it has the next alarm
                self.soon(answering)
        _log_together(free, group)


def _log_one(answering: Answering) -> None:
    answering.begin_log(wait=True)
    answering.log_taken()
    answering.end_log(None)


def _log_together(answers: Sequence[Answering], group: AbstractContextManager[object]) -> None:
    """Log the pieces of several answers; one that cannot be logged does not keep the others from it."""
    failure: Exception | None = None
    try:
        with group:
            for answering in answers:
                answering.log_taken()
    except Exception as error:  # whatever it is, the pieces are tried again with what comes next
        failure = error
    finally:
        for answering in answers:
            answering.end_log(failure)
