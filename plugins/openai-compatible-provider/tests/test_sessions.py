"""Conversations: every driver gives the same session, and nothing of it is lost on the way back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson
import pytest

from agent_core import Session
from agent_core.testing import EchoProvider
from agent_testing import ServerReply, ToolCall, chat_reply, json_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_testing import Talk

RICH = chat_reply(
    "Grüße, tea! 🍵",
    reasoning="They say hello.",
    tool_calls=[ToolCall("look_up", {"word": "tea"}, id="c1"), ToolCall("now", {}, id="c2")],
    extra={"reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz"}], "their_own": {"a": [1]}},
)


@pytest.mark.parametrize(
    "reply",
    [
        RICH,
        chat_reply("Tea is a drink."),
        chat_reply(tool_calls=[ToolCall("draw", input="a line", id="c1")]),
        chat_reply(refusal="I will not."),
        chat_reply("Tea is", finish_reason="length"),
        chat_reply("Tea", finish_reason="content_filter", usage=None),
        chat_reply("Tea", reasoning="hm", reasoning_field="reasoning"),
    ],
    ids=["rich", "text", "freeform", "refusal", "length", "filtered", "reasoning"],
)
def test_every_driver_gives_the_same_session(
    reply: ServerReply, sessions_of: Callable[[ServerReply], list[Session]]
) -> None:
    first, *others = sessions_of(reply)

    assert others == [first] * 3


def test_a_message_has_everything_that_people_and_tools_need(talk_anyhow: Talk) -> None:
    talk = talk_anyhow.add("user", "What is tea?").ask(RICH)

    assert talk.last["role"] == "assistant"
    assert talk.last["content"] == "Grüße, tea! 🍵"
    assert talk.about["reasoning"] == "They say hello."
    assert talk.about["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"word":"tea"}'}},
        {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]
    assert talk.about["usage"] == {
        "input_tokens": 12,
        "output_tokens": 7,
        "total_tokens": 19,
        "cached_input_tokens": 4,
        "reasoning_tokens": 2,
    }
    assert (talk.about["ending"], talk.about["finish_reason"]) == ("tool_calls", "tool_calls")
    assert (talk.about["model"], talk.about["response_id"]) == ("scripted-model", "chatcmpl-scripted")


def test_partials_add_up_to_the_message(talk: Talk) -> None:
    talk.add("user", "What is tea?").stream(RICH)

    assert "".join(partial["content"] for partial in talk.partials) == talk.last["content"]
    thoughts = [partial["reasoning"] for partial in talk.partials if "reasoning" in partial]
    assert "".join(thoughts) == talk.about["reasoning"]
    pieces = [partial["tool_call"] for partial in talk.partials if "tool_call" in partial]
    for index, call in enumerate(talk.about["tool_calls"]):
        own = [piece for piece in pieces if piece["index"] == index]
        assert (own[0]["id"], own[0]["name"]) == (call["id"], call["function"]["name"])
        assert "".join(piece["arguments"] for piece in own) == call["function"]["arguments"]


def test_the_answer_goes_back_as_it_came_with_every_field(talk_anyhow: Talk) -> None:
    talk = talk_anyhow.add("user", "What is tea?").ask(RICH)
    for call in talk.about["tool_calls"]:
        talk.add("tool", "a drink", {"tool_call_id": call["id"]})

    talk.ask(chat_reply("It is a drink."))

    assert talk.sent["messages"][1] == {
        "role": "assistant",
        "content": "Grüße, tea! 🍵",
        "reasoning_content": "They say hello.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"word":"tea"}'}},
            {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
        ],
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz"}],
        "their_own": {"a": [1]},
    }
    assert [message["role"] for message in talk.sent["messages"]] == ["user", "assistant", "tool", "tool"]
    assert "native_messages_report" not in talk.session.metadata


def test_a_session_survives_being_stored(talk: Talk) -> None:
    talk.add("user", "What is tea?").ask(RICH)
    before = talk.native

    talk.session = Session.from_dict(talk.session.to_dict())
    for call in talk.about["tool_calls"]:
        talk.add("tool", "a drink", {"tool_call_id": call["id"]})
    talk.ask(chat_reply("Yes."))

    assert talk.native[: len(before)] == before


def test_another_provider_in_between_costs_nothing(talk: Talk) -> None:
    talk.core.register_provider(EchoProvider())
    talk.add("user", "What is tea?").ask(chat_reply("A drink.", extra={"signature": "xyz"}))
    talk.add("user", "And now?").ask(provider="echo", model="echo")
    talk.add("user", "And again?").ask(chat_reply("A drink still."))

    assert talk.sent["messages"][1] == {"role": "assistant", "content": "A drink.", "signature": "xyz"}
    assert [message["role"] for message in talk.sent["messages"]] == ["user", "assistant"] * 2 + ["user"]


def test_a_history_that_a_server_would_refuse_is_repaired_and_reported(talk: Talk) -> None:
    talk.add("user", "What is tea?").ask(RICH)
    talk.add("tool", "a drink", {"tool_call_id": "c2"}).add("user", "Never mind")

    talk.ask(chat_reply("Well."))

    results = [message for message in talk.sent["messages"] if message["role"] == "tool"]
    assert [result["tool_call_id"] for result in results] == ["c2", "c1"]
    assert "may have run" in results[1]["content"]
    assert "_metadata" not in str(talk.sent)
    assert "call 'c1': added a result" in str(talk.session.metadata)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_it_does_not_matter_how_the_stream_is_cut_into_reads(talk: Talk, size: int) -> None:
    talk.add("user", "What is tea?")
    begun = talk.session
    whole = talk.stream(RICH).session
    talk.session = begun

    assert talk.stream(RICH.in_pieces(size)).session == whole


def test_many_conversations_at_once_do_not_mix(talk: Talk) -> None:
    talk.server.play(*[lambda request: chat_reply(request.json["messages"][-1]["content"] * 3)] * 50)

    async def ask(number: int) -> str:
        session = talk.core.add_message(talk.core.create_session(str(number)), "user", f"<{number}> ")
        events = [event async for event in talk.core.send_request_stream_async(session, talk.config)]
        shown = "".join(event["message"]["content"] for event in events[:-1])
        assert events[-1]["messages"][0]["content"] == shown
        return shown

    async def ask_all() -> list[str]:
        return await asyncio.gather(*map(ask, range(50)))

    assert asyncio.run(ask_all()) == [f"<{number}> " * 3 for number in range(50)]


def test_a_server_that_does_not_stream_is_listened_to(talk: Talk) -> None:
    talk.add("user", "Hi").stream(json_reply(orjson.loads(RICH.body)))

    assert talk.last["content"] == "Grüße, tea! 🍵"
    assert len(talk.about["tool_calls"]) == 2
