"""Replies in the form of Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from agent_testing.replies import ServerReply, arguments_text, call_id, halves, json_reply, sse_event, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.testing import ToolCall
    from agent_provider_kit import Dicts, JsonObject


CHAT_USAGE: Mapping[str, Any] = {
    "prompt_tokens": 12,
    "completion_tokens": 7,
    "total_tokens": 19,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 0},
}


def chat_reply(
    text: str = "",
    *,
    chunks: Sequence[str] | None = None,
    tool_calls: Sequence[ToolCall] = (),
    reasoning: str = "",
    reasoning_field: str = "reasoning_content",
    refusal: str | None = None,
    usage: Mapping[str, Any] | None = CHAT_USAGE,
    finish_reason: str | None = None,
    extra: Mapping[str, Any] | None = None,
    model: str = "scripted-model",
    response_id: str = "chatcmpl-scripted",
) -> ServerReply:
    """Return an answer of Chat Completions.

    Args:
        text: What the model says.
        chunks: The text in the pieces of the stream; by default word by word.
        tool_calls: Calls that it makes.
        reasoning: What it thinks, sent in the field *reasoning_field*.
        refusal: Why it will not.
        usage: Token counts; None leaves them out.
        finish_reason: By default `tool_calls` or `stop`.
        extra: More fields of the message, which the stream brings in one delta.
    """
    text = text or "".join(chunks or ())
    finish = finish_reason or ("tool_calls" if tool_calls else "stop")
    message = _message(text, tool_calls, reasoning_field, reasoning, refusal, extra or {})
    head = {"id": response_id, "created": 1767225600, "model": model, "system_fingerprint": "fp_scripted"}
    deltas: Dicts = [
        {"role": "assistant", "content": None if tool_calls and not text else "", "refusal": None},
        *({reasoning_field: piece} for piece in words(reasoning)),
        *({"content": piece} for piece in words(text, chunks)),
        *({"refusal": piece} for piece in words(refusal or "")),
        *({"tool_calls": [piece]} for piece in _call_pieces(tool_calls)),
        *([dict(extra)] if extra else []),
    ]
    before_end = b"".join(_chunk(head, delta) for delta in deltas)
    return ServerReply(
        body=_body(head, message, finish, usage),
        stream=before_end + _chunk(head, {}, finish) + _last(head, usage),
        end_at=len(before_end),
    )


def chat_models(*names: str) -> ServerReply:
    """Return the list of a server's models."""
    models = [{"id": name, "object": "model", "created": 1767225600, "owned_by": "script"} for name in names]
    return json_reply({"object": "list", "data": models})


def chat_chunk(delta: Mapping[str, Any], finish_reason: str | None = None, **fields: Any) -> JsonObject:
    """Return one chunk of a stream, for streams that are written by hand with `sse_reply`."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "choices": [choice], **fields}


def _message(
    text: str,
    tool_calls: Sequence[ToolCall],
    reasoning_field: str,
    reasoning: str,
    refusal: str | None,
    extra: Mapping[str, Any],
) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text or None, "refusal": refusal}
    if not tool_calls:
        message["content"] = text
    if reasoning:
        message[reasoning_field] = reasoning
    if tool_calls:
        message["tool_calls"] = [_call(call, number) for number, call in enumerate(tool_calls, 1)]
    return {**message, **extra}


def _call(call: ToolCall, number: int) -> JsonObject:
    own = call_id(call, number, "call_")
    if call.input is not None:
        return {"id": own, "type": "custom", "custom": {"name": call.name, "input": call.input}}
    function = {"name": call.name, "arguments": arguments_text(call)}
    return {"id": own, "type": "function", "function": function}


def _call_pieces(tool_calls: Sequence[ToolCall]) -> Dicts:
    pieces: Dicts = []
    for index, call in enumerate(tool_calls):
        whole = _call(call, index + 1)
        kind, field = ("custom", "input") if call.input is not None else ("function", "arguments")
        pieces.append({"index": index, **whole, kind: {**whole[kind], field: ""}})
        pieces += [{"index": index, kind: {field: piece}} for piece in halves(whole[kind][field])]
    return pieces


def _body(
    head: Mapping[str, Any], message: Mapping[str, Any], finish: str, usage: Mapping[str, Any] | None
) -> bytes:
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    body = {**head, "object": "chat.completion", "choices": [choice], "service_tier": "default"}
    return orjson.dumps(body if usage is None else {**body, "usage": usage})


def _chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    common = {"object": "chat.completion.chunk", "service_tier": "default", "usage": None}
    return sse_event({**head, **common, "choices": [choice]})


def _last(head: Mapping[str, Any], usage: Mapping[str, Any] | None) -> bytes:
    done = sse_event("[DONE]")
    if usage is None:
        return done
    return sse_event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}) + done
