"""Whatever happens on the way: the truth about how it ended, and what had come is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_provider_kit import ApiKey, Exchange, ProviderFailure, SseDecoder, StreamCutOff, StreamMalformed
from agent_provider_kit.testing import FAULTS, ToolCall, error_reply, responses_reply
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from conftest import Talk

    from agent_provider_kit.testing import Fault
    from openai_responses_provider.reply import ResponsesReply

ANSWER = responses_reply(
    "Grüße, 世界.",
    reasoning="Ich überlege …",
    tool_calls=[ToolCall("brew", {"minutes": 3}), ToolCall("draw", input="☕")],
)
STREAMS = {
    "text": responses_reply("One two three"),
    "reasoning and calls": ANSWER,
    "a refusal": responses_reply(refusal="I would rather not"),
    "a limit": responses_reply("Too lo", status="incomplete", incomplete_reason="max_output_tokens"),
    "built-in tools": responses_reply(
        "Found.",
        items=[{"id": "ws_1", "type": "web_search_call", "status": "completed"}],
        annotations=[{"type": "url_citation", "url": "https://tea.example"}],
        numbered=False,
    ),
}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_fault_becomes_the_failure_it_is(talk: Talk, fault: Fault, streamed: bool) -> None:
    if fault.streams_only and not streamed:
        pytest.skip("only streams can have it")
    talk.add("user", "Hi")
    ask = talk.stream if streamed else talk.call

    with pytest.raises(fault.failure) as raised:
        ask(fault.apply(ANSWER))
    assert "sk-responses-secret" not in str(raised.value)
    assert raised.value.key_origin == "config['api_key']"


def test_an_error_tells_status_message_request_and_next_step(talk: Talk) -> None:
    with pytest.raises(ProviderFailure, match="no such model") as raised:
        talk.add("user", "Hi").call(error_reply(404, "no such model", code="model_not_found"))

    assert raised.value.status == 404
    assert raised.value.next_step in str(raised.value)


def play(data: bytes) -> tuple[ResponsesReply, Exception | None]:
    """Let a reply take a stream that ends after *data*."""
    provider = OpenAIResponsesProvider()
    reply = provider.new_reply(
        {}, Exchange("openai_responses", "stream_api", "http://x", ApiKey("", "nowhere"))
    )
    decoder = SseDecoder()
    try:
        for event in (*decoder.feed(data), *decoder.finish()):
            if (decoded := provider.decode(event)) is not None:
                reply.add(decoded)
    except (ValueError, ProviderFailure) as error:
        return reply, error
    return reply, None


def whole(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in item.items() if k != "_metadata"}
        for item in items
        if item["type"].endswith("_call")
    ]


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_stream_that_is_cut_at_any_byte_is_no_success_and_has_no_half_calls(stream: Any) -> None:
    data = stream.payload(streamed=True)[0]
    complete, error = play(data)
    assert error is None
    assert complete.ended()
    calls, messages = (
        whole(complete.items()),
        OpenAIResponsesProvider().from_native_messages(complete.items()),
    )

    for cut in range(len(data) - 2):  # the blank line at the end may be missing
        reply, _error = play(data[:cut])
        items = reply.items()
        assert not reply.ended()
        assert all(call in calls for call in whole(items))
        [told] = OpenAIResponsesProvider().from_native_messages(items) or [{"content": ""}]
        assert messages[0]["content"].startswith(told["content"])
        assert "ending" not in told.get("metadata", {})


def test_a_stream_that_is_cut_at_any_byte_on_the_way_is_an_error_with_the_text_kept(talk: Talk) -> None:
    reply = responses_reply("One two")
    size = len(reply.payload(streamed=True)[0])
    talk.add("user", "Count")

    for at in range(0, size - 2, 7):
        with pytest.raises((StreamCutOff, StreamMalformed)) as raised:
            talk.stream(reply.cut(at) if at % 2 else reply.end(at))
        partial = raised.value.partial
        text = partial["messages"][0]["content"] if partial else ""
        assert "One two".startswith(text)


def test_what_was_cut_off_can_be_continued(talk: Talk) -> None:
    talk.add("user", "Count")
    with pytest.raises(StreamCutOff) as raised:
        talk.stream(ANSWER.without_end())
    assert raised.value.partial is not None
    talk.session = raised.value.partial["session"]
    assert talk.about["interrupted"] == "error"

    talk.add("user", "Go on").call(responses_reply("Three"))

    kinds = [item["type"] for item in talk.sent["input"]]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 1
    assert kinds.count("custom_tool_call") == kinds.count("custom_tool_call_output") == 1
    assert talk.last["content"] == "Three"


def test_a_message_that_was_cut_off_says_so() -> None:
    stream = responses_reply("One two three").payload(streamed=True)[0]
    reply, _error = play(stream[: stream.index(b"response.output_text.done")])

    [item] = reply.items()
    assert item["status"] == "incomplete"
    assert item["content"][0]["text"] == "One two three"
