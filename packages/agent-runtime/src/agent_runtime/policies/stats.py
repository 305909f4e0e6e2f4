"""What stop conditions look at, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Stop(NamedTuple):
    """A run shall end: why, as a stable word and as a sentence."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """How far a run has come.

    Attributes:
        rounds: How often the model was asked and answered.
        seconds: For how long the run has been going, pauses for decisions not counted.
        tokens: All tokens that were sent and received, by delegates too.
        cost: What that cost, as far as prices are known.
        errors: How many tool results in a row, up to now, were errors.
        text: What the model said in this step.
        called: The names of the tools that ran in this step.
        repeats: How often in a row the model made the same call with the same arguments; the most
            of all calls of this step.
        repeated: Which tool that was.
    """

    rounds: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    errors: int = 0
    text: str = ""
    called: tuple[str, ...] = ()
    repeats: int = 0
    repeated: str = ""
