"""Replies in the four wire formats: both forms say the same, and look like the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_provider_kit import SseDecoder
from agent_testing import (
    ServerReply,
    ToolCall,
    anthropic_models,
    anthropic_reply,
    chat_chunk,
    chat_models,
    chat_reply,
    gemini_models,
    gemini_reply,
    read_recording,
    responses_reply,
)

RECORDINGS = Path(__file__).parents[4].parent / "shared" / "wire"
recorded = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="there are no recordings beside the project")
CALLS = [ToolCall("look_up", {"word": "tea"}, id="c1"), ToolCall("sum_up", '{"half": ', id="c2")]


def events(reply: ServerReply) -> list[dict[str, Any]]:
    decoder = SseDecoder()
    found = [*decoder.feed(reply.stream or b""), *decoder.finish()]
    return [{**orjson.loads(e.data), "event": e.event.decode()} for e in found if e.data != b"[DONE]"]


def test_chat_says_the_same_in_both_forms() -> None:
    reply = chat_reply("Hi you", reasoning="a b", tool_calls=CALLS, refusal="no way", extra={"x": 1})
    message = orjson.loads(reply.body)["choices"][0]["message"]
    deltas = [choice["delta"] for chunk in events(reply) for choice in chunk["choices"]]

    for field in ("content", "reasoning_content", "refusal"):
        assert "".join(delta.get(field) or "" for delta in deltas) == message[field]
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls", [])]
    for index, call in enumerate(message["tool_calls"]):
        own = [piece["function"]["arguments"] for piece in pieces if piece["index"] == index]
        assert "".join(own) == call["function"]["arguments"]
    assert {"x": 1} in deltas
    assert events(reply)[-1]["usage"] == orjson.loads(reply.body)["usage"]


def test_the_pieces_of_a_text_can_be_given() -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in events(chat_reply(chunks=["a", "bc"], usage=None))]

    assert [delta["content"] for delta in deltas if delta.get("content")] == ["a", "bc"]
    with pytest.raises(ValueError, match="must add up"):
        chat_reply("abc", chunks=["a"])


def test_chat_streams_can_be_written_by_hand() -> None:
    assert chat_chunk({"content": "a"}, usage=None) == {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": None, "finish_reason": None}],
        "usage": None,
    }


def test_freeform_calls_have_an_input() -> None:
    call = ToolCall("draw", input="a line", id="c1")
    chat = orjson.loads(chat_reply(tool_calls=[call]).body)["choices"][0]["message"]["tool_calls"]
    responses = orjson.loads(responses_reply(tool_calls=[call]).body)["output"]

    assert chat == [{"id": "c1", "type": "custom", "custom": {"name": "draw", "input": "a line"}}]
    assert (responses[0]["type"], responses[0]["input"]) == ("custom_tool_call", "a line")


def test_responses_end_with_the_whole_answer() -> None:
    reply = responses_reply(
        "Hi you",
        reasoning="a b",
        tool_calls=CALLS,
        refusal="no",
        annotations=[{"type": "url_citation"}],
        items=[{"type": "web_search_call", "id": "ws_1", "status": "completed"}],
    )
    told = events(reply)

    assert told[-1]["type"] == told[-1]["event"] == "response.completed"
    assert told[-1]["response"] == orjson.loads(reply.body)
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert done == orjson.loads(reply.body)["output"]
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert b"sequence_number" not in (responses_reply("Hi", numbered=False).stream or b"")


def test_messages_say_the_same_in_both_forms() -> None:
    server_tool = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    reply = anthropic_reply(
        "Hi you", reasoning="a b", redacted="xyz", tool_calls=CALLS[:1], blocks=[server_tool]
    )
    content = orjson.loads(reply.body)["content"]
    told = events(reply)

    starts = [event["content_block"]["type"] for event in told if event["type"] == "content_block_start"]
    assert starts == [block["type"] for block in content]
    deltas = [event["delta"] for event in told if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Hi you"
    assert "".join(delta.get("thinking", "") for delta in deltas) == "a b"
    assert "".join(delta.get("partial_json", "") for delta in deltas) == '{"word":"tea"}'
    assert told[-1]["type"] == "message_stop"


def test_generated_content_says_the_same_in_both_forms() -> None:
    reply = gemini_reply("Hi you", reasoning="a b", tool_calls=CALLS[:1], signature="sig", parts=[{"x": 1}])
    parts = [part for chunk in events(reply) for part in chunk["candidates"][0]["content"]["parts"]]
    whole = orjson.loads(reply.body)["candidates"][0]["content"]["parts"]

    for thought in (True, None):
        pieces = [part["text"] for part in parts if "text" in part and part.get("thought") is thought]
        [text] = [part["text"] for part in whole if "text" in part and part.get("thought") is thought]
        assert "".join(pieces) == text
    call = {
        "functionCall": {"name": "look_up", "args": {"word": "tea"}, "id": "c1"},
        "thoughtSignature": "sig",
    }
    assert call in parts and call in whole and {"x": 1} in parts and {"x": 1} in whole
    assert (reply.stream or b"").endswith(b"\r\n\r\n")


def test_a_signature_without_a_call_comes_after_the_text() -> None:
    reply = gemini_reply("Hi", signature="sig")

    assert orjson.loads(reply.body)["candidates"][0]["content"]["parts"] == [
        {"text": "Hi", "thoughtSignature": "sig"}
    ]
    assert events(reply)[-1]["candidates"][0]["content"]["parts"] == [{"text": "", "thoughtSignature": "sig"}]


@pytest.mark.parametrize("builder", [chat_reply, responses_reply, anthropic_reply, gemini_reply])
def test_counts_can_be_left_out(builder: Any) -> None:
    reply = builder("Hi", usage=None)

    assert not orjson.loads(reply.body).get("usage") and b"usageMetadata" not in reply.body
    assert b"_tokens" not in reply.stream and b"TokenCount" not in reply.stream


def test_lists_of_models_are_as_providers_send_them() -> None:
    assert [m["id"] for m in orjson.loads(chat_models("a", "b").body)["data"]] == ["a", "b"]
    assert orjson.loads(anthropic_models("a", "b").body)["last_id"] == "b"
    assert orjson.loads(anthropic_models().body)["data"] == []
    assert orjson.loads(gemini_models("a").body)["models"][0]["name"] == "models/a"


def keys(value: Any) -> set[str]:
    """Return all keys in a JSON value, at any depth."""
    if isinstance(value, dict):
        return set(value) | {key for each in value.values() for key in keys(each)}
    return {key for each in value for key in keys(each)} if isinstance(value, list) else set()


OURS = {
    "openai-chat": chat_reply("Hi", tool_calls=CALLS),
    "openai-responses": responses_reply("Hi", tool_calls=CALLS, reasoning="a"),
    "anthropic-messages": anthropic_reply("Hi", tool_calls=CALLS, reasoning="a", redacted="b"),
    "gemini-generate": gemini_reply("Hi", tool_calls=CALLS, reasoning="a", signature="s"),
}
# What the recordings happen not to show, and the documentation does; and what our own values contain.
UNRECORDED = {"reasoning_content", "thought", "cachedContentTokenCount", "word", "redacted_thinking", "id"}


@recorded
@pytest.mark.parametrize("api", OURS)
def test_our_replies_have_no_field_that_the_real_ones_lack(api: str) -> None:
    real: set[str] = set()
    for file in sorted(RECORDINGS.glob(f"{api}-*/*.json")):
        for each in read_recording(file):
            if each.streamed:
                real |= {key for event in events(each.reply) for key in keys(event)}
            else:
                real |= keys(orjson.loads(each.reply.body))
    ours = keys(orjson.loads(OURS[api].body)) | {key for event in events(OURS[api]) for key in keys(event)}

    assert ours - real - UNRECORDED == set()
