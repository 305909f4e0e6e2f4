"""Replies in the form of Gemini's generateContent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from agent_testing.replies import ServerReply, arguments_object, json_reply, sse_event, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.testing import ToolCall
    from agent_provider_kit import Dicts, JsonObject


GEMINI_USAGE: Mapping[str, Any] = {
    "promptTokenCount": 12,
    "candidatesTokenCount": 5,
    "totalTokenCount": 19,
    "cachedContentTokenCount": 4,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
    "thoughtsTokenCount": 2,
}


def gemini_reply(
    text: str = "",
    *,
    chunks: Sequence[str] | None = None,
    tool_calls: Sequence[ToolCall] = (),
    reasoning: str = "",
    signature: str = "",
    parts: Sequence[Mapping[str, Any]] = (),
    usage: Mapping[str, Any] | None = GEMINI_USAGE,
    finish_reason: str = "STOP",
    extra: Mapping[str, Any] | None = None,
    model: str = "scripted-model",
    response_id: str = "scripted-response",
) -> ServerReply:
    """Return an answer of generateContent.

    Args:
        text: What the model says.
        chunks: The text in the pieces of the stream; by default word by word.
        tool_calls: Calls that it makes; one without an id is sent without.
        reasoning: What it thinks, in a part marked as thought.
        signature: A thought signature, at the first call or else after the text.
        parts: More parts, as they are; they come whole, before the text.
        usage: Token counts; None leaves them out.
        finish_reason: How it ended.
        extra: More fields of the candidate at its end: safety ratings, grounding.
    """
    text = text or "".join(chunks or ())
    head = {"modelVersion": model, "responseId": response_id}
    counts = {} if usage is None else {"usageMetadata": usage}
    calls = _calls(tool_calls, signature)
    thoughts = [{"text": reasoning, "thought": True}] if reasoning else []
    says: Dicts = [{"text": text}] if text else []
    if signature and says and not calls:
        says[-1]["thoughtSignature"] = signature
    last: JsonObject = {"text": ""}
    if signature and not calls:
        last["thoughtSignature"] = signature
    ended = {"finishReason": finish_reason, **(extra or {})}
    arriving: Dicts = [
        *({"text": piece, "thought": True} for piece in words(reasoning)),
        *(dict(part) for part in parts),
        *({"text": piece} for piece in words(text, chunks)),
        *calls,
    ]
    before_end = b"".join(_event({**_candidate([part]), **counts, **head}) for part in arriving)
    return ServerReply(
        body=orjson.dumps(
            {**_candidate([*thoughts, *map(dict, parts), *says, *calls], ended), **counts, **head}
        ),
        stream=before_end + _event({**_candidate([last], ended), **counts, **head}),
        end_at=len(before_end),
    )


def gemini_models(*names: str) -> ServerReply:
    """Return the list of the provider's models."""
    methods = ["generateContent", "streamGenerateContent"]
    models = [
        {
            "name": f"models/{name}",
            "displayName": name.title(),
            "inputTokenLimit": 32768,
            "outputTokenLimit": 8192,
            "supportedGenerationMethods": methods,
        }
        for name in names
    ]
    return json_reply({"models": models})


def _calls(tool_calls: Sequence[ToolCall], signature: str) -> Dicts:
    parts: Dicts = []
    for call in tool_calls:
        function: JsonObject = {"name": call.name, "args": arguments_object(call)}
        if call.id:
            function["id"] = call.id
        parts.append({"functionCall": function})
    if parts and signature:
        parts[0]["thoughtSignature"] = signature
    return parts


def _candidate(parts: Dicts, ended: Mapping[str, Any] | None = None) -> JsonObject:
    return {"candidates": [{"content": {"parts": parts, "role": "model"}, **(ended or {}), "index": 0}]}


def _event(data: Mapping[str, Any]) -> bytes:
    return sse_event(data, newline=b"\r\n")
