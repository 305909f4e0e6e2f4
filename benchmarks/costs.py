"""What work costs in this process and in a PostgreSQL server beside it: time, processors, rows, bytes."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

_TICK = os.sysconf("SC_CLK_TCK")
_SIZE = """
    SELECT sum(pg_total_relation_size(oid)) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace
"""


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process, and of its children that have ended."""
    with suppress(FileNotFoundError, ProcessLookupError):  # it may end meanwhile
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICK
    return 0.0


class Server:
    """The database server as seen from outside: its processor time, its rows, its size."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        backend = int(self.ask("SELECT pg_backend_pid()"))
        self._pid = int(Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1])

    def ask(self, sql: str) -> Any:
        row = self._connection.execute(sql).fetchone()
        return row[0] if row else None

    def cpu(self) -> float:
        """Return the CPU seconds of the server with all its processes."""
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        return sum(cpu(int(child)) for child in children) + cpu(self._pid)

    def counts(self) -> dict[str, float]:
        """Return what grows with the work."""
        self._connection.execute("SELECT pg_stat_clear_snapshot()")
        rows = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
        commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        return {
            "rows": float(self.ask(rows) or 0),
            "commits": float(self.ask(commits)),
            "log": float(self.ask("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")),
            "store": float(self.ask(_SIZE.format(schema="agent_store"))),
            "engine": float(self.ask(_SIZE.format(schema="dbos"))),
        }

    def connections(self) -> int:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        return int(self.ask(sql))


@dataclass(frozen=True)
class Cost:
    """What a step took: seconds that passed, CPU seconds of our process, CPU seconds of the server."""

    wall: float
    ours: float
    server: float

    @property
    def cpu(self) -> float:
        return self.ours + self.server

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.ours - other.ours, self.server - other.server)


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(cost, name) for cost in costs) for name in Cost.__annotations__))


class Meter:
    """Measures work in this process and in the server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._began = Cost(0.0, 0.0, 0.0)
        self.costs: dict[str, list[Cost]] = {}

    def begin(self) -> None:
        self._began = self._now()

    def end(self, what: str, count: int) -> None:
        """Note what was spent since the beginning, divided by a number of steps."""
        spent = self._now() - self._began
        cost = Cost(spent.wall / count, spent.ours / count, spent.server / count)
        self.costs.setdefault(what, []).append(cost)

    def _now(self) -> Cost:
        return Cost(time.perf_counter(), time.process_time(), self._server.cpu())
