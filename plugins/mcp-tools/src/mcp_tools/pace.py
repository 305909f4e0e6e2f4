"""How long to wait before the next try."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Doubling waits with full jitter, up to a bound, and for so many tries.

    Attributes:
        first: The longest wait after the first failure, in seconds.
        longest: The longest wait at all.
        tries: After how many failures in a row nothing more is tried.
        steady: How long a connection must have lasted for the count to begin anew.
        chance: Returns a number from 0 to 1.
    """

    first: float = 0.5
    longest: float = 60.0
    tries: int = 10
    steady: float = 30.0
    chance: Callable[[], float] = random.random

    def wait(self, failures: int) -> float | None:
        """Return how long to wait after so many failures in a row, or None to give up."""
        if failures >= self.tries:
            return None
        return self.chance() * min(self.longest, self.first * 2.0 ** (failures - 1))
