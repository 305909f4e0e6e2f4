"""Replies in the form of OpenAI's Responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from agent_provider_kit import Dicts, JsonObject
from agent_testing.replies import ServerReply, arguments_text, call_id, halves, sse_event, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_core.testing import ToolCall

Event = JsonObject

RESPONSES_USAGE: Mapping[str, Any] = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 19,
}


def responses_reply(
    text: str = "",
    *,
    chunks: Sequence[str] | None = None,
    tool_calls: Sequence[ToolCall] = (),
    reasoning: str = "",
    encrypted: str = "ZW5jcnlwdGVkIGJ5IHRoZSBzY3JpcHQ=",
    refusal: str = "",
    annotations: Sequence[Mapping[str, Any]] = (),
    items: Sequence[Mapping[str, Any]] = (),
    usage: Mapping[str, Any] | None = RESPONSES_USAGE,
    status: str = "completed",
    incomplete_reason: str | None = None,
    error: Mapping[str, Any] | None = None,
    numbered: bool = True,
    model: str = "scripted-model",
    response_id: str = "resp_scripted",
) -> ServerReply:
    """Return an answer of Responses.

    Args:
        text: What the model says.
        chunks: The text in the pieces of the stream; by default word by word.
        tool_calls: Calls that it makes; one with `input` is a custom tool call.
        reasoning: The summary of what it thinks, in an item with *encrypted* content.
        refusal: Why it will not, in place of a text.
        annotations: Of the text.
        items: More output items, of built-in tools for example; they come whole, before the text.
        usage: Token counts; None leaves them out.
        status: `completed`, `incomplete` or `failed`.
        incomplete_reason: Why it is incomplete, for example `max_output_tokens`.
        error: Why it failed.
        numbered: Whether events carry sequence numbers; some servers leave them out.
    """
    text = text or "".join(chunks or ())
    output = _output(text, tool_calls, reasoning, encrypted, refusal, annotations, items)
    end = {
        "status": status,
        "incomplete_details": None if incomplete_reason is None else {"reason": incomplete_reason},
        "error": error,
        "usage": usage,
    }
    begun = _response(response_id, model) | {"status": "in_progress"}
    whole = _response(response_id, model) | {"output": output} | end
    events: list[Event] = [
        {"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")
    ]
    for index, item in enumerate(output):
        events += ({**event, "output_index": index} for event in _item_events(item, words(text, chunks)))
    before_end = _encode(events, 0, numbered=numbered)
    last = _encode([{"type": f"response.{status}", "response": whole}], len(events), numbered=numbered)
    return ServerReply(body=orjson.dumps(whole), stream=before_end + last, end_at=len(before_end))


def _response(response_id: str, model: str) -> JsonObject:
    return {
        "id": response_id,
        "object": "response",
        "created_at": 1767225600,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "service_tier": "default",
        "store": False,
        "usage": None,
        "metadata": {},
    }


def _output(
    text: str,
    tool_calls: Sequence[ToolCall],
    reasoning: str,
    encrypted: str,
    refusal: str,
    annotations: Sequence[Mapping[str, Any]],
    items: Sequence[Mapping[str, Any]],
) -> Dicts:
    output: Dicts = []
    if reasoning:
        summary = [{"type": "summary_text", "text": reasoning}]
        thought = {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}
        output.append({"id": "rs_scripted", **thought})
    output += [dict(item) for item in items]
    if text:
        part = {"type": "output_text", "annotations": list(annotations), "logprobs": [], "text": text}
        output.append(_message(part))
    if refusal:
        output.append(_message({"type": "refusal", "refusal": refusal}))
    return output + [_call(call, number) for number, call in enumerate(tool_calls, 1)]


def _message(part: JsonObject) -> JsonObject:
    said = {"status": "completed", "content": [part], "role": "assistant"}
    return {"id": "msg_scripted", "type": "message", **said}


def _call(call: ToolCall, number: int) -> JsonObject:
    own = {"status": "completed", "call_id": call_id(call, number, "call_"), "name": call.name}
    if call.input is not None:
        return {"id": f"ctc_{number}", "type": "custom_tool_call", **own, "input": call.input}
    return {"id": f"fc_{number}", "type": "function_call", **own, "arguments": arguments_text(call)}


def _item_events(item: JsonObject, text_pieces: Sequence[str]) -> Iterator[Event]:
    """Yield the events of one output item: its empty form, what fills it, its whole form."""
    kind = item["type"]
    if kind == "reasoning":
        yield _added(item, summary=[], encrypted_content="")
        yield from _summary(item)
    elif kind == "message":
        yield _added(item, status="in_progress", content=[])
        yield from _said(item, text_pieces)
    elif kind == "function_call":
        yield _added(item, status="in_progress", arguments="")
        yield from _filled(item, "function_call_arguments", "arguments", halves(item["arguments"]))
    elif kind == "custom_tool_call":
        yield _added(item, status="in_progress", input="")
        yield from _filled(item, "custom_tool_call_input", "input", halves(item["input"]))
    else:
        yield _added(item)
    yield {"type": "response.output_item.done", "item": item}


def _added(item: JsonObject, **empty: Any) -> Event:
    return {"type": "response.output_item.added", "item": {**item, **empty}}


def _filled(item: JsonObject, event: str, field: str, pieces: Sequence[str], **at: Any) -> Iterator[Event]:
    own = {"item_id": item["id"], **at}
    for piece in pieces:
        yield {"type": f"response.{event}.delta", **own, "delta": piece}
    yield {"type": f"response.{event}.done", **own, field: "".join(pieces)}


def _summary(item: JsonObject) -> Iterator[Event]:
    own = {"item_id": item["id"], "summary_index": 0}
    [part] = item["summary"]
    yield {"type": "response.reasoning_summary_part.added", **own, "part": {**part, "text": ""}}
    yield from _filled(item, "reasoning_summary_text", "text", words(part["text"]), summary_index=0)
    yield {"type": "response.reasoning_summary_part.done", **own, "part": part}


def _said(item: JsonObject, text_pieces: Sequence[str]) -> Iterator[Event]:
    own = {"item_id": item["id"], "content_index": 0}
    [part] = item["content"]
    field = "refusal" if part["type"] == "refusal" else "text"
    empty = {**part, field: ""} | ({} if field == "refusal" else {"annotations": []})
    yield {"type": "response.content_part.added", **own, "part": empty}
    if field == "refusal":
        yield from _filled(item, "refusal", "refusal", words(part["refusal"]), content_index=0)
    else:
        yield from _filled(item, "output_text", "text", text_pieces, content_index=0)
        for index, annotation in enumerate(part["annotations"]):
            about = {"annotation_index": index, "annotation": annotation}
            yield {"type": "response.output_text.annotation.added", **own, **about}
    yield {"type": "response.content_part.done", **own, "part": part}


def _encode(events: Sequence[Event], first: int, *, numbered: bool) -> bytes:
    numbers = (
        {"sequence_number": number} if numbered else {} for number in range(first, first + len(events))
    )
    pairs = zip(events, numbers, strict=True)
    return b"".join(sse_event({**event, **number}, event["type"]) for event, number in pairs)
