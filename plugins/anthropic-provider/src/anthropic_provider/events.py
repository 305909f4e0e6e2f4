"""Decoding one event of a stream: quickly when it brings a piece of text, completely otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import orjson

if TYPE_CHECKING:
    from agent_provider_kit import SseEvent


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


StreamEvent = Piece | dict[str, Any]

_piece = msgspec.json.Decoder(Piece)
_PIECES = (b"content_block_delta", b"")  # servers that imitate the API may leave the name out
_MEANINGLESS = (b"", b"[DONE]")


def decode_event(event: SseEvent) -> StreamEvent | None:
    """Return what the event says; None for one that says nothing.

    Raises:
        ValueError: If it is no JSON object.
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
    decoded = orjson.loads(data)
    if not isinstance(decoded, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - nonsense on the wire, not in the code
    return None if decoded.get("type") == "ping" else decoded
