"""Actions that plugins offer for a session: what they are called, when they run, what they take."""

from __future__ import annotations

from agent_core.actions.action import (
    RESPONSE_FINALIZE,
    STANDARD_LIFECYCLES,
    Action,
    Owner,
    check_inputs,
    match_triggers,
)
from agent_core.actions.inputs import ActionInput

__all__ = [
    "RESPONSE_FINALIZE",
    "STANDARD_LIFECYCLES",
    "Action",
    "ActionInput",
    "Owner",
    "check_inputs",
    "match_triggers",
]
