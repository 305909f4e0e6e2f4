from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_testing import ScriptedServer, ToolCall, gemini_reply
from agent_testing.conformance import Exchange, ProviderConformance
from gemini_provider import GeminiProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE: list[dict[str, Any]] = [
    {"executableCode": {"language": "PYTHON", "code": "print(3)", "id": "c1"}, "thoughtSignature": "c2ln"},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "3\n", "id": "c1"}},
]


class TestGeminiProvider(ProviderConformance):
    plugin = GeminiProvider

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        answer = gemini_reply(
            "One, two, three.",
            reasoning="They want three numbers.",
            parts=CODE,
            tool_calls=[ToolCall("count", {"to": 3}, id="call_1"), ToolCall("count", {"to": 4})],
            signature="c2lnbmVk",
        )
        with ScriptedServer(otherwise=answer) as server:
            yield Exchange(config={"base_url": server.url, "api_key": "k" * 10, "model": "gemini-3-test"})
