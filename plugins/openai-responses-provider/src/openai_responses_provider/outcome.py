"""How an answer ended, what it used, and what an error in the middle of it means."""

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
from openai_responses_provider.kinds import is_client_call, is_message

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange, Usage

Dicts = list[dict[str, Any]]

_INCOMPLETE: dict[str, Ending] = {"max_output_tokens": "length", "content_filter": "filtered"}
_FAILURES: tuple[tuple[type[ProviderFailure], tuple[str, ...]], ...] = (
    (LimitReached, ("insufficient_quota", "billing", "quota exceeded", "spend limit")),
    (ContextTooLong, ("context_length_exceeded", "context window", "maximum context length")),
    (KeyRefused, ("invalid_api_key", "authentication", "permission")),
    (
        Overloaded,
        (
            "rate_limit",
            "rate limit",
            "server_error",
            "overloaded",
            "timeout",
            "unavailable",
            "upstream_error",
            "slow_down",
            "internal_error",
            "try again",
        ),
    ),
)
# What a response repeats of the request, or what is told in a place of its own.
_TOLD_ELSEWHERE = frozenset(
    {
        "id",
        "object",
        "output",
        "model",
        "status",
        "error",
        "incomplete_details",
        "usage",
        "instructions",
        "tools",
        "tool_choice",
    }
    | {"text", "temperature", "top_p", "top_logprobs", "reasoning"}
    | {"truncation", "max_output_tokens", "max_tool_calls", "store", "background"}
    | {"parallel_tool_calls", "previous_response_id", "prompt", "user", "safety_identifier"}
    | {"prompt_cache_key", "prompt_cache_retention", "frequency_penalty", "presence_penalty"}
)


def finish_reason(response: dict[str, Any]) -> str | None:
    """Return the provider's own word for the end: its status, or why it is incomplete."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason or response.get("status")


def ending_of(response: dict[str, Any], items: Dicts) -> Ending | None:
    """Return how an answer ended; None if that was not told."""
    if response.get("status") == "incomplete":
        return _INCOMPLETE.get(str(finish_reason(response)), "length")
    if response.get("status") != "completed":
        return None
    if any(map(is_client_call, items)):
        return "tool_calls"
    return "refusal" if any(map(refusal_in, items)) else "complete"


def refusal_in(item: dict[str, Any]) -> str:
    """Return why the model will not, if the item says so."""
    content = item.get("content") if is_message(item) else None
    if not isinstance(content, list):
        return ""
    return "".join(part["refusal"] for part in content if isinstance(part.get("refusal"), str))


def read_usage(usage: Any) -> Usage:
    """Return the token counts in the common shape."""
    if not isinstance(usage, dict):
        return make_usage()
    sent, made = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return make_usage(
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        total_tokens=usage.get("total_tokens"),
        cached_input_tokens=sent.get("cached_tokens"),
        cache_write_tokens=sent.get("cache_write_tokens"),
        reasoning_tokens=made.get("reasoning_tokens"),
    )


def rest_of(response: dict[str, Any]) -> dict[str, Any]:
    """Return what else the provider told about its answer."""
    return {
        key: value
        for key, value in response.items()
        if key not in _TOLD_ELSEWHERE and value is not None and value != {}
    }


def failure_in_reply(exchange: Exchange, told: dict[str, Any]) -> ProviderFailure:
    """Return the failure that an error event or a failed response means; its status was a good one."""
    error = told.get("error") or told
    code, message = (
        (error.get("code") or error.get("type"), error.get("message"))
        if isinstance(error, dict)
        else (None, error)
    )
    words = f"{code} {message}".lower()
    kind = next((kind for kind, signs in _FAILURES if any(sign in words for sign in signs)), RequestRefused)
    return kind(
        exchange,
        f"{exchange.host} broke its reply off with {code or 'an error'}",
        provider_message=str(message or ""),
    )
