"""What is counted of a person while it happens: requests of the last minute, and runs under way.

One server keeps that in memory. Several on one PostgreSQL keep it there, by the clock of the database, so
that a person may not ask each of them for as much.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import uuid4

from agent_server.people.tables import PostgresTables

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_server.people.tables import Tables

_MOST_PEOPLE = 10_000
FORGOTTEN_SECONDS = 90.0
"""How long a run counts whose server says nothing about it any more."""
_NOW = "extract(epoch FROM clock_timestamp())"
_REFILLED = f"least(?, rates.remaining + ({_NOW} - rates.at) * ? / 60)"
_TAKE = f"""
    INSERT INTO rates (person, remaining, granted, at) VALUES (?, ? - 1, 1, {_NOW})
    ON CONFLICT (person) DO UPDATE SET
        remaining = {_REFILLED} - CASE WHEN {_REFILLED} >= 1 THEN 1 ELSE 0 END,
        granted = CASE WHEN {_REFILLED} >= 1 THEN 1 ELSE 0 END, at = {_NOW}
    RETURNING granted, remaining
"""  # noqa: S608 - our own words
_BEGIN = f"""
    INSERT INTO running (id, person, seen) SELECT ?, ?, {_NOW}
    WHERE (SELECT count(*) FROM running WHERE person = ? AND seen > {_NOW} - ?) < ?
"""  # noqa: S608 - our own words


class Taken(NamedTuple):
    """Whether a request may be made, and how many more could be made at once."""

    granted: bool
    remaining: float


class Counts(Protocol):
    """Counts requests and runs. All methods may block."""

    def take(self, person: str, most: int) -> Taken:
        """Count a request, of which a minute brings so many."""

    def begin(self, person: str, most: int) -> str | None:
        """Count a run that begins, and return a name for it; None if there are so many already."""

    def keep(self, run: str) -> None:
        """Say that a run is still under way."""

    def end(self, run: str) -> None:
        """Count a run no more."""


def counts_of(tables: Tables) -> Counts:
    """Return what counts for the servers that share some tables."""
    return SharedCounts(tables) if isinstance(tables, PostgresTables) else ProcessCounts()


class ProcessCounts:
    """Counts in the memory of one process.

    Args:
        clock: A clock that never goes back, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was
        self._running: dict[str, set[str]] = defaultdict(set)
        self._people: dict[str, str] = {}

    def take(self, person: str, most: int) -> Taken:
        now = self._clock()
        left, since = self._buckets.pop(person, (float(most), now))
        left = min(float(most), left + (now - since) * most / 60)
        granted = left >= 1
        left -= granted
        self._buckets[person] = (left, now)
        if len(self._buckets) > _MOST_PEOPLE:
            del self._buckets[next(iter(self._buckets))]
        return Taken(granted, left)

    def begin(self, person: str, most: int) -> str | None:
        if len(self._running[person]) >= most:
            return None
        run = uuid4().hex
        self._running[person].add(run)
        self._people[run] = person
        return run

    def keep(self, run: str) -> None:
        """Do nothing: the process lives, or the count is gone with it."""

    def end(self, run: str) -> None:
        person = self._people.pop(run)
        self._running[person].discard(run)
        if not self._running[person]:
            del self._running[person]


class SharedCounts:
    """Counts in the database, for all servers together."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def take(self, person: str, most: int) -> Taken:
        # The amount and what a minute brings, for each time that the bucket is looked at.
        looks = (most, most) * 3
        granted, remaining = self._tables.rows(_TAKE, person, most, *looks)[0]
        return Taken(bool(granted), remaining)

    def begin(self, person: str, most: int) -> str | None:
        run = uuid4().hex
        values = (run, person, person, FORGOTTEN_SECONDS, most)
        begun = self._tables.alone(f"runs of {person}", _BEGIN, *values)
        return run if begun else None

    def keep(self, run: str) -> None:
        self._tables.run(f"UPDATE running SET seen = {_NOW} WHERE id = ?", run)  # noqa: S608 - our own words

    def end(self, run: str) -> None:
        sql = f"DELETE FROM running WHERE id = ? OR seen < {_NOW} - ?"  # noqa: S608 - our own words
        self._tables.run(sql, run, FORGOTTEN_SECONDS)
