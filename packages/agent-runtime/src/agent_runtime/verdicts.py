"""What a tool gate may answer about a call, and which answer counts when several do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent_core.frozen import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

ResumeMode = Literal["replay", "use_decision", "pass_decision"]
"""What becomes of a decision: the call runs again through all gates, the decision itself is the result,
or the call runs and the tool is handed the decision in its context."""


@dataclass(frozen=True, slots=True)
class Block:
    """Do not run the call; the model reads the reason as an error."""

    reason: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Do not run the call before somebody decided; the run ends and can be resumed.

    Attributes:
        message: What is asked, for the person who decides.
        action: A word for programs: "approve", "answer", or one's own.
        parameters: Data that a front end needs for the question.
        response_schema: A JSON Schema that the decision's value must fit, if it has one.
        mode: How the decision is used.
    """

    message: str
    action: str = "approve"
    parameters: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    response_schema: Mapping[str, Any] | None = None
    mode: ResumeMode = "replay"


@dataclass(frozen=True, slots=True)
class SetResult:
    """Do not run the call; the model reads this as its result.

    Attributes:
        result: Text, or anything that JSON can hold.
    """

    result: Any
    is_error: bool = False


Verdict = Block | Suspend | SetResult
"""What a gate answers; None lets the call pass."""

_RANK = {Block: 0, Suspend: 1, SetResult: 2}


def rank(verdict: Verdict) -> int:
    """Return how strong a verdict is, the strongest first: Block, Suspend, SetResult."""
    return _RANK[type(verdict)]
