"""Which models are worth asking: a breaker for each, shared by every run of the process.

::

    closed ──── so many asks in a row failed ───▶ open ◀── it failed ──┐
      ▲                                            │                   │
      │                                 the cool-down is over          │
      │                                            ▼                   │
      └────────── the probe succeeded ───────── half-open ─────────────┘

While a breaker is open nobody waits for a model that is down. After the cool-down one ask may try; the
others are still turned away until it is known how that went. A probe that is given up makes room for the
next one, and so does one that takes longer than the cool-down: it may never report at all.

One ask is counted once, after its retries. Who asks reports to the registry how it went, and only reports
from the present era count: an answer that began before the breaker opened says nothing about now.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal

from agent_runtime import fields
from agent_runtime.errors import ModelUnavailable

State = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    """The permission to ask a model once; whoever has it reports how that went.

    Attributes:
        key: Which model.
        era: How often the breaker had opened or closed when it was given.
    """

    key: str
    era: int


@dataclass(frozen=True, slots=True)
class Health:
    """How one model is doing.

    Attributes:
        state: "closed" if it may be asked, "open" if not, "half_open" while one ask tries.
        failures: How many asks failed in a row.
        until: Until when asks are turned away, by the clock of those who ask; None if they are not.
    """

    state: State
    failures: int
    until: float | None


class _Breaker:
    """The state of one model; its owner holds the lock."""

    __slots__ = ("era", "failures", "probe", "state", "until")

    def __init__(self) -> None:
        self.state: State = "closed"
        self.failures = 0
        self.until: float | None = None
        self.probe: Admission | None = None
        self.era = 0

    def become(self, state: State, until: float | None) -> None:
        """Begin a new era."""
        self.state, self.until, self.probe = state, until, None
        self.era += 1


class HealthRegistry:
    """The breakers of all models, by ``provider/model``; thread-safe.

    It never asks what time it is: who asks a model knows its own clock.

    Args:
        failures: How many asks in a row must fail for a breaker to open.
        cool_down: For how many seconds it is open then.
    """

    def __init__(self, *, failures: int = 5, cool_down: float = 30.0) -> None:
        fields.check_number("failures", failures, least=1, whole=True)
        fields.check_number("cool_down", cool_down, least=0.001)
        self._limit = failures
        self._cool_down = cool_down
        self._breakers: dict[str, _Breaker] = {}
        self._lock = threading.Lock()

    def admit(self, key: str, now: float) -> Admission:
        """Return the permission to ask a model.

        Raises:
            ModelUnavailable: If its breaker is open, or another ask is trying it out.
        """
        with self._lock:
            if (breaker := self._breakers.get(key)) is None:
                breaker = self._breakers[key] = _Breaker()
            if breaker.until is not None and now < breaker.until:
                raise ModelUnavailable(key, breaker.until - now)
            admission = Admission(key, breaker.era)
            if breaker.state != "closed":
                breaker.state, breaker.probe = "half_open", admission
                breaker.until = now + self._cool_down
            return admission

    def succeeded(self, admission: Admission) -> None:
        """Report that the model answered."""
        with self._lock:
            breaker = self._breakers[admission.key]
            if admission.era != breaker.era:
                return
            breaker.failures = 0
            if breaker.state != "closed":
                breaker.become("closed", None)

    def failed(self, admission: Admission, now: float) -> None:
        """Report that the model did not answer, and that this was the model's or the network's fault."""
        with self._lock:
            breaker = self._breakers[admission.key]
            if admission.era != breaker.era:
                return
            breaker.failures += 1
            if breaker.state != "closed" or breaker.failures >= self._limit:
                breaker.become("open", now + self._cool_down)

    def abandoned(self, admission: Admission) -> None:
        """Report that nothing was learnt: the ask was cancelled, or failed by a fault of ours."""
        with self._lock:
            breaker = self._breakers[admission.key]
            if breaker.probe is admission:
                breaker.probe = breaker.until = None

    def snapshot(self) -> dict[str, Health]:
        """Return how every model is doing that was asked so far, to be shown."""
        with self._lock:
            return {key: Health(b.state, b.failures, b.until) for key, b in self._breakers.items()}


HEALTH = HealthRegistry()
"""The registry of the process. What it knows outlives every run, and every resolution of an agent."""
