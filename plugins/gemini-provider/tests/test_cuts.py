"""Every byte position of streams as the end of what arrives.

Wherever a stream ends, the truth is told about how: a success only if the provider said so, and never a
tool call whose arguments were not complete. One stream is cut on a real connection; the others, for the
sake of time, on a transport without one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentCore
from agent_provider_kit import ProviderFailure, StreamCutOff, StreamMalformed
from agent_provider_kit.testing import ToolCall, gemini_reply
from gemini_provider import GeminiProvider

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from agent_core import Session
    from agent_provider_kit import HttpRequest, Transport
    from agent_provider_kit.testing import ScriptedServer, ServerReply

Dicts = list[dict[str, Any]]

REPLIES = {
    "talking": gemini_reply("Grüße, tea!", reasoning="They say hello."),
    "calling": gemini_reply(
        "Let me look.",
        tool_calls=[ToolCall("look_up", {"word": "tea"}, id="x"), ToolCall("now", {})],
        signature="c2ln",
    ),
    "running": gemini_reply(
        "It is 42.",
        parts=[
            {"executableCode": {"language": "PYTHON", "code": "print(42)"}, "thoughtSignature": "c2ln"},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
        ],
        signature="bGFzdA==",
    ),
    "grounded": gemini_reply(
        "Tea is a drink.",
        extra={"groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://t.example"}}]}},
    ),
    "filtered": gemini_reply("I would", finish_reason="SAFETY", usage=None),
}
SHORT = gemini_reply("Hi, ü!", tool_calls=[ToolCall("now", {})], usage=None)
EACH = pytest.mark.parametrize("reply", [pytest.param(reply, id=name) for name, reply in REPLIES.items()])


class Canned:
    """A transport, and the response that it always gives: a stream that ends at some byte."""

    status = 200
    headers: Mapping[str, str] = {"Content-Type": "text/event-stream"}

    def __init__(self) -> None:
        self.arriving = b""

    async def send(self, request: HttpRequest) -> Canned:
        return self

    async def read(self) -> bytes:
        return self.arriving

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.arriving

    def close(self) -> None:
        pass


class Cut:
    """One core for all positions."""

    def __init__(self, transport: Transport | None = None, **config: Any) -> None:
        self.core = AgentCore()
        self.core.register_provider(GeminiProvider(lambda: transport) if transport else GeminiProvider())
        self.config = {"provider": "gemini", "model": "m", "api_key": "k" * 9, **config}
        self.session: Session = self.core.add_message(self.core.create_session("s"), "user", "Hi")

    async def ask(self) -> tuple[ProviderFailure | None, Dicts, str]:
        """Return what was raised, the messages that came of it, and the text that was shown."""
        shown: list[str] = []
        try:
            async for event in self.core.send_request_stream_async(self.session, self.config):
                if event["type"] == "final":
                    return None, event["messages"], "".join(shown)
                shown.append(event["message"]["content"])
        except ProviderFailure as failure:
            return failure, (failure.partial or {"messages": []})["messages"], "".join(shown)
        raise AssertionError("no end and no failure")


@EACH
def test_a_stream_that_ends_anywhere_tells_the_truth(reply: ServerReply) -> None:
    transport = Canned()
    cut = Cut(transport)
    stream = reply.stream or b""

    async def everywhere() -> None:
        transport.arriving = stream
        _, [whole], _ = await cut.ask()
        for position in range(len(stream)):
            transport.arriving = stream[:position]
            failure, messages, shown = await cut.ask()
            check_failure(failure, position, stream)
            check(whole, messages, shown, failed=failure is not None)

    asyncio.run(everywhere())


def test_a_connection_that_ends_anywhere_tells_the_truth(scripted_server: ScriptedServer) -> None:
    cut = Cut(base_url=scripted_server.url)
    stream = SHORT.stream or b""

    async def everywhere() -> None:
        scripted_server.play(SHORT)
        _, [whole], _ = await cut.ask()
        for position in range(len(stream)):
            scripted_server.play(SHORT.end(position) if position % 2 else SHORT.cut(position))
            failure, messages, shown = await cut.ask()
            check_failure(failure, position, stream)
            check(whole, messages, shown, failed=failure is not None)

    asyncio.run(everywhere())


def check_failure(failure: ProviderFailure | None, position: int, stream: bytes) -> None:
    """An end before the last event is whole is a failure; the blank line behind it may be missing."""
    if position < len(stream.rstrip()):
        assert isinstance(failure, (StreamCutOff, StreamMalformed)), position


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
@EACH
def test_the_borders_between_reads_do_not_matter(
    scripted_server: ScriptedServer, reply: ServerReply, size: int
) -> None:
    cut = Cut(base_url=scripted_server.url)
    scripted_server.play(reply, reply.in_pieces(size))

    at_once, in_pieces = asyncio.run(cut.ask()), asyncio.run(cut.ask())

    assert at_once[0] is None and in_pieces == at_once
