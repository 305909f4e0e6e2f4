"""Data that is nested too deeply has a clear end, wherever it comes from: never an exhausted stack."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import Message, ProviderError
from agent_core.frozen import DEEPEST
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, Reason
from agent_testing import ScriptedServer, ServerReply, json_reply

DEPTHS = (201, 600, 900, 2_000, 100_000)
WORDS = "nested more than 200 levels deep"


def brackets(depth: int) -> str:
    return "[" * depth + "]" * depth


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def asking(server: ScriptedServer, provider: str = "openai_compatible", **options: Any) -> Agent[None, str]:
    config = {"base_url": f"{server.url}/v1", "api_key": "k"}
    sections = {"retry": {"max_retries": 0}}
    return Agent(f"{provider}:m", config=config, sections=sections, **options)


def ended(agent: Agent[None, str]) -> Reason:
    stream = agent.stream("Hello.")
    list(stream)
    assert stream.result is not None
    return stream.result.reason


WHOLE = {
    "openai_compatible": '{"id": "x", "deep": %s, "choices": [{"message": {"content": "hi"}}]}',
    "anthropic": '{"id": "x", "deep": %s, "content": [{"type": "text", "text": "hi"}]}',
    "gemini": '{"deep": %s, "candidates": [{"content": {"parts": [{"text": "hi"}]}}]}',
    "openai_responses": '{"id": "x", "deep": %s, "output": []}',
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("provider", WHOLE)
def test_a_whole_reply_of_a_provider(provider: str, depth: int) -> None:
    body = (WHOLE[provider] % brackets(depth)).encode()
    reply = ServerReply(body=body, content_type="application/json")
    with ScriptedServer(reply) as server, pytest.raises(ProviderError, match=WORDS):
        asking(server, provider).run("Hello.")


EVENTS = {
    "openai_compatible": 'data: {"choices": [{"delta": {"deep": %s, "role": "assistant"}}]}\n\n',
    "anthropic": 'event: message_start\ndata: {"type": "message_start", "message": {"deep": %s}}\n\n',
    "gemini": 'data: {"candidates": [{"content": {"parts": [{"deep": %s}]}}]}\n\n',
    "openai_responses": 'event: response.created\ndata: {"type": "response.created", "response": %s}\n\n',
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("provider", EVENTS)
def test_an_event_of_a_stream(provider: str, depth: int) -> None:
    stream = (EVENTS[provider] % brackets(depth)).encode()
    with ScriptedServer(ServerReply(stream=stream, content_type="text/event-stream")) as server:
        code, detail = ended(asking(server, provider))

    assert code == "error"
    assert WORDS in detail


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_field_of_a_piece_that_nobody_reads(depth: int) -> None:
    """What is skipped costs nothing; what is too deep even for that has the same end."""
    event = f'{{"choices": [{{"delta": {{"content": "hi"}}}}], "deep": {brackets(depth)}}}'
    stream = f"data: {event}\n\ndata: [DONE]\n\n"
    with ScriptedServer(ServerReply(stream=stream.encode(), content_type="text/event-stream")) as server:
        code, detail = ended(asking(server))

    assert code == "natural_end" or WORDS in detail


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_arguments_of_a_call(depth: int) -> None:
    called = {"name": "look", "arguments": f'{{"place": {brackets(depth)}}}'}
    message = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": called}]}
    replies = [
        {"choices": [{"message": message, "finish_reason": "tool_calls"}]},
        {"choices": [{"message": {"content": "Sorry."}, "finish_reason": "stop"}]},
    ]

    def look(place: object) -> str:
        raise AssertionError("it must not be called")

    with ScriptedServer(*map(json_reply, replies)) as server:
        result = asking(server, tools=[look]).run("Hello.")

    assert "nested too deeply" in result.messages[2]["content"]
    assert result.output == "Sorry."


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["function", "plugin"])
def test_the_result_of_a_tool(kind: str, depth: int) -> None:
    class Plugin:
        name, version = "deep", "1"

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"type": "function", "function": {"name": "deep", "parameters": {"type": "object"}}}]

        def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return {"success": True, "result": nested(depth)}

    def deep() -> list[Any]:
        return nested(depth)

    tool = deep if kind == "function" else Plugin()
    agent = Agent(ScriptedProvider([Reply(tool_calls=[ToolCall("deep")]), "Done."]), tools=[tool])

    result = agent.run("Hello.")

    said = result.messages[2]["content"]
    assert "Recursion" not in said
    assert said.startswith(("[", "{")) or "nested too deeply" in said
    assert result.output == "Done."


@pytest.mark.parametrize("depth", [one for one in DEPTHS if one > DEEPEST])
def test_a_message_of_a_caller(depth: int) -> None:
    with pytest.raises(ValueError, match="deep"):
        Message("user", "hi", {"data": nested(depth)})
