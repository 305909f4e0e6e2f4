"""Every byte position of streams as the end of what arrives.

Wherever a stream ends, the truth is told about how: a success only if the server said how the answer
ends, and never a tool call whose arguments were not complete. Two streams are cut by a real server, and
five by a transport that stands right behind the provider, which is quicker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentCore
from agent_provider_kit import HttpRequest, ProviderFailure, StreamCutOff
from agent_provider_kit.testing import (
    ScriptedServer,
    ServerReply,
    ToolCall,
    chat_chunk,
    chat_reply,
    sse_event,
    sse_reply,
)
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

CALLING = chat_reply(
    "Grüße 🍵",
    reasoning="They say hello.",
    tool_calls=[ToolCall("look_up", {"word": "tea"}), ToolCall("now", {})],
)
TALKING = chat_reply(
    "Tea is a drink.", extra={"reasoning_details": [{"data": "xyz"}]}, finish_reason="length"
)
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
REFUSING = chat_reply(refusal="I will not, for reasons.", usage=None)
STREAMS = {"calling": CALLING, "talking": TALKING, "local": LOCAL, "routed": ROUTED, "refusing": REFUSING}
Dicts = list[dict[str, Any]]
Found = tuple[ProviderFailure | None, Dicts, str]


class Cutting:
    """A transport and its reply in one, whose body stops after so many bytes."""

    status: int = 200

    def __init__(self, stream: bytes) -> None:
        self.headers: Mapping[str, str] = {"Content-Type": "text/event-stream"}
        self._stream = stream

    async def send(self, request: HttpRequest) -> Cutting:
        position = int((request.body or b"").partition(b'"content":"')[2].partition(b'"')[0])
        return Cutting(self._stream[:position])

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._stream

    async def read(self) -> bytes:
        return self._stream

    def close(self) -> None:
        pass


class Asking:
    """Asks for many positions, each of which is the text of its question."""

    def __init__(self, provider: OpenAICompatibleProvider, base_url: str = "http://cut.invalid") -> None:
        self.core = AgentCore()
        self.core.register_provider(provider)
        self.config = {"provider": "openai_compatible", "model": "m", "base_url": base_url, "api_key": ""}

    async def ask(self, position: int) -> Found:
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

    async def ask_all(self, positions: range) -> list[Found]:
        """Ask for many positions, some at a time."""
        found = []
        for start in range(0, len(positions), 50):
            found += await asyncio.gather(*map(self.ask, positions[start : start + 50]))
        return found


def stopping(reply: ServerReply, how: str) -> ScriptedServer:
    """A server that stops its reply after as many bytes as the question says."""
    stop: Callable[[int], ServerReply] = getattr(reply, how)
    return ScriptedServer(otherwise=lambda request: stop(int(request.json["messages"][0]["content"])))


@pytest.mark.parametrize("reply", STREAMS.values(), ids=STREAMS)
def test_a_stream_that_ends_anywhere_tells_the_truth(reply: ServerReply) -> None:
    stream = reply.stream or b""
    asking = Asking(OpenAICompatibleProvider(lambda: Cutting(stream)))

    check_all(stream, asyncio.run(asking.ask_all(range(len(stream) + 1))))


@pytest.mark.parametrize("reply", [CALLING, TALKING], ids=["calling", "talking"])
def test_a_connection_that_breaks_anywhere_tells_the_truth(reply: ServerReply) -> None:
    stream = reply.stream or b""
    with stopping(reply, "cut") as server:
        asking = Asking(OpenAICompatibleProvider(), server.url)

        check_all(stream, asyncio.run(asking.ask_all(range(len(stream) + 1))))


def check_all(stream: bytes, found: list[Found]) -> None:
    """Only from where the server has said how the answer ends is there a success."""
    told_at = stream.index(b"}", stream.index(b'"finish_reason":"')) + 2
    told_at = stream.index(b"\r" if b"\r" in stream else b"\n", told_at)  # its blank line may be missing
    [whole] = found[-1][1]
    for position, (failure, messages, shown) in enumerate(found):
        assert isinstance(failure, StreamCutOff) is (position < told_at), position
        check(whole, messages, shown, failed=failure is not None)
    assert whole["metadata"]["ending"]


def check(whole: dict[str, Any], messages: Dicts, shown: str, *, failed: bool) -> None:
    """What is kept is a beginning of the whole: text that was shown, calls that were complete."""
    for message in messages:
        about = message["metadata"]
        assert whole["content"].startswith(message["content"])
        assert message["content"] == shown
        calls = about.get("tool_calls") or []
        assert calls == (whole["metadata"].get("tool_calls") or [])[: len(calls)]
        for cut in about.get("incomplete_tool_calls") or []:
            assert cut["id"] not in {call["id"] for call in calls}
        assert ("interrupted" in about) is failed
        if not failed:
            told = {key: value for key, value in about.items() if key != "usage"}
            assert told == {key: value for key, value in whole["metadata"].items() if key != "usage"}
    assert messages or not shown


@pytest.mark.parametrize("how", ["end", "cut"])
def test_a_call_that_is_cut_anywhere_is_an_error(how: str) -> None:
    async def ask(asking: Asking, position: int) -> None:
        session = asking.core.add_message(asking.core.create_session("s"), "user", str(position))
        with pytest.raises(ProviderFailure):
            await asking.core.send_request_async(session, asking.config)

    async def ask_all(asking: Asking) -> None:
        await asyncio.gather(*(ask(asking, position) for position in range(len(CALLING.body))))

    with stopping(CALLING, how) as server:
        asyncio.run(ask_all(Asking(OpenAICompatibleProvider(), server.url)))
