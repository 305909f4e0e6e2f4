"""Replies in the form of Anthropic's Messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from agent_testing.replies import (
    ServerReply,
    arguments_object,
    arguments_text,
    call_id,
    halves,
    json_reply,
    sse_event,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.testing import ToolCall
    from agent_provider_kit import Dicts, JsonObject


ANTHROPIC_USAGE: Mapping[str, Any] = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 4,
    "output_tokens": 7,
    "service_tier": "standard",
}


def anthropic_reply(
    text: str = "",
    *,
    chunks: Sequence[str] | None = None,
    tool_calls: Sequence[ToolCall] = (),
    reasoning: str = "",
    signature: str = "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ=",
    redacted: str = "",
    blocks: Sequence[Mapping[str, Any]] = (),
    usage: Mapping[str, Any] | None = ANTHROPIC_USAGE,
    stop_reason: str | None = None,
    model: str = "scripted-model",
    response_id: str = "msg_scripted",
) -> ServerReply:
    """Return an answer of Messages.

    Args:
        text: What the model says.
        chunks: The text in the pieces of the stream; by default word by word.
        tool_calls: Calls that it makes.
        reasoning: What it thinks, with *signature* behind it.
        redacted: The data of a redacted thinking block.
        blocks: More blocks, of server tools for example; they come whole, before the text.
        usage: Token counts; None leaves them out.
        stop_reason: By default `tool_use` or `end_turn`.
    """
    text = text or "".join(chunks or ())
    stop = {
        "stop_reason": stop_reason or ("tool_use" if tool_calls else "end_turn"),
        "stop_sequence": None,
    }
    content = _content(text, tool_calls, reasoning, signature, redacted, blocks)
    head = {"id": response_id, "type": "message", "role": "assistant", "model": model}
    before_end = _event("message_start", message={**head, "content": [], **_stop_none(), **_counts(usage, 1)})
    before_end += sse_event({"type": "ping"}, "ping")
    pieces = words(text, chunks)
    before_end += b"".join(_block(index, block, pieces, tool_calls) for index, block in enumerate(content))
    end = _event("message_delta", delta=stop, **_counts(usage)) + _event("message_stop")
    return ServerReply(
        body=orjson.dumps({**head, "content": content, **stop, **_counts(usage)}),
        stream=before_end + end,
        end_at=len(before_end),
    )


def anthropic_models(*names: str) -> ServerReply:
    """Return the list of the provider's models."""
    models = [
        {"type": "model", "id": name, "display_name": name.title(), "created_at": "2026-01-01T00:00:00Z"}
        for name in names
    ]
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {"first_id": None, "last_id": None}
    return json_reply({"data": models, "has_more": False, **ends})


def _content(
    text: str,
    tool_calls: Sequence[ToolCall],
    reasoning: str,
    signature: str,
    redacted: str,
    blocks: Sequence[Mapping[str, Any]],
) -> Dicts:
    content: Dicts = []
    if reasoning:
        content.append({"type": "thinking", "thinking": reasoning, "signature": signature})
    if redacted:
        content.append({"type": "redacted_thinking", "data": redacted})
    content += [dict(block) for block in blocks]
    if text:
        content.append({"type": "text", "text": text})
    return content + [_use(call, number) for number, call in enumerate(tool_calls, 1)]


def _use(call: ToolCall, number: int) -> JsonObject:
    own = call_id(call, number, "toolu_")
    return {"type": "tool_use", "id": own, "name": call.name, "input": arguments_object(call)}


def _block(
    index: int, block: JsonObject, text_pieces: Sequence[str], tool_calls: Sequence[ToolCall]
) -> bytes:
    """Return the events of one block: its empty form, what fills it, its end."""
    deltas: Dicts = []
    empty = block
    if block["type"] == "thinking":
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in words(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] == "text":
        empty = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in text_pieces]
    elif block["type"] == "tool_use":
        empty = {**block, "input": {}}
        deltas = _input_pieces(_text_of(block, tool_calls))
    events = [_event("content_block_start", index=index, content_block=empty)]
    events += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
    return b"".join([*events, _event("content_block_stop", index=index)])


def _text_of(block: JsonObject, tool_calls: Sequence[ToolCall]) -> str:
    numbered = enumerate(tool_calls, 1)
    return next(arguments_text(call) for n, call in numbered if call_id(call, n, "toolu_") == block["id"])


def _input_pieces(arguments: str) -> Dicts:
    pieces = ["", *halves(arguments)]
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _stop_none() -> JsonObject:
    return {"stop_reason": None, "stop_sequence": None}


def _counts(usage: Mapping[str, Any] | None, output: int | None = None) -> JsonObject:
    if usage is None:
        return {}
    return {"usage": dict(usage) if output is None else {**usage, "output_tokens": output}}


def _event(kind: str, **fields: Any) -> bytes:
    # The provider pads its objects with spaces, so the script does too.
    data = orjson.dumps({"type": kind, **fields})
    return sse_event(data[:-1] + b"   }", kind)
