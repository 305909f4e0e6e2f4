"""Stop conditions: when a run shall end although the model would go on."""

from agent_runtime.policies.conditions import (
    ConsecutiveErrors,
    ContentMatch,
    CostBudget,
    MaxRounds,
    RepeatedCalls,
    StopCondition,
    StopOnTool,
    Timeout,
    TokenBudget,
    read_condition,
)
from agent_runtime.policies.stats import RunStats, Stop

__all__ = [
    "ConsecutiveErrors",
    "ContentMatch",
    "CostBudget",
    "MaxRounds",
    "RepeatedCalls",
    "RunStats",
    "Stop",
    "StopCondition",
    "StopOnTool",
    "Timeout",
    "TokenBudget",
    "read_condition",
]
