"""What is sent: settings, keys, headers, parts, tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ConfigError, tool
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_testing import Talk

HI = chat_reply("Hi")


def test_a_call_is_no_more_than_model_and_messages(talk: Talk) -> None:
    talk.add("system", "Be brief.").add("user", "Hi").ask(HI)

    assert (talk.server.request.method, talk.server.request.path) == ("POST", "/v1/chat/completions")
    assert talk.sent == {
        "model": "scripted-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    }


def test_a_password_in_the_address_and_a_key_cannot_both_be_sent(talk: Talk) -> None:
    address = talk.config["base_url"].replace("http://", "http://me:word-word@")
    talk.add("user", "Hi")

    with pytest.raises(ConfigError, match="base_url has a password") as caught:
        talk.ask(base_url=address)
    assert caught.value.field == "base_url"
    assert not talk.server.requests

    talk.ask(HI, base_url=address, api_key="")
    assert talk.server.request.headers["authorization"].startswith("Basic ")


def test_a_stream_asks_for_token_counts(talk: Talk) -> None:
    talk.add("user", "Hi").stream(HI)

    assert talk.sent["stream"] is True
    assert talk.sent["stream_options"] == {"include_usage": True}


def test_a_server_that_knows_no_such_option_is_not_asked(talk: Talk) -> None:
    talk.add("user", "Hi").stream(HI, stream_usage=False)

    assert "stream_options" not in talk.sent


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", 0.0),
        ("top_p", 0.5),
        ("max_tokens", 5),
        ("max_completion_tokens", 5),
        ("stop", ["."]),
        ("seed", 0),
        ("presence_penalty", 0.1),
        ("frequency_penalty", 0.1),
        ("reasoning_effort", "low"),
        ("response_format", {"type": "json_object"}),
        ("tool_choice", "auto"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}),
        ("parallel_tool_calls", False),
        ("service_tier", "flex"),
        ("prompt_cache_key", "k"),
        ("user", "u"),
    ],
)
def test_each_setting_is_sent_under_its_own_name(talk: Talk, key: str, value: Any) -> None:
    talk.add("user", "Hi").ask(HI, **{key: value})

    assert talk.sent[key] == value
    assert set(talk.sent) == {"model", "messages", key}


def test_a_setting_of_none_is_not_sent(talk: Talk) -> None:
    talk.add("user", "Hi").ask(HI, temperature=None, extra_body=None, extra_headers=None)

    assert set(talk.sent) == {"model", "messages"}


def test_more_fields_and_headers_can_be_sent(talk: Talk) -> None:
    talk.add("user", "Hi").ask(
        HI,
        temperature=1.0,
        extra_body={"top_k": 5, "temperature": 0.5, "options": {"num_ctx": 4096}},
        extra_headers={"X-Title": "tea", "User-Agent": "mine"},
    )

    assert talk.sent["top_k"] == 5
    assert talk.sent["temperature"] == 0.5
    assert talk.sent["options"] == {"num_ctx": 4096}
    assert talk.server.request.headers["x-title"] == "tea"
    assert talk.server.request.headers["user-agent"] == "mine"


class TestKeys:
    def test_a_key_is_a_bearer_token(self, talk: Talk) -> None:
        talk.add("user", "Hi").ask(HI)

        assert talk.server.request.headers["authorization"] == "Bearer sk-chat-secret"

    def test_a_key_may_come_from_the_environment(self, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment\n")

        talk.add("user", "Hi").ask(HI, api_key=None)

        assert talk.server.request.headers["authorization"] == "Bearer sk-from-environment"

    def test_an_empty_key_sends_no_header_even_if_the_environment_has_one(
        self, talk: Talk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")

        talk.add("user", "Hi").ask(HI, api_key="")

        assert "authorization" not in talk.server.request.headers

    def test_no_key_at_all_is_allowed(self, talk: Talk) -> None:
        talk.add("user", "Hi").ask(HI, api_key=None)

        assert "authorization" not in talk.server.request.headers

    def test_a_header_of_ones_own_takes_the_place_of_the_key(self, talk: Talk) -> None:
        talk.add("user", "Hi").ask(HI, extra_headers={"Authorization": "Basic abc"})

        assert talk.server.request.headers["authorization"] == "Basic abc"


class TestParts:
    def test_images_and_files_are_sent_as_the_wire_has_them(self, talk: Talk) -> None:
        parts = [
            {"type": "text", "text": "Compare"},
            {"type": "image", "data": "R0lG", "mime_type": "image/gif"},
            {"type": "image", "url": "https://a.test/b.png"},
            {"type": "file", "data": "JVBE", "mime_type": "application/pdf", "name": "a.pdf"},
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        ]
        talk.add("user", "Compare", multipart_content=parts).ask(HI)

        assert talk.sent["messages"][0]["content"] == [
            {"type": "text", "text": "Compare"},
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lG"}},
            {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        ]

    def test_they_are_sent_again_with_the_next_question(self, talk: Talk) -> None:
        parts = [{"type": "image", "data": "R0lG", "mime_type": "image/gif"}]
        talk.add("user", "Look", multipart_content=parts).ask(HI)
        first = talk.sent["messages"][0]

        talk.add("user", "Again").ask(HI)

        assert talk.sent["messages"][0] == first


class TestReasoning:
    def test_earlier_reasoning_goes_back_under_the_servers_name(self, talk: Talk) -> None:
        talk.add("user", "Hi").ask(chat_reply("Hi", reasoning="hm")).add("user", "And?").ask(HI)

        assert talk.sent["messages"][1]["reasoning_content"] == "hm"

    def test_it_stays_here_for_servers_that_refuse_it(self, talk: Talk) -> None:
        talk.add("user", "Hi").ask(chat_reply("Hi", reasoning="hm")).add("user", "And?")
        talk.ask(HI, send_reasoning=False)

        assert talk.sent["messages"][1] == {"role": "assistant", "content": "Hi"}
        assert talk.native[1]["reasoning_content"] == "hm"


class TestTools:
    def test_tools_are_described_as_functions(self, talk: Talk) -> None:
        @tool
        def look_up(word: str) -> str:
            """Look a word up."""
            return word

        talk.core.register_tool(look_up)
        talk.add("user", "Hi").ask(HI)

        [described] = talk.sent["tools"]
        assert described["type"] == "function"
        assert described["function"]["name"] == "look_up"
        assert described["function"]["parameters"]["required"] == ["word"]

    def test_without_tools_none_are_mentioned(self, talk: Talk) -> None:
        talk.add("user", "Hi").ask(HI)

        assert "tools" not in talk.sent
