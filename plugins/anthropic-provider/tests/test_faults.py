"""Whatever goes wrong between the provider and its server: the tests that all providers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from agent_testing import FaultTests, ToolCall, anthropic_reply, sse_event
from anthropic_provider import AnthropicProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_testing import ServerReply


class TestFaults(FaultTests):
    provider = AnthropicProvider
    config: ClassVar[Mapping[str, Any]] = {"model": "claude-test", "api_key": "sk-ant-secret"}
    answers: ClassVar[Mapping[str, ServerReply]] = {
        "text": anthropic_reply("Tea 🍵 is a drink, not a meal."),
        "thinking and calls": anthropic_reply(
            "Grüße, tea!",
            reasoning="They say hello.",
            redacted="c2VjcmV0",
            tool_calls=[ToolCall("look_up", {"word": "tea"}), ToolCall("now", {})],
        ),
        "a search": anthropic_reply(
            "A drink.",
            blocks=[
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": "web_search",
                    "input": {"query": "tea"},
                },
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [{"url": "https://t.example"}],
                },
            ],
            stop_reason="pause_turn",
        ),
        "deep arguments": anthropic_reply(
            "Let me see.",
            tool_calls=[
                ToolCall("look_up", {"word": "thé"}),
                ToolCall("look_up", {"word": "", "deep": {"a": [1, 2]}}),
            ],
        ),
        "a limit": anthropic_reply("Tea is", reasoning="Hm.", stop_reason="max_tokens"),
    }
    pings: ClassVar[Mapping[str, bytes | Callable[[int], bytes]]] = {
        "ping": sse_event({"type": "ping"}, "ping"),
        "an unknown event": lambda number: sse_event({"type": "heartbeat", "number": number}, "heartbeat"),
        "an empty delta": sse_event(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}}
        ),
        "the same block again": sse_event(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        ),
        "one more empty block": lambda number: sse_event(
            {"type": "content_block_start", "index": number, "content_block": {"type": "text", "text": ""}}
        ),
        "one more call of nothing": lambda number: sse_event(
            {
                "type": "content_block_start",
                "index": number,
                "content_block": {"type": "tool_use", "id": f"c{number}", "name": "brew", "input": {}},
            }
        ),
        "an unknown delta": lambda number: sse_event(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "beat_delta", "beat": number + 1}}
        ),
        "other counts each time": lambda number: sse_event(
            {"type": "message_delta", "delta": {}, "usage": {"output_tokens": number % 2}}
        ),
        "the beginning again": lambda number: sse_event({"type": "message_start", "message": {}}),
        "the same counts again": sse_event({"type": "message_delta", "delta": {}, "usage": {}}),
    }
