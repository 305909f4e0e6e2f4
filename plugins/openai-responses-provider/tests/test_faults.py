"""Whatever happens on the way: the truth about how it ended, and what had come is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_provider_kit import ApiKey, Exchange, ProviderFailure, SseDecoder, StreamCutOff
from agent_testing import FaultTests, ToolCall, error_reply, responses_reply, sse_event
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_testing import ServerReply, Talk
    from openai_responses_provider.reply import ResponsesReply

ANSWER = responses_reply(
    "Grüße, 世界.",
    reasoning="Ich überlege …",
    tool_calls=[ToolCall("brew", {"minutes": 3}), ToolCall("draw", input="☕")],
)


class TestFaults(FaultTests):
    provider = OpenAIResponsesProvider
    config: ClassVar[Mapping[str, Any]] = {"model": "scripted-model", "api_key": "sk-responses-secret"}
    path = "/v1"
    answers: ClassVar[Mapping[str, ServerReply]] = {
        "text": responses_reply("One two three"),
        "reasoning and calls": responses_reply(
            "Grüße, 世界.",
            reasoning="Ich überlege …",
            tool_calls=[ToolCall("brew", {"minutes": 3}), ToolCall("draw", input="☕")],
        ),
        "a refusal": responses_reply(refusal="I would rather not"),
        "a limit": responses_reply("Too lo", status="incomplete", incomplete_reason="max_output_tokens"),
        "built-in tools": responses_reply(
            "Found.",
            items=[{"id": "ws_1", "type": "web_search_call", "status": "completed"}],
            annotations=[{"type": "url_citation", "url": "https://tea.example"}],
            numbered=False,
        ),
    }
    pings: ClassVar[Mapping[str, bytes | Callable[[int], bytes]]] = {
        "keepalive": lambda number: sse_event({"type": "keepalive", "sequence_number": number}, "keepalive"),
        "in progress": lambda number: sse_event(
            {"type": "response.in_progress", "sequence_number": number, "response": {"status": "in_progress"}}
        ),
        "a tool that still searches": lambda number: sse_event(
            {"type": "response.web_search_call.searching", "item_id": "w", "sequence_number": number}
        ),
        "waiting and working by turns": lambda number: sse_event(
            {
                "type": ("response.queued", "response.in_progress")[number % 2],
                "response": {"status": ("queued", "in_progress")[number % 2]},
            }
        ),
        "tools that search and search": lambda number: sse_event(
            {"type": "response.web_search_call.searching", "item_id": f"w{number}"}
        ),
        "one more item with nothing in it": lambda number: sse_event(
            {
                "type": "response.output_item.done",
                "output_index": number,
                "item": {"id": f"i{number}", "type": "reasoning", "summary": []},
            }
        ),
        "one more call of nothing": lambda number: sse_event(
            {
                "type": "response.output_item.added",
                "output_index": number,
                "item": {"id": f"i{number}", "type": "function_call", "name": "brew", "arguments": ""},
            }
        ),
        "an empty delta": sse_event(
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": ""}
        ),
    }


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
