from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_testing import ScriptedServer, ToolCall, responses_reply
from agent_testing.conformance import Exchange, ProviderConformance
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "three"},
}


class TestOpenAIResponsesProvider(ProviderConformance):
    plugin = OpenAIResponsesProvider

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        answer = responses_reply(
            "One, two, three.",
            reasoning="They want three numbers.",
            items=[SEARCH],
            annotations=[{"type": "url_citation", "url": "https://three.example"}],
            tool_calls=[ToolCall("count", {"to": 3}), ToolCall("draw", input="1 2 3")],
        )
        with ScriptedServer(otherwise=answer) as server:
            yield Exchange(config={"base_url": server.url, "api_key": "k" * 10, "model": "gpt-test"})
