from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import tool
from agent_testing import anthropic_reply, json_reply
from anthropic_provider import AnthropicProvider

if TYPE_CHECKING:
    from agent_testing import Talk


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return word


def test_a_request_has_what_the_api_asks_for(talk: Talk) -> None:
    talk.add("user", "Hi").call(anthropic_reply("Hello"))

    request = talk.server.request
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["x-api-key"] == "sk-ant-secret"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "anthropic-beta" not in request.headers and "authorization" not in request.headers
    assert talk.sent == {
        "model": "claude-test",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_a_stream_is_asked_for_as_one(talk: Talk) -> None:
    talk.add("user", "Hi").stream(anthropic_reply("Hello"))

    assert talk.sent["stream"] is True


def test_betas_and_version_are_headers(talk: Talk) -> None:
    talk.add("user", "Hi").call(
        anthropic_reply("Hello"),
        betas=["files-api-2025-04-14", "context-1m-2025-08-07"],
        api_version="2030-01-01",
        extra_headers={"x-team": "tea"},
    )

    headers = talk.server.request.headers
    assert headers["anthropic-beta"] == "files-api-2025-04-14,context-1m-2025-08-07"
    assert headers["anthropic-version"] == "2030-01-01" and headers["x-team"] == "tea"


def test_a_base_address_may_end_in_its_version(talk: Talk) -> None:
    talk.add("user", "Hi").call(anthropic_reply("Hello"), base_url=f"{talk.server.url}/anthropic/v1/")

    assert talk.server.request.path == "/anthropic/v1/messages"


def test_a_server_without_a_key_is_asked_without_one(talk: Talk) -> None:
    talk.add("user", "Hi").call(anthropic_reply("Hello"), api_key="")

    assert "x-api-key" not in talk.server.request.headers
    assert talk.server.request.headers["anthropic-version"] == "2023-06-01"


def test_settings_reach_the_body_and_extra_fields_win(talk: Talk) -> None:
    sent = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "stop_sequences": ["END"],
        "output_config": {"effort": "low"},
        "service_tier": "auto",
        "context_management": {"edits": []},
        "container": "container_1",
        "mcp_servers": [{"type": "url", "url": "https://mcp.example", "name": "m"}],
    }
    talk.add("user", "Hi").call(
        anthropic_reply("Hello"), **sent, user_id="u1", max_tokens=100, extra_body={"max_tokens": 7, "new": 1}
    )

    expected = {**sent, "metadata": {"user_id": "u1"}, "max_tokens": 7, "new": 1, "model": "claude-test"}
    assert talk.sent == {**expected, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("setting", "field", "max_tokens"),
    [
        (2000, {"type": "enabled", "budget_tokens": 2000}, 8192),
        (20000, {"type": "enabled", "budget_tokens": 20000}, 24096),
        ("adaptive", {"type": "adaptive"}, 8192),
        (True, {"type": "adaptive"}, 8192),
        (False, {"type": "disabled"}, 8192),
        ({"type": "adaptive", "display": "omitted"}, {"type": "adaptive", "display": "omitted"}, 8192),
    ],
)
def test_thinking_can_be_one_word(talk: Talk, setting: Any, field: dict[str, Any], max_tokens: int) -> None:
    talk.add("user", "Hi").call(anthropic_reply("Hello"), thinking=setting)

    assert talk.sent["thinking"] == field and talk.sent["max_tokens"] == max_tokens


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, None),
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "any"}, {"type": "any"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "look_up"}, {"type": "tool", "name": "look_up"}),
        ({"tool_choice": {"type": "tool", "name": "look_up"}}, {"type": "tool", "name": "look_up"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"tool_choice": "any", "parallel_tool_calls": False},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"parallel_tool_calls": True}, None),
    ],
)
def test_the_choice_of_tools_can_be_one_word(
    talk: Talk, settings: dict[str, Any], field: dict[str, Any] | None
) -> None:
    talk.core.register_tool(look_up)
    talk.add("user", "Hi").call(anthropic_reply("Hello"), **settings)

    assert talk.sent.get("tool_choice") == field


def test_without_tools_nothing_is_said_of_them(talk: Talk) -> None:
    talk.add("user", "Hi").call(anthropic_reply("Hello"), tool_choice="auto")

    assert "tools" not in talk.sent and "tool_choice" not in talk.sent


def test_tools_are_offered_in_the_apis_form_and_server_tools_behind_them(talk: Talk) -> None:
    talk.core.register_tool(look_up)
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    talk.add("user", "Hi").call(anthropic_reply("Hello"), server_tools=[search])

    own, server = talk.sent["tools"]
    assert own["name"] == "look_up" and own["description"] == "Look a word up."
    assert own["input_schema"]["required"] == ["word"]
    assert server == search


def test_every_setting_is_described() -> None:
    schema = AnthropicProvider().get_config_schema()

    assert {
        "api_key",
        "base_url",
        "max_tokens",
        "thinking",
        "cache",
        "betas",
        "server_tools",
    } <= schema.keys()
    assert all("type" in setting for setting in schema.values())


def test_a_tool_that_the_api_knows_by_type_is_offered_once(talk: Talk) -> None:
    @tool
    def bash(command: str) -> str:
        """Run a command."""
        return command

    talk.core.register_tool(bash)
    talk.core.register_tool(look_up)
    typed = {"type": "bash_20250124", "name": "bash"}
    talk.add("user", "Hi").call(anthropic_reply("Hello"), server_tools=[typed])

    assert [each["name"] for each in talk.sent["tools"]] == ["look_up", "bash"]
    assert talk.sent["tools"][1] == typed


@pytest.mark.parametrize(
    ("block", "name", "arguments"),
    [
        ({"name": "bash", "input": {"command": "ls"}}, "bash", '{"command":"ls"}'),
        ({"name": "memory", "input": {"command": "view", "path": "/memories"}}, "memory", None),
        (
            {"name": "double_click", "toolset_name": "computer", "input": {"coordinate": [1, 2]}},
            "computer",
            '{"action":"double_click","coordinate":[1,2]}',
        ),
    ],
)
def test_a_typed_call_reaches_our_tool_and_goes_back_as_it_came(
    talk: Talk, block: dict[str, Any], name: str, arguments: str | None
) -> None:
    use = {"type": "tool_use", "id": "toolu_1", **block}
    message = {"id": "msg_1", "role": "assistant", "content": [use], "stop_reason": "tool_use"}
    talk.add("user", "Hi").call(json_reply(message))

    function = talk.about["tool_calls"][0]["function"]
    assert function["name"] == name and arguments in (None, function["arguments"])
    talk.answer("done").call(anthropic_reply("Ok"))
    assert talk.sent["messages"][1]["content"] == [use]
    assert talk.sent["messages"][2]["content"][0]["tool_use_id"] == "toolu_1"
