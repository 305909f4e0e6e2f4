"""The chunks of a stream: how they are decoded, and what finish reasons and token counts mean.

A chunk that brings only text is decoded quickly, any other completely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import orjson

from agent_provider_kit import (
    JsonObject,
    ProviderFailure,
    RequestRefused,
    StreamCutOff,
    StreamMalformed,
    decode_object,
    make_usage,
)

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
    "OTHER": (StreamCutOff, "the model stopped early and does not say why"),
    "IMAGE_OTHER": (StreamCutOff, "the model made no image and does not say why"),
    "NO_IMAGE": (StreamCutOff, "the model was to make an image and made none"),
    "FINISH_REASON_UNSPECIFIED": (StreamCutOff, "the model stopped and does not say why"),
}


class TextPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A part with text alone, said or thought."""

    text: str
    thought: bool | msgspec.UnsetType = msgspec.UNSET


class TextContent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A content of one such part."""

    parts: tuple[TextPart]
    role: Literal["model"] = "model"


class TextCandidate(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The first candidate, which goes on."""

    content: TextContent
    index: Literal[0] = 0


class TextChunk(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """A chunk that brings text and counts; anything more does not fit and is read in full."""

    candidates: tuple[TextCandidate]
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: str | None = None
    response_id: str | None = None


Chunk = TextChunk | JsonObject

_text_chunk = msgspec.json.Decoder(TextChunk)


def decode_chunk(data: bytes) -> Chunk | None:
    """Return the chunk; None for an event that means nothing.

    Raises:
        ValueError: If it is not a JSON object.
    """
    try:
        chunk = _text_chunk.decode(data)
    except msgspec.MsgspecError:
        return _decode_full(data.strip())
    if chunk.candidates[0].content.parts[0].thought is False:
        return _decode_full(data)
    return chunk


def _decode_full(data: bytes) -> Chunk | None:
    if not data or data == b"[DONE]":
        return None
    if not data.startswith(b"["):
        return decode_object(data)
    match orjson.loads(data):  # an error may come in a list
        case [{"error": _} as chunk, *_]:
            return dict(chunk)
    raise ValueError("it is not a JSON object")


def read_ending(reason: str) -> Ending | None:
    """Return how an answer ended; None where the reason is a failure."""
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


def read_usage(usage: JsonObject) -> Usage:
    """Return the token counts in the common shape: thoughts are output, tools' prompts are input."""
    return make_usage(
        input_tokens=_sum(usage, "promptTokenCount", "toolUsePromptTokenCount"),
        output_tokens=_sum(usage, "candidatesTokenCount", "thoughtsTokenCount"),
        total_tokens=usage.get("totalTokenCount"),
        cached_input_tokens=usage.get("cachedContentTokenCount"),
        reasoning_tokens=usage.get("thoughtsTokenCount"),
    )


def _sum(usage: JsonObject, *names: str) -> int | None:
    counts = [usage[name] for name in names if type(usage.get(name)) is int]
    return sum(counts) if counts else None
