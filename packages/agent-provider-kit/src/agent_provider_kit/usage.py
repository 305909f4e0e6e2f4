"""Token counts in one shape, whatever the provider calls them."""

from __future__ import annotations

from typing import TypedDict, cast


class Usage(TypedDict, total=False):
    """What a turn used; a count that the provider did not give is absent.

    `input_tokens` counts everything that was sent, cached or not.
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


def make_usage(**counts: object) -> Usage:
    """Return the counts that are whole numbers, with the total filled in."""
    usage = {name: count for name, count in counts.items() if type(count) is int}
    if "total_tokens" not in usage and "input_tokens" in usage and "output_tokens" in usage:
        usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    return cast("Usage", usage)
