from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_provider_kit import (
    ContextTooLong,
    KeyRefused,
    LimitReached,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    StreamCutOff,
    StreamMalformed,
)
from agent_testing import (
    ServerReply,
    ToolCall,
    anthropic_reply,
    error_reply,
    json_reply,
    sse_event,
)

if TYPE_CHECKING:
    from agent_testing import Talk

ANSWER = anthropic_reply("A long answer with many words.", tool_calls=[ToolCall("look_up", {"word": "tea"})])


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("status", "code", "message", "failure"),
    [
        (400, "invalid_request_error", "max_tokens: field required", RequestRefused),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong),
        (400, "invalid_request_error", "Your credit balance is too low to access the API", LimitReached),
        (401, "authentication_error", "invalid x-api-key", KeyRefused),
        (402, "billing_error", "payment needed", LimitReached),
        (403, "permission_error", "not yours", KeyRefused),
        (404, "not_found_error", "model: claude-sonet-4-5", RequestRefused),
        (413, "request_too_large", "Request exceeds the maximum size", ContextTooLong),
        (429, "rate_limit_error", "slow down", Overloaded),
        (500, "api_error", "Internal server error", Overloaded),
        (529, "overloaded_error", "Overloaded", Overloaded),
    ],
)
def test_every_error_of_the_api_is_a_failure_of_its_kind(
    talk: Talk, way: str, status: int, code: str, message: str, failure: type[ProviderFailure]
) -> None:
    talk.add("user", "Hi")

    with pytest.raises(failure, match=message[:20]) as caught:
        getattr(talk, way)(error_reply(status, message, code=code, wire="anthropic", request_id="req_1"))
    assert type(caught.value) is failure
    assert (caught.value.status, caught.value.request_id) == (status, "req_1")
    assert caught.value.provider_message == message
    assert caught.value.key_origin == "config['api_key']" and caught.value.next_step


def test_the_time_to_wait_is_passed_on(talk: Talk) -> None:
    with pytest.raises(Overloaded) as caught:
        talk.add("user", "Hi").call(
            error_reply(429, code="rate_limit_error", wire="anthropic", retry_after=12.0)
        )
    assert caught.value.retry_after == 12.0 and caught.value.retryable


def error_event(kind: str, message: str) -> bytes:
    error = {"type": kind, "message": message}
    return sse_event({"type": "error", "error": error, "request_id": "req_9"}, "error")


@pytest.mark.parametrize(
    ("kind", "message", "failure"),
    [
        ("overloaded_error", "Overloaded", Overloaded),
        ("api_error", "Internal server error", Overloaded),
        ("rate_limit_error", "slow down", Overloaded),
        ("timeout_error", "too slow", Overloaded),
        ("authentication_error", "the key sk-ant-secret was revoked", KeyRefused),
        ("permission_error", "not yours", KeyRefused),
        ("billing_error", "pay first", LimitReached),
        ("request_too_large", "too large", ContextTooLong),
        ("invalid_request_error", "prompt is too long", ContextTooLong),
        ("invalid_request_error", "no", RequestRefused),
        ("something_new", "hm", RequestRefused),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_a_failure_with_what_was_said(
    talk: Talk, kind: str, message: str, failure: type[ProviderFailure]
) -> None:
    middle = anthropic_reply("Hello there").stream or b""
    told = middle[: middle.index(b"event: content_block_stop")]

    with pytest.raises(failure) as caught:
        talk.add("user", "Hi").stream(ServerReply(stream=told + error_event(kind, message)))
    assert type(caught.value) is failure and caught.value.request_id == "req_9"
    assert kind in str(caught.value) and "sk-ant-secret" not in str(caught.value)
    assert caught.value.partial is not None
    [message_kept] = caught.value.partial["messages"]
    assert message_kept["content"] == "Hello there"
    assert "ending" not in message_kept["metadata"]


@pytest.mark.parametrize(
    "body", [{"type": "error", "error": {"type": "api_error", "message": "hm"}}, {"error": "hm"}]
)
def test_an_error_under_a_good_status_is_still_an_error(talk: Talk, body: dict[str, Any]) -> None:
    with pytest.raises(ProviderFailure, match="hm"):
        talk.add("user", "Hi").call(json_reply(body))
    with pytest.raises(ProviderFailure, match="hm"):
        talk.stream(ServerReply(stream=sse_event(body)))


@pytest.mark.parametrize("body", [{}, {"content": None}, {"content": "Hello"}, {"completion": "Hello"}])
def test_an_answer_of_another_form_is_malformed(talk: Talk, body: dict[str, Any]) -> None:
    with pytest.raises(StreamMalformed):
        talk.add("user", "Hi").call(json_reply(body))


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "odd_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": [], "delta": {}},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "content_block_stop", "index": 7},
        {"type": "message_start"},
        {"type": "message_delta", "delta": "x"},
    ],
)
def test_an_event_that_makes_no_sense_is_malformed(talk: Talk, event: dict[str, Any]) -> None:
    start = sse_event({"type": "message_start", "message": {"content": []}})

    with pytest.raises(StreamMalformed):
        talk.add("user", "Hi").stream(ServerReply(stream=start + sse_event(event)))


@pytest.mark.parametrize("data", ["[1]", "7", "null", "{", '"text"'])
def test_an_event_that_is_no_object_is_malformed(talk: Talk, data: str) -> None:
    start = sse_event({"type": "message_start", "message": {"content": []}})

    with pytest.raises(StreamMalformed):
        talk.add("user", "Hi").stream(ServerReply(stream=start + sse_event(data)))


def test_a_web_page_is_not_the_provider(talk: Talk) -> None:
    with pytest.raises(NotTheProvider):
        talk.add("user", "Hi").stream(ServerReply(body=b"<html>Log in</html>", content_type="text/html"))


def test_a_cut_stream_keeps_what_had_arrived(talk: Talk) -> None:
    reply = anthropic_reply(
        "Hello there", reasoning="A greeting", tool_calls=[ToolCall("write", {"text": "x" * 50})]
    )
    middle = (reply.stream or b"").index(b'"partial_json":"xxx')

    with pytest.raises(StreamCutOff) as caught:
        talk.add("user", "Hi").stream(reply.cut(middle))
    assert caught.value.partial is not None
    [message] = caught.value.partial["messages"]
    assert message["content"] == "Hello there"
    assert message["metadata"]["reasoning"] == "A greeting"
    assert "tool_calls" not in message["metadata"]
    [cut] = message["metadata"]["incomplete_tool_calls"]
    assert cut["function"]["name"] == "write" and cut["function"]["arguments"].startswith('{"text":"xxx')
    native = caught.value.partial["session"].metadata["native_messages"]
    assert [block["type"] for block in native[-1]["content"]] == ["thinking", "text"]


def test_thinking_that_was_cut_off_is_read_but_not_sent_back(talk: Talk) -> None:
    reply = anthropic_reply("Hello", reasoning="A greeting")
    with pytest.raises(StreamCutOff) as caught:
        talk.add("user", "Hi").stream(reply.cut((reply.stream or b"").index(b"signature_delta")))
    assert caught.value.partial is not None
    talk.session = caught.value.partial["session"]

    assert talk.last["metadata"]["reasoning"] == "A greeting"
    assert talk.native[-1]["content"] == []
    talk.add("user", "Go on").call(anthropic_reply("Hello"))
    assert len(talk.sent["messages"]) == 1
