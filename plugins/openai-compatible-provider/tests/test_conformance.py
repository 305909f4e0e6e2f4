from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_testing import ScriptedServer, ToolCall, chat_models, chat_reply
from agent_testing.conformance import Exchange, ProviderConformance
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_testing import ReceivedRequest, ServerReply

ANSWER = chat_reply(
    "One, two, three.",
    reasoning="They want three numbers.",
    tool_calls=[ToolCall("count", {"to": 3}, id="call_1")],
    extra={"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2VjcmV0"}]},
)


def answer(request: ReceivedRequest) -> ServerReply:
    return chat_models("scripted-model") if request.method == "GET" else ANSWER


class TestOpenAICompatibleProvider(ProviderConformance):
    plugin = OpenAICompatibleProvider

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        with ScriptedServer(otherwise=answer) as server:
            config = {"base_url": server.url, "api_key": "k" * 10, "model": "scripted-model"}
            yield Exchange(config={**config, "discover_models": True})
