"""The events of a stream: how they are decoded, and what stop reasons, token counts and errors mean.

An event that brings a piece of text is decoded quickly, any other completely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_provider_kit import JsonObject, decode_object, failure_in_reply, make_usage

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange, ProviderFailure, SseEvent, Usage

_PIECES = (b"content_block_delta", b"")  # servers that imitate the API may leave the name out
_MEANINGLESS = (b"", b"[DONE]")
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


class TextDelta(msgspec.Struct, tag="text_delta", forbid_unknown_fields=True, gc=False):
    """More of what is said."""

    text: str


class ThinkingDelta(msgspec.Struct, tag="thinking_delta", forbid_unknown_fields=True, gc=False):
    """More of what is thought."""

    thinking: str


class InputDelta(msgspec.Struct, tag="input_json_delta", forbid_unknown_fields=True, gc=False):
    """More of a call's arguments."""

    partial_json: str


class Piece(msgspec.Struct, tag="content_block_delta", forbid_unknown_fields=True, gc=False):
    """A piece of a block and nothing else; an event with anything more is read in full."""

    index: int
    delta: TextDelta | ThinkingDelta | InputDelta


StreamEvent = Piece | JsonObject

_piece = msgspec.json.Decoder(Piece)


def decode_event(event: SseEvent) -> StreamEvent | None:
    """Return what the event says; None for one that says nothing.

    Raises:
        ValueError: If it is not a JSON object.
    """
    if event.event in _PIECES:
        try:
            return _piece.decode(event.data)
        except msgspec.MsgspecError:
            pass
    return _decode_full(event.data.strip())


def _decode_full(data: bytes) -> StreamEvent | None:
    if data in _MEANINGLESS:
        return None
    decoded = decode_object(data)
    return None if decoded.get("type") == "ping" else decoded


def failure_in_stream(exchange: Exchange, event: JsonObject) -> ProviderFailure:
    """Return the failure that an error event means; the status was a good one long before."""
    return failure_in_reply(exchange, event.get("error"), request_id=event.get("request_id"))


def read_usage(usage: JsonObject) -> Usage:
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
