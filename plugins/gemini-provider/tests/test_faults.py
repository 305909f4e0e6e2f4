"""Whatever goes wrong between the provider and its server: the tests that all providers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from agent_testing import FaultTests, ToolCall, gemini_reply, sse_event
from gemini_provider import GeminiProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_testing import ServerReply


class TestFaults(FaultTests):
    provider = GeminiProvider
    config: ClassVar[Mapping[str, Any]] = {"model": "gemini-3-test", "api_key": "AIza-secret"}
    answers: ClassVar[Mapping[str, ServerReply]] = {
        "text": gemini_reply("Grüße, tea is a drink!", reasoning="They say hello."),
        "calls": gemini_reply(
            "Let me look.",
            tool_calls=[ToolCall("look_up", {"word": "tea"}, id="x"), ToolCall("now", {})],
            signature="c2ln",
        ),
        "code": gemini_reply(
            "It is 42.",
            parts=[
                {"executableCode": {"language": "PYTHON", "code": "print(42)"}, "thoughtSignature": "c2ln"},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
            ],
            signature="bGFzdA==",
        ),
        "a search": gemini_reply(
            "Tea is a drink.",
            extra={"groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://t.example"}}]}},
        ),
        "filtered": gemini_reply("I would", finish_reason="SAFETY", usage=None),
    }
    pings: ClassVar[Mapping[str, bytes | Callable[[int], bytes]]] = {
        "no candidate": lambda number: sse_event({"responseId": f"r{number}"}),
        "an empty part": sse_event({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}}]}),
        "no parts": sse_event({"candidates": [{"content": {"role": "model"}, "index": 0}]}),
        "other counts each time": lambda number: sse_event(
            {"candidates": [], "usageMetadata": {"promptTokenCount": 3, "thoughtsTokenCount": number % 2}}
        ),
        "another answer than the one asked for": lambda number: sse_event(
            {"candidates": [{"index": 1 + number, "content": {"parts": [{"text": "more"}], "role": "model"}}]}
        ),
        "a call of nothing": sse_event(
            {"candidates": [{"content": {"parts": [{"functionCall": {}}], "role": "model"}}]}
        ),
        "a field that nobody knows": lambda number: sse_event(
            {"candidates": [{"content": {"parts": [], "role": "model"}, "beat": number}], "beat": number}
        ),
        "the same counts again": sse_event(
            {"candidates": [{"content": {"parts": []}}], "usageMetadata": {"promptTokenCount": 3}}
        ),
    }
