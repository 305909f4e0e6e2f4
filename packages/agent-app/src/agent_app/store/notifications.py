"""Notifications from PostgreSQL about what other processes write, so that followers need not poll.

A notification is only a hint: it names a session, and a follower of that session then reads its log. So a
notification that is lost, with its connection, makes a follower slower and nothing else.
"""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from psycopg import sql

from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
_log = get_logger("store")


class Listening:
    """Listens to a server, on a connection and in a thread of its own, until it is closed.

    Args:
        connect: Opens a connection.
        channel: What to listen to. Any role of a database may listen to any channel whose name it knows, so
            the name is random, and kept in a table that only roles with rights can read.
        notify: Called with the id of each session that was written; with None whenever listening begins,
            since it is unknown what was written before. It must not block.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection],
        channel: str,
        notify: Callable[[str | None], None],
    ) -> None:
        self._connect = connect
        self._channel = channel
        self._notify = notify
        self._stopped = threading.Event()
        self._bell, self._rung = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="agent-store-listen", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; returns at once, and may be called again."""
        self._stopped.set()
        with suppress(OSError):  # it has stopped already
            self._bell.send(b".")

    @property
    def is_open(self) -> bool:
        """Whether it was not closed yet."""
        return not self._stopped.is_set()

    def join(self, seconds: float) -> None:
        """Wait until the connection is closed."""
        self._thread.join(seconds)

    def _listen(self) -> None:
        pause = _FIRST_PAUSE
        with self._bell, self._rung:
            while not self._stopped.is_set():
                try:
                    with self._connect() as connection:
                        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                        pause = _FIRST_PAUSE
                        self._notify(None)
                        self._pass_on(connection)
                except Exception as error:  # the server may be away; followers poll
                    _log.info("store_not_listening", error=str(error), again_in=pause)
                    self._stopped.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)

    def _pass_on(self, connection: psycopg.Connection) -> None:
        """Pass on every notification until `close` is called or the connection is lost."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._rung, selectors.EVENT_READ)
            while not self._stopped.is_set():
                selector.select()
                for session_id in {one.payload for one in connection.notifies(timeout=0)}:
                    self._notify(session_id)
