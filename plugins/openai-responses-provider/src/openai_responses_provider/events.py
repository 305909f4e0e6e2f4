"""Decoding one event of a stream: quickly when it brings a piece of text, completely otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import orjson

if TYPE_CHECKING:
    from agent_provider_kit import SseEvent


class Piece(msgspec.Struct, gc=False):
    """More of a text; whatever else such an event holds comes again when the item is complete."""

    type: Literal[
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
    ]
    delta: str
    output_index: int
    content_index: int = 0
    summary_index: int = 0


StreamEvent = Piece | dict[str, Any]

_piece = msgspec.json.Decoder(Piece)
_MEANINGLESS = (b"", b"[DONE]")


def decode_event(event: SseEvent) -> StreamEvent | None:
    """Return what the event says; None for one that says nothing.

    Raises:
        ValueError: If it is no JSON object.
    """
    name = event.event
    if not name or name.endswith(b".delta"):
        try:
            return _piece.decode(event.data)
        except msgspec.MsgspecError:
            pass
    return _decode_full(event.data.strip(), name)


def _decode_full(data: bytes, name: bytes) -> dict[str, Any] | None:
    if data in _MEANINGLESS:
        return None
    decoded = orjson.loads(data)
    if not isinstance(decoded, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - nonsense on the wire, not in the code
    # Servers that imitate the API may give the type only as the event's name.
    return decoded if "type" in decoded or not name else {"type": name.decode("utf-8", "replace"), **decoded}
