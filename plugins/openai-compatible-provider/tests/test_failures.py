"""What goes wrong, through every driver: the class, the partial answer, and what the message tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_provider_kit import KeyRefused, ProviderFailure, StreamCutOff, Unreachable
from agent_testing import FAULTS, ToolCall, chat_chunk, chat_reply, error_reply, sse_reply

if TYPE_CHECKING:
    from agent_testing import Talk

RICH = chat_reply("Tea is a drink.", reasoning="hm", tool_calls=[ToolCall("look_up", {"word": "tea"})])


def test_a_refused_key_tells_where_it_came_from(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    refused = error_reply(401, "Incorrect API key: sk-from-environment", code="invalid_api_key")

    with pytest.raises(KeyRefused) as failed:
        talk.add("user", "Hi").ask(refused, api_key=None)

    assert failed.value.key_origin == "environment OPENAI_API_KEY"
    assert "check the API key, which came from environment OPENAI_API_KEY" in str(failed.value)
    assert "[request req_scripted]" in str(failed.value)
    assert "sk-from-environment" not in str(failed.value)


def test_nothing_is_added_to_a_session_by_a_request_that_failed(talk: Talk) -> None:
    before = talk.add("user", "Hi").session

    with pytest.raises(ProviderFailure):
        talk.ask(error_reply(500))

    assert talk.session is before
    assert talk.ask(chat_reply("Hi")).last["content"] == "Hi"


def test_a_stream_that_breaks_keeps_its_beginning_as_a_session(talk: Talk) -> None:
    with pytest.raises(StreamCutOff) as failed:
        talk.add("user", "What is tea?").stream(RICH.without_end())

    partial: Any = failed.value.partial
    [message] = partial["messages"]
    assert partial["interrupted"] is True
    assert (message["content"], message["metadata"]["interrupted"]) == ("Tea is a drink.", "error")
    assert message["metadata"]["reasoning"] == "hm"
    assert "ending" not in message["metadata"]


def test_a_session_that_was_cut_off_can_go_on(talk: Talk) -> None:
    half = {"index": 0, "id": "c1", "function": {"name": "look_up", "arguments": '{"wor'}}
    with pytest.raises(StreamCutOff) as failed:
        talk.add("user", "What is tea?").stream(
            sse_reply(chat_chunk({"content": "Let me"}), chat_chunk({"tool_calls": [half]}))
        )
    partial: Any = failed.value.partial

    talk.session = partial["session"]
    talk.add("user", "Go on").ask(chat_reply("A drink."))

    assert talk.sent["messages"] == [
        {"role": "user", "content": "What is tea?"},
        {"role": "assistant", "content": "Let me"},
        {"role": "user", "content": "Go on"},
    ]
    [cut] = talk.native[1]["_metadata"]["incomplete_tool_calls"]
    assert cut["function"]["arguments"] == '{"wor'


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_that_was_cut_short_is_not_offered_to_be_run(talk_anyhow: Talk, reason: str) -> None:
    calls = [ToolCall("now", {}, id="c1"), ToolCall("write", '{"path": "/et', id="c2")]
    talk = talk_anyhow.add("user", "Hi").ask(chat_reply(tool_calls=calls, finish_reason=reason))

    assert [made["id"] for made in talk.about["tool_calls"]] == ["c1"]
    assert [cut["id"] for cut in talk.about["incomplete_tool_calls"]] == ["c2"]
    assert talk.about["ending"] == {"length": "length", "content_filter": "filtered"}[reason]


def test_nobody_there_is_said_plainly(talk_anyhow: Talk) -> None:
    talk_anyhow.add("user", "Hi")
    talk_anyhow.server.close()

    with pytest.raises(Unreachable, match=r"cannot reach 127\.0\.0\.1:\d+: .*; check the network"):
        talk_anyhow.ask()


def test_a_stalled_stream_ends_with_what_had_arrived(talk: Talk) -> None:
    told = chat_reply("Tea is a drink.")
    assert told.stream is not None
    stalled = told.stall(told.stream.index(b'"is "') + 200)

    with pytest.raises(StreamCutOff, match=r"nothing arrived for 0\.5 seconds") as failed:
        talk.add("user", "Hi").stream(stalled, idle_timeout=0.5)

    assert failed.value.partial is not None
    assert "Tea is a drink.".startswith(failed.value.partial["messages"][0]["content"])
    talk.server.wait_until_hung_up()


def test_a_failure_does_not_spoil_the_next_request(talk: Talk) -> None:
    talk.add("user", "Hi")
    for name in ("cut in the middle", "half a JSON object", "captive portal", "500"):
        with pytest.raises(ProviderFailure):
            talk.stream(FAULTS[name].apply(RICH))

    assert talk.stream(chat_reply("Hi")).last["content"] == "Hi"
