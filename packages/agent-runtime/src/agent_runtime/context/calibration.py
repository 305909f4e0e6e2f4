"""What a session has learnt about each model's way of counting tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_runtime.context.tokens import LEAST_RATIO, MOST_RATIO, TokenCounter
from agent_runtime.state import StateKey

if TYPE_CHECKING:
    from agent_runtime.phases import PhaseView
    from agent_runtime.state import State

CALIBRATION: StateKey[dict[str, float]] = StateKey(
    "context.calibration", {}, scope="session", reduce=lambda known, more: {**known, **more}
)
"""The ratio of a `TokenCounter` for each model, by the model's id."""


def counter_for(state: State, model_id: str) -> TokenCounter:
    """Return a counter for that model, with what the session has learnt about it."""
    known = state.read(CALIBRATION)
    ratio = known.get(model_id) if isinstance(known, Mapping) else None
    # The session may come from a file that somebody edited.
    if isinstance(ratio, (int, float)) and LEAST_RATIO <= ratio <= MOST_RATIO:
        return TokenCounter(ratio=ratio)
    return TokenCounter()


def counted_input(view: PhaseView) -> int | None:
    """Return how many tokens the provider says that it was sent, if it says so."""
    for message in reversed(view.messages):
        usage = message.metadata.get("usage")
        counted = usage.get("input_tokens") if isinstance(usage, Mapping) else None
        if isinstance(counted, int):
            return counted
    return None
