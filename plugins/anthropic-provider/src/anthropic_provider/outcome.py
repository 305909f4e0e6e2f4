"""How an answer ended, what it used, and what an error in the middle of a stream means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_provider_kit import (
    ContextTooLong,
    KeyRefused,
    LimitReached,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    make_usage,
)

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange, Usage

ENDINGS: dict[str, Ending] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "paused",
    "compaction": "paused",
}
CUT_SHORT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
"""Stop reasons after which the last block may lack its end, although the server closed it."""

_FAILURES: dict[str, type[ProviderFailure]] = {
    "overloaded_error": Overloaded,
    "rate_limit_error": Overloaded,
    "api_error": Overloaded,
    "timeout_error": Overloaded,
    "authentication_error": KeyRefused,
    "permission_error": KeyRefused,
    "billing_error": LimitReached,
    "request_too_large": ContextTooLong,
}


def failure_in_stream(exchange: Exchange, event: dict[str, Any]) -> ProviderFailure:
    """Return the failure that an error event means; the status was a good one long before."""
    error = event.get("error")
    kind, message = (error.get("type"), error.get("message")) if isinstance(error, dict) else (None, error)
    failure = _FAILURES.get(str(kind), RequestRefused)
    if "prompt is too long" in str(message):
        failure = ContextTooLong
    return failure(
        exchange,
        f"{exchange.host} broke its reply off with {kind or 'an error'}",
        provider_message=str(message or error),
        request_id=event.get("request_id"),
    )


def read_usage(usage: dict[str, Any]) -> Usage:
    """Return the token counts in the common shape: what was sent counts whole, cached or not."""
    sent = [
        usage.get(name) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    ]
    details = usage.get("output_tokens_details") or {}
    return make_usage(
        input_tokens=sum(count for count in sent if isinstance(count, int)) if sent[0] is not None else None,
        output_tokens=usage.get("output_tokens"),
        cached_input_tokens=usage.get("cache_read_input_tokens"),
        cache_write_tokens=usage.get("cache_creation_input_tokens"),
        reasoning_tokens=details.get("thinking_tokens"),
    )
