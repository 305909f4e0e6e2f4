"""The chunks of a stream: how they are decoded, and what finish reasons and token counts mean.

A chunk that brings only text is decoded quickly, any other completely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from agent_provider_kit.wire import JsonObject, decode_object, make_usage

if TYPE_CHECKING:
    from agent_provider_kit.wire import Ending, Usage

DONE: JsonObject = {"done": True}
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


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a chunk of plain text adds."""

    role: str | None = None
    content: str | None = None


class Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The one choice of such a chunk."""

    delta: Delta
    index: Literal[0] = 0
    finish_reason: None = None
    logprobs: None = None


class TextChunk(msgspec.Struct, gc=False):
    """A chunk that brings text and nothing else; anything more does not fit and is read in full."""

    choices: tuple[Choice]
    usage: None = None
    error: None = None


Chunk = TextChunk | JsonObject

_text_chunk = msgspec.json.Decoder(TextChunk)


def decode_chunk(data: bytes) -> Chunk | None:
    """Return the chunk; None for an empty event.

    Raises:
        ValueError: If it is not a JSON object.
    """
    try:
        return _text_chunk.decode(data)
    except msgspec.MsgspecError:
        return _decode_full(data.strip())


def _decode_full(data: bytes) -> Chunk | None:
    if not data:
        return None
    if data == b"[DONE]":
        return DONE
    return decode_object(data)


def read_usage(usage: JsonObject) -> Usage:
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


def usage_in(chunk: JsonObject) -> JsonObject | None:
    """Return the token counts of a chunk or a whole answer, wherever the server puts them."""
    usage = chunk.get("usage")
    if not usage and isinstance(chunk.get("x_groq"), dict):
        usage = chunk["x_groq"].get("usage")
    return usage if isinstance(usage, dict) else None


def _details(usage: JsonObject, key: str) -> JsonObject:
    details = usage.get(key)
    return details if isinstance(details, dict) else {}


def ending_of(finish_reason: str) -> Ending:
    """Return what a finish reason means; one that nobody knows is taken for an end."""
    return _ENDINGS.get(finish_reason, "complete")


def is_broken_off(finish_reason: str) -> bool:
    """Say whether a finish reason means that the server gave up."""
    return finish_reason in _BROKEN_OFF
