"""What the servers' finish reasons mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_provider_kit.endings import Ending

_ENDINGS: dict[str, Ending] = {
    "stop": "complete",
    "eos": "complete",
    "end_turn": "complete",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "filtered",
    "sensitive": "filtered",
}
_BROKEN_OFF = frozenset(
    {"abort", "cancelled", "error", "insufficient_system_resource", "network_error", "unknown_error"}
)


def ending_of(finish_reason: str) -> Ending:
    """Return what a finish reason means; one that nobody knows is taken for an end."""
    return _ENDINGS.get(finish_reason, "complete")


def is_broken_off(finish_reason: str) -> bool:
    """Say whether a finish reason tells that the server gave up, which is no end."""
    return finish_reason in _BROKEN_OFF
