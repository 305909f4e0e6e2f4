from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_testing import ScriptedServer, ToolCall, anthropic_reply
from agent_testing.conformance import Exchange, ProviderConformance
from anthropic_provider import AnthropicProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

SEARCH: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "three"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "https://three.example", "encrypted_content": "x"}],
    },
]


class TestAnthropicProvider(ProviderConformance):
    plugin = AnthropicProvider

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        answer = anthropic_reply(
            "One, two, three.",
            reasoning="They want three numbers.",
            redacted="c2VjcmV0",
            blocks=SEARCH,
            tool_calls=[ToolCall("count", {"to": 3}, id="toolu_1")],
        )
        with ScriptedServer(otherwise=answer) as server:
            yield Exchange(config={"base_url": server.url, "api_key": "k" * 10, "model": "claude-test"})
