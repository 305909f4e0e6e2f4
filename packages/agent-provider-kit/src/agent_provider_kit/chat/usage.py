"""The servers' token counts in the common shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_provider_kit.usage import make_usage

if TYPE_CHECKING:
    from agent_provider_kit.usage import Usage


def read_usage(usage: dict[str, Any]) -> Usage:
    """Return the server's token counts in the common shape."""
    sent, made = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    return make_usage(
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        total_tokens=usage.get("total_tokens"),
        cached_input_tokens=sent.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
        cache_write_tokens=sent.get("cache_write_tokens"),
        reasoning_tokens=made.get("reasoning_tokens"),
    )


def usage_in(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """Return the token counts of a chunk or a whole answer, wherever the server puts them."""
    usage = chunk.get("usage")
    if not usage and isinstance(chunk.get("x_groq"), dict):
        usage = chunk["x_groq"].get("usage")
    return usage if isinstance(usage, dict) else None


def _details(usage: dict[str, Any], key: str) -> dict[str, Any]:
    details = usage.get(key)
    return details if isinstance(details, dict) else {}
