"""Which models there are, and what they can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_provider_kit import NotTheProvider, Overloaded, Unreachable
from agent_testing import captive_portal, chat_models, chat_reply, error_reply
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from agent_testing import ServerReply, Talk


def test_a_server_is_asked_for_its_models_once(talk: Talk) -> None:
    talk.add("user", "Hi")
    talk.ask(chat_models("scripted-model", "small"), chat_reply("Hi"), discover_models=True)
    talk.add("user", "And?").ask(chat_reply("Hi"), discover_models=True)

    asked, *others = talk.server.requests
    assert (asked.method, asked.path) == ("GET", "/v1/models")
    assert asked.headers["authorization"] == "Bearer sk-chat-secret"
    assert [request.method for request in others] == ["POST", "POST"]


def test_every_field_of_a_model_is_kept(talk: Talk) -> None:
    talk.server.play(chat_models("a", "b"))

    models = OpenAICompatibleProvider().get_models({**talk.config, "discover_models": True})

    assert models[0] == {"id": "a", "object": "model", "created": 1767225600, "owned_by": "script"}


def test_nobody_is_asked_unless_that_is_wanted(talk: Talk) -> None:
    talk.add("user", "Hi").ask(chat_reply("Hi"))

    assert [request.method for request in talk.server.requests] == ["POST"]


def test_a_model_that_is_not_listed_can_be_asked_for(talk: Talk) -> None:
    talk.add("user", "Hi").ask(
        chat_models("small"), chat_reply("Hi"), discover_models=True, model="brand-new"
    )

    assert talk.sent["model"] == "brand-new"


def test_a_server_that_cannot_be_reached_is_named_with_what_to_do(talk: Talk) -> None:
    talk.server.close()
    host = talk.server.url.removeprefix("http://")

    with pytest.raises(Unreachable) as failed:
        OpenAICompatibleProvider().get_models({**talk.config, "discover_models": True})

    assert f"cannot reach {host}: Connection refused" in str(failed.value)
    assert f"check the network and that {host} is the right address" in str(failed.value)


@pytest.mark.parametrize(
    ("reply", "expected"), [(error_reply(503), Overloaded), (captive_portal(), NotTheProvider)]
)
def test_a_server_that_cannot_tell_says_why(
    talk: Talk, reply: ServerReply, expected: type[Exception]
) -> None:
    talk.server.play(reply)

    with pytest.raises(expected):
        OpenAICompatibleProvider().get_models({**talk.config, "discover_models": True})


def test_tags_say_what_models_usually_can() -> None:
    provider = OpenAICompatibleProvider()

    assert {"tools", "parallel_tools", "vision", "prompt_cache"} <= set(provider.get_tags({}))
    assert provider.get_tags({"capabilities": ["tools", "reasoning"]}) == ["tools", "reasoning"]


def test_a_misspelt_setting_is_reported_with_the_right_one(talk: Talk) -> None:
    assert talk.core.check_config(talk.config) == []
    assert talk.core.check_config({**talk.config, "temprature": 0.5}) == [
        "config['temprature'] is not known: did you mean 'temperature'?"
    ]


def test_every_setting_is_described() -> None:
    schema = OpenAICompatibleProvider().get_config_schema()

    assert {"model", "api_key", "base_url", "temperature", "max_tokens", "stream_usage"} <= set(schema)
    assert all(descriptor["type"] for descriptor in schema.values())
    assert schema["api_key"]["secret"] is True
