"""Whatever goes wrong between the provider and its server: the tests that all providers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from agent_testing import FaultTests, ServerReply, ToolCall, chat_chunk, chat_reply, sse_event, sse_reply
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


LOCAL = sse_reply(
    chat_chunk({"role": "assistant", "content": None}),
    chat_chunk({"reasoning": "hm "}),
    chat_chunk({"content": "Sure: "}),
    chat_chunk({"tool_calls": [{"id": "c1", "function": {"name": "now", "arguments": "{}"}}]}),
    chat_chunk({"tool_calls": [{"id": "c2", "function": {"name": "add", "arguments": '{"a": [1, {}]}'}}]}),
    chat_chunk({}, "tool_calls"),
    newline=b"\r\n",
)
ROUTED = ServerReply(
    stream=b"".join(
        b": PROCESSING\n\n" + sse_event({**chat_chunk(delta, finish), "provider": "Acme"})
        for delta, finish in (({"content": "Té "}, None), ({"content": "🍵"}, None), ({}, "stop"))
    )
)


class TestFaults(FaultTests):
    provider = OpenAICompatibleProvider
    config: ClassVar[Mapping[str, Any]] = {"model": "scripted-model", "api_key": "sk-chat-secret"}
    path = "/v1"
    answers: ClassVar[Mapping[str, ServerReply]] = {
        "text": chat_reply("Tea is a drink, not a meal."),
        "calls": chat_reply(
            "Grüße 🍵",
            reasoning="They say hello.",
            tool_calls=[ToolCall("look_up", {"word": "tea"}), ToolCall("now", {})],
        ),
        "a limit": chat_reply(
            "Tea is a drink.", extra={"reasoning_details": [{"data": "xyz"}]}, finish_reason="length"
        ),
        "a local server": LOCAL,
        "a router": ROUTED,
        "a refusal": chat_reply(refusal="I will not, for reasons.", usage=None),
    }
    pings: ClassVar[Mapping[str, bytes | Callable[[int], bytes]]] = {
        "an empty delta": lambda number: sse_event(chat_chunk({}, created=number)),
        "an empty text": sse_event(chat_chunk({"content": ""})),
        "nobody's role": sse_event(chat_chunk({"role": "assistant"})),
        "no choice": lambda number: sse_event({"id": f"c{number}", "choices": []}),
        "the same counts again": sse_event(
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}
        ),
        "other counts each time": lambda number: sse_event(
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": number % 2}}
        ),
        "a field that nobody knows": lambda number: sse_event(chat_chunk({"beat": f"b{number}"})),
        "another answer than the one asked for": lambda number: sse_event(
            {"choices": [{"index": 1 + number, "delta": {"content": "more"}}]}
        ),
        "one more call of nothing": lambda number: sse_event(
            chat_chunk({"tool_calls": [{"index": number, "id": f"c{number}", "function": {"name": "brew"}}]})
        ),
        "an empty piece of a call": sse_event(
            chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]})
        ),
    }
