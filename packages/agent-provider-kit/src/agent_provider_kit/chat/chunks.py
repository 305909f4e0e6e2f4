"""Decoding one event of a stream: quickly when it brings only text, completely otherwise."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import orjson


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


Chunk = TextChunk | dict[str, Any]
DONE: dict[str, Any] = {"done": True}

_text_chunk = msgspec.json.Decoder(TextChunk)


def decode_chunk(data: bytes) -> Chunk | None:
    """Return the chunk; None for an empty event.

    Raises:
        ValueError: If it is no JSON object.
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
    chunk = orjson.loads(data)
    if not isinstance(chunk, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - nonsense on the wire, not in the code
    return chunk
