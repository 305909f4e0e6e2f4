"""How an answer ended and what it used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_provider_kit import ProviderFailure, RequestRefused, StreamCutOff, StreamMalformed, make_usage

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange, Usage

ENDINGS: dict[str, Ending] = {
    "STOP": "complete",
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "MODEL_ARMOR": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_PROHIBITED_CONTENT": "filtered",
    "IMAGE_RECITATION": "filtered",
}
_NO_ENDINGS: dict[str, tuple[type[ProviderFailure], str]] = {
    "MALFORMED_FUNCTION_CALL": (StreamMalformed, "the model wrote a tool call that makes no sense"),
    "MALFORMED_RESPONSE": (StreamMalformed, "the model wrote an answer that makes no sense"),
    "UNEXPECTED_TOOL_CALL": (StreamMalformed, "the model called a tool that it was not offered"),
    "TOO_MANY_TOOL_CALLS": (RequestRefused, "the model called tools too many times in a row"),
    "MISSING_THOUGHT_SIGNATURE": (RequestRefused, "a thought signature is missing in the history"),
    "OTHER": (StreamCutOff, "the model stopped early and does not tell why"),
    "IMAGE_OTHER": (StreamCutOff, "the model made no image and does not tell why"),
    "NO_IMAGE": (StreamCutOff, "the model was to make an image and made none"),
    "FINISH_REASON_UNSPECIFIED": (StreamCutOff, "the model stopped and does not tell why"),
}


def read_ending(reason: str) -> Ending | None:
    """Return how an answer ended; None where the reason tells of a failure."""
    return None if reason in _NO_ENDINGS else ENDINGS.get(reason, "complete")


def failure_at_end(exchange: Exchange, reason: str, message: str, *, empty: bool) -> ProviderFailure | None:
    """Return the failure that a finish reason means, or None if it is an ending."""
    if reason in _NO_ENDINGS:
        kind, problem = _NO_ENDINGS[reason]
        return kind(exchange, f"{problem} ({reason})", provider_message=message)
    if empty and read_ending(reason) == "complete":
        problem = f"{exchange.host} ended the answer ({reason}) before it said anything"
        return StreamCutOff(exchange, problem, provider_message=message)
    return None


def read_usage(usage: dict[str, Any]) -> Usage:
    """Return the token counts in the common shape: thoughts are output, tools' prompts are input."""
    return make_usage(
        input_tokens=_sum(usage, "promptTokenCount", "toolUsePromptTokenCount"),
        output_tokens=_sum(usage, "candidatesTokenCount", "thoughtsTokenCount"),
        total_tokens=usage.get("totalTokenCount"),
        cached_input_tokens=usage.get("cachedContentTokenCount"),
        reasoning_tokens=usage.get("thoughtsTokenCount"),
    )


def _sum(usage: dict[str, Any], *names: str) -> int | None:
    counts = [usage[name] for name in names if type(usage.get(name)) is int]
    return sum(counts) if counts else None
