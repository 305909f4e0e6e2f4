"""All servers of a plugin: those that were approved run, the others do not."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_tools.approvals import Approval, Judgement, Pins, judge
from mcp_tools.connection import Background, Connection, Snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_tools.connection import Pace
    from mcp_tools.settings import Server, Settings


@dataclass(frozen=True)
class Report:
    """How one server stands.

    Attributes:
        connection: What to ask, if it may be asked.
        approval: What was approved of it, be it of another command line.
    """

    server: Server
    judgement: Judgement
    snapshot: Snapshot
    connection: Connection | None
    approval: Approval | None

    @property
    def waits(self) -> bool:
        """Whether something of it waits for a person's approval."""
        return not self.judgement.launch or bool(self.judgement.waiting)


class Fleet:
    """Starts, keeps and ends servers; from any thread."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._background = Background()
        self._lock = threading.Lock()
        self._connections: dict[tuple[Path, Server], Connection] = {}
        self._pins: dict[Path, Pins] = {}

    def reports(self, settings: Settings) -> list[Report]:
        """Return how all servers stand; those that are approved and do not run yet are started."""
        return [self.report(settings, server) for server in settings.servers]

    def report(self, settings: Settings, server: Server) -> Report:
        """Return how one server stands, and start or stop it as it is approved."""
        approval = self.pins(settings).read().servers.get(server.name)
        allowed = judge(server, None, approval).launch
        connection = self._connection((settings.pins, server), allowed=allowed)
        snapshot = Snapshot("stopped") if connection is None else connection.snapshot
        judgement = judge(server, snapshot.listing, approval)
        return Report(server, judgement, snapshot, connection, approval)

    def wait(self, settings: Settings) -> None:
        """Wait until every server that was started is ready or has failed for the first time."""
        for report in self.reports(settings):  # all have begun by now, so they get ready side by side
            if report.connection is not None:
                report.connection.wait_until_settled()

    def pins(self, settings: Settings) -> Pins:
        """Return the file of approvals."""
        with self._lock:
            return self._pins.setdefault(settings.pins, Pins(settings.pins))

    def close(self) -> None:
        """End all servers; bounded in time, since it is called when the process exits."""
        with self._lock:
            for connection in self._connections.values():
                connection.stop()
        self._background.close()

    def _connection(self, key: tuple[Path, Server], *, allowed: bool) -> Connection | None:
        with self._lock:
            known = self._connections.get(key)
            if allowed and known is None:
                known = self._connections[key] = Connection(key[1], self._background, self._pace)
            elif not allowed and known is not None:
                del self._connections[key]
                known.stop()
            return known if allowed else None
