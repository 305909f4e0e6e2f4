from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_core import ProviderError
from agent_provider_kit import KeyRefused, Unreachable
from agent_testing import anthropic_models, error_reply, json_reply
from anthropic_provider import AnthropicProvider

if TYPE_CHECKING:
    from agent_testing import Talk


def test_the_server_is_asked_for_its_models(talk: Talk) -> None:
    talk.server.play(anthropic_models("claude-a", "claude-b"))

    models = AnthropicProvider().get_models({**talk.config, "discover_models": True})

    assert [(model["id"], model["name"]) for model in models] == [
        ("claude-a", "Claude-A"),
        ("claude-b", "Claude-B"),
    ]
    request = talk.server.request
    assert (request.method, request.path) == ("GET", "/v1/models")
    assert request.query == {"limit": "1000"} and request.headers["anthropic-version"] == "2023-06-01"


def test_capabilities_become_tags_and_everything_is_kept(talk: Talk) -> None:
    model = {
        "id": "claude-a",
        "type": "model",
        "max_input_tokens": 200000,
        "capabilities": {"image_input": {"supported": True}, "thinking": {"supported": False}},
    }
    talk.server.play(json_reply({"data": [model]}))

    [found] = AnthropicProvider().get_models({**talk.config, "discover_models": True})

    assert found.items() >= model.items()
    assert found["context_window"] == 200000
    assert "vision" in found["tags"] and "tools" in found["tags"] and "reasoning" not in found["tags"]


def test_without_discovery_the_configured_model_is_the_one(talk: Talk) -> None:
    assert AnthropicProvider().get_models(talk.config) == [{"id": "claude-test"}]
    assert talk.server.requests == []


def test_a_server_that_refuses_says_so(talk: Talk) -> None:
    talk.server.play(error_reply(401, "invalid x-api-key", code="authentication_error", wire="anthropic"))

    with pytest.raises(KeyRefused, match="invalid x-api-key"):
        AnthropicProvider().get_models({**talk.config, "discover_models": True})


def test_a_server_that_cannot_be_reached_is_named(talk: Talk) -> None:
    config = {**talk.config, "base_url": "http://127.0.0.1:9", "discover_models": True}

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9") as caught:
        AnthropicProvider().get_models(config)
    assert isinstance(caught.value, ProviderError)


def test_models_usually_can_do_this() -> None:
    tags = AnthropicProvider().get_tags({})

    assert {"tools", "parallel_tools", "vision", "reasoning", "prompt_cache"} <= set(tags)
    assert AnthropicProvider().get_tags({"capabilities": ["tools"]}) == ["tools"]
