"""How much one person may ask for: requests in a minute, runs at a time, tokens and money in a day."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_core.log import get_logger
from agent_server.people.counts import FORGOTTEN_SECONDS, ProcessCounts
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from agent_server.people.counts import Counts

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
