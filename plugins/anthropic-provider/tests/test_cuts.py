"""Every byte position of five streams as the end of what arrives.

Wherever a stream ends, the truth is told about how: a success only if the provider said so, and never a
tool call whose arguments were not complete.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_core import AgentCore
from agent_provider_kit import ProviderFailure, StreamCutOff, StreamMalformed
from agent_provider_kit.testing import ScriptedServer, ServerReply, ToolCall, anthropic_reply
from anthropic_provider import AnthropicProvider

THINKING = anthropic_reply(
    "Grüße, tea!",
    reasoning="They say hello.",
    redacted="c2VjcmV0",
    tool_calls=[ToolCall("look_up", {"word": "tea"}), ToolCall("now", {})],
)
SEARCHING = anthropic_reply(
    "A drink.",
    blocks=[
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tea"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"url": "https://t.example"}],
        },
    ],
    stop_reason="pause_turn",
)
SAYING = anthropic_reply("Tea 🍵 is a drink, not a meal.")
CALLING = anthropic_reply(
    "Let me see.",
    tool_calls=[
        ToolCall("look_up", {"word": "thé"}),
        ToolCall("look_up", {"word": "", "deep": {"a": [1, 2]}}),
    ],
)
STOPPED = anthropic_reply("Tea is", reasoning="Hm.", stop_reason="max_tokens")
STREAMS = {
    "thinking": THINKING,
    "searching": SEARCHING,
    "saying": SAYING,
    "calling": CALLING,
    "stopped": STOPPED,
}
Dicts = list[dict[str, Any]]


def answering(reply: ServerReply) -> ScriptedServer:
    """A server that ends its reply after as many bytes as it is told by the question."""
    return ScriptedServer(otherwise=lambda request: reply.end(int(request.json["messages"][0]["content"])))


class Asking:
    """Asks one server for all positions."""

    def __init__(self, server: ScriptedServer) -> None:
        self.core = AgentCore()
        self.core.register_provider(AnthropicProvider())
        self.config = {"provider": "anthropic", "model": "m", "base_url": server.url, "api_key": "k" * 9}

    async def ask(self, position: int) -> tuple[ProviderFailure | None, Dicts, str]:
        """Return what was raised, the messages that came of it, and the text that was shown."""
        session = self.core.add_message(self.core.create_session("s"), "user", str(position))
        shown: list[str] = []
        try:
            async for event in self.core.send_request_stream_async(session, self.config):
                if event["type"] == "final":
                    return None, event["messages"], "".join(shown)
                shown.append(event["message"]["content"])
        except ProviderFailure as failure:
            return failure, (failure.partial or {"messages": []})["messages"], "".join(shown)
        raise AssertionError("no end and no failure")

    async def ask_all(self, positions: range) -> list[tuple[ProviderFailure | None, Dicts, str]]:
        """Ask for many positions, some at a time."""
        found = []
        for start in range(0, len(positions), 50):
            found += await asyncio.gather(*map(self.ask, positions[start : start + 50]))
        return found


@pytest.mark.parametrize("reply", STREAMS.values(), ids=STREAMS)
def test_a_stream_cut_anywhere_tells_the_truth(reply: ServerReply) -> None:
    stream = reply.stream or b""
    told_at = stream.index(b"event: message_stop") - 2

    with answering(reply) as server:
        found = asyncio.run(Asking(server).ask_all(range(len(stream) + 1)))

    [whole] = found[-1][1]
    for position, (failure, messages, shown) in enumerate(found):
        if position < told_at:
            assert isinstance(failure, (StreamCutOff, StreamMalformed)), position
        check(whole, messages, shown, failed=failure is not None)
    assert found[-1][0] is None and whole["content"] and "ending" in whole["metadata"]


def check(whole: dict[str, Any], messages: Dicts, shown: str, *, failed: bool) -> None:
    """What is kept is a beginning of the whole: text that was shown, calls that were complete."""
    for message in messages:
        about = message["metadata"]
        assert whole["content"].startswith(message["content"])
        assert message["content"] == shown
        calls = about.get("tool_calls") or []
        assert calls == (whole["metadata"].get("tool_calls") or [])[: len(calls)]
        assert ("interrupted" in about) is failed
        if not failed:
            assert message == whole
    assert messages or not shown


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("reply", STREAMS.values(), ids=STREAMS)
def test_the_borders_between_reads_do_not_matter(reply: ServerReply, size: int) -> None:
    everything = len(reply.stream or b"")
    with answering(reply) as server:
        _, whole, text = asyncio.run(Asking(server).ask(everything))
    with answering(reply.in_pieces(size)) as server:
        failure, messages, shown = asyncio.run(Asking(server).ask(everything))

    assert failure is None and messages == whole and shown == text
