"""What all wire formats have in common: JSON objects, how an answer ended, how many tokens it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypedDict, cast

import orjson

from agent_core.interop.wire import MAX_DEPTH, is_deep

JsonObject = dict[str, Any]
"""A JSON object as a provider sends or takes it: a message, an event, a body."""

Dicts = list[JsonObject]

Config = Mapping[str, Any]
"""The settings of a request."""

State = dict[str, Any]
"""What a provider keeps while a request runs."""

Ending = Literal["complete", "length", "tool_calls", "refusal", "filtered", "paused"]
"""`complete`, cut by the `length` limit, waiting for `tool_calls`, a `refusal` of the model, `filtered`
by the provider, or `paused` by it to be continued. Anything else is not an ending but an error: see
`agent_provider_kit.failures`."""


class TooDeep(ValueError):
    """JSON is nested more deeply than anybody needs, and than whoever walks it could bear."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {MAX_DEPTH} levels deep")


def decode_object(data: bytes) -> JsonObject:
    """Return the JSON object that *data* is.

    Raises:
        TooDeep: If it is nested too deeply.
        ValueError: If it is something else.
    """
    might_be_deep = data.count(b"{") + data.count(b"[") > MAX_DEPTH
    try:
        decoded = orjson.loads(data)
    except ValueError as error:
        if might_be_deep and "depth" in str(error):
            raise TooDeep from error
        raise
    if might_be_deep and is_deep(decoded):
        raise TooDeep
    if isinstance(decoded, dict):
        return decoded
    raise ValueError("it is not a JSON object")


class EncodedJson(NamedTuple):
    """Something in a request's body that is encoded already, as long histories are; see `encode_body`."""

    contents: bytes


def encode_body(body: JsonObject) -> bytes:
    """Return a request's body as JSON; what is encoded already is put in as it is."""
    ready = {name: value for name, value in body.items() if isinstance(value, EncodedJson)}
    if not ready:
        return orjson.dumps(body, _as_fragment)
    # Not copied by the encoder: a long history is by far the most of a body.
    rest = orjson.dumps({name: value for name, value in body.items() if name not in ready}, _as_fragment)
    pieces: list[bytes] = []
    for name, value in ready.items():
        pieces += [b"," if pieces else b"{", orjson.dumps(name), b":", value.contents]
    return b"".join([*pieces, b"," if len(rest) > len(b"{}") else b"", rest[1:]])


def _as_fragment(value: object) -> orjson.Fragment:
    if isinstance(value, EncodedJson):
        return orjson.Fragment(value.contents)
    raise TypeError(f"{type(value).__name__} is not JSON data")


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
