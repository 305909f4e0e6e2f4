"""How much one person may ask for: requests in a minute, runs at a time, tokens and money in a day.

Requests and runs are counted in this process; tokens and money in the database, for all servers together.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MOST_PEOPLE = 10_000


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
    """Counts what people ask for.

    Args:
        clock: A clock that never goes back, in seconds.
    """

    def __init__(self, allowance: Allowance, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.allowance = allowance
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was
        self._running: dict[str, int] = defaultdict(int)

    def check_rate(self, person: str) -> None:
        """Count a request.

        Raises:
            Problem: If there were too many in the last minute.
        """
        most = self.allowance.requests
        if most is None:
            return
        now = self._clock()
        left, since = self._buckets.pop(person, (float(most), now))
        left = min(float(most), left + (now - since) * most / 60)
        self._buckets[person] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _MOST_PEOPLE:
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            seconds = math.ceil((1 - left) * 60 / most)
            raise _too_much(f"{most} requests in a minute are accepted.", {"retry-after": str(seconds)})

    @contextmanager
    def running(self, person: str) -> Iterator[None]:
        """Count a run while the block lasts.

        Raises:
            Problem: If there are too many already.
        """
        most = self.allowance.runs
        if most is not None and self._running[person] >= most:
            raise _too_much(f"{most} runs at a time are accepted: wait for one of them, or cancel it.")
        self._running[person] += 1
        try:
            yield
        finally:
            self._running[person] -= 1
            if not self._running[person]:
                del self._running[person]

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
