"""How much one person may ask for: requests in a minute, runs at a time, tokens and money in a day.

Requests of the last minute and runs under way are counted while they happen. One server keeps that in memory.
Several on one PostgreSQL keep it there, by the clock of the database, so that a person may not ask each of
them for as much.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import uuid4

from agent_core import AgentError
from agent_core.log import get_logger
from agent_server.people.tables import PostgresTables
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from agent_server.people.tables import Tables

_log = get_logger("server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What each person may ask for; None is for no limit.

    Attributes:
        requests: Requests in a minute.
        runs: Runs at a time.
        tokens: Tokens in a day.
        cost: What models may cost in a day, in the currency of their prices.
    """

    requests: int | None = 600
    runs: int | None = 10
    tokens: int | None = None
    cost: float | None = None


class Quota:
    """Compares what people ask for with what they may.

    Args:
        counts: Counts requests and runs; in this process alone, unless something else is given.
    """

    def __init__(self, allowance: Allowance, counts: Counts | None = None) -> None:
        self.allowance = allowance
        self._counts = counts or ProcessCounts()

    async def check_rate(self, person: str) -> None:
        """Count a request.

        Raises:
            Problem: If there were too many in the last minute.
        """
        most = self.allowance.requests
        if most is None:
            return
        if isinstance(self._counts, ProcessCounts):
            taken = self._counts.take(person, most)
        else:
            taken = await asyncio.to_thread(self._counts.take, person, most)
        if not taken.granted:
            seconds = math.ceil((1 - taken.remaining) * 60 / most)
            raise _too_much(f"{most} requests in a minute are accepted.", {"retry-after": str(seconds)})

    @asynccontextmanager
    async def running(self, person: str) -> AsyncIterator[None]:
        """Count a run while the block lasts.

        Raises:
            Problem: If there are too many already.
        """
        most = self.allowance.runs
        if most is None:
            yield
            return
        run = await asyncio.to_thread(self._counts.begin, person, most)
        if run is None:
            raise _too_much(f"{most} runs at a time are accepted: wait for one of them, or cancel it.")
        keeping = asyncio.create_task(self._keep(run))
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.to_thread(self._counts.end, run)

    async def _keep(self, run: str) -> None:
        """Say again and again that a run is under way: one whose server died counts no more after a while."""
        while True:
            await asyncio.sleep(FORGOTTEN_SECONDS / 3)
            try:
                await asyncio.to_thread(self._counts.keep, run)
            except AgentError as error:
                _log.warning("run_not_counted", error=str(error))

    def check_used(self, used: Mapping[str, float]) -> None:
        """Refuse a run to somebody who has used up what a day brings.

        Raises:
            Problem: If so.
        """
        for what, most in (("tokens", self.allowance.tokens), ("cost", self.allowance.cost)):
            if most is not None and used[what] >= most:
                raise _too_much(f"The {what} of today are used up: {used[what]:g} of {most:g}.")


def _too_much(detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    return Problem(429, "too-many", "That is more than one person may ask for", detail, headers=headers)


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
