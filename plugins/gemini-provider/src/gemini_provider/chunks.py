"""Decoding one event of a stream: quickly when it brings only text, completely otherwise."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import orjson


class TextPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A part with text alone, said or thought."""

    text: str
    thought: bool | msgspec.UnsetType = msgspec.UNSET


class TextContent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A content of one such part."""

    parts: tuple[TextPart]
    role: Literal["model"] = "model"


class TextCandidate(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The first candidate, going on."""

    content: TextContent
    index: Literal[0] = 0


class TextChunk(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """A chunk that brings text and counts; anything more does not fit and is read in full."""

    candidates: tuple[TextCandidate]
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: str | None = None
    response_id: str | None = None


Chunk = TextChunk | dict[str, Any]

_text_chunk = msgspec.json.Decoder(TextChunk)


def decode_chunk(data: bytes) -> Chunk | None:
    """Return the chunk; None for an event that means nothing.

    Raises:
        ValueError: If it is no JSON object.
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
    chunk = orjson.loads(data)
    if isinstance(chunk, list) and chunk and isinstance(chunk[0], dict) and "error" in chunk[0]:
        chunk = chunk[0]
    if not isinstance(chunk, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - nonsense on the wire, not in the code
    return chunk
