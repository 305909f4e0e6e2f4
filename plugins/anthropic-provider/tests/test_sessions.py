"""Whole conversations: tools that run, other providers in between, a person who loses patience."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_core import Cancellation, tool
from agent_core.testing import EchoProvider
from agent_testing import ToolCall, anthropic_reply

if TYPE_CHECKING:
    from agent_testing import Talk


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    if word == "coffee":
        raise LookupError("no such word")
    return f"{word}: a drink"


@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_tool_loop_brings_each_result_to_its_call(talk: Talk, way: str) -> None:
    talk.core.register_tool(look_up)
    calls = [ToolCall("look_up", {"word": word}) for word in ("tea", "coffee")]
    getattr(talk.add("user", "Look both up"), way)(anthropic_reply("Let me see.", tool_calls=calls))

    for message in talk.core.execute_tool_calls(talk.last["metadata"]["tool_calls"], talk.config):
        talk.add(
            message["role"],
            message["content"],
            metadata=message["metadata"],
            tool_result=message["tool_result"],
        )
    getattr(talk, way)(anthropic_reply("One of them is a drink."))

    *_, asked, answered = talk.sent["messages"]
    assert [block["id"] for block in asked["content"][1:]] == ["toolu_1", "toolu_2"]
    tea, coffee = answered["content"]
    assert tea == {"type": "tool_result", "tool_use_id": "toolu_1", "content": "tea: a drink"}
    assert coffee["tool_use_id"] == "toolu_2" and coffee["is_error"] and "no such word" in coffee["content"]
    assert talk.provider.validate_native(talk.native) == []


def test_coming_back_from_another_provider_brings_the_thinking_back(talk: Talk) -> None:
    talk.core.register_provider(EchoProvider())
    talk.add("user", "Hi").call(anthropic_reply("Hello", reasoning="A greeting", signature="c2ln"))
    own = talk.native

    talk.add("user", "Echo?")
    talk.session, _messages = talk.core.send_request(talk.session, {"provider": "echo"})
    talk.add("user", "Back?").call(anthropic_reply("Yes"))

    assert talk.native[:2] == own
    assert talk.sent["messages"][1]["content"][0]["signature"] == "c2ln"
    assert [message["role"] for message in talk.sent["messages"]] == ["user", "assistant"] * 2 + ["user"]


def test_another_providers_conversation_is_taken_over(talk: Talk) -> None:
    talk.core.register_provider(EchoProvider())
    talk.add("system", "Be brief.").add("user", "Echo")
    talk.session, _messages = talk.core.send_request(talk.session, {"provider": "echo"})
    talk.add("user", "And you?").call(anthropic_reply("Hello"))

    assert talk.sent["system"] == "Be brief."
    assert [message["role"] for message in talk.sent["messages"]] == ["user", "assistant", "user"]


def test_a_cancelled_answer_keeps_what_was_said_and_hangs_up(talk: Talk) -> None:
    reply = anthropic_reply("Hello there, this is long")
    talk.add("user", "Hi").server.play(reply.stall((reply.stream or b"").index(b"this")))
    cancellation = Cancellation()

    events = []
    for event in talk.core.send_request_stream(
        talk.session, talk.config, request_id="r", cancellation=cancellation
    ):
        events.append(event)
        if event["type"] == "partial" and "there" in event["message"]["content"]:
            cancellation.cancel()

    final = events[-1]
    assert final["type"] == "final" and final.get("interrupted") is True
    [message] = final["messages"]
    assert message["content"] == "Hello there, " and "ending" not in message["metadata"]
    talk.server.wait_until_hung_up()


def test_a_call_that_was_never_answered_does_not_end_the_conversation(talk: Talk) -> None:
    talk.add("user", "Hi").call(anthropic_reply("Hm", tool_calls=[ToolCall("look_up", {"word": "tea"})]))
    talk.add("user", "Never mind").call(anthropic_reply("All right."))

    result, words = talk.sent["messages"][-1]["content"]
    assert result["tool_use_id"] == "toolu_1" and "may have run" in result["content"]
    assert words == {"type": "text", "text": "Never mind"}
    roles = [message.role for message in talk.session.messages]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]
    assert "toolu_1" in talk.session.metadata["native_rebuilt"]["repairs"][0]

    talk.add("user", "Go on").call(anthropic_reply("Yes."))
    assert talk.provider.validate_native(talk.native) == []
