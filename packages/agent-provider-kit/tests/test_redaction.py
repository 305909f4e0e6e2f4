"""Keeping secrets out of texts and headers."""

from __future__ import annotations

from typing import Any

import pytest

from agent_plugin_kit import mask_secrets
from agent_provider_kit import ApiKey, Exchange, RequestRefused, redact
from agent_provider_kit.keys import secrets_in

TOKEN = "tea-leaf-4711"


def test_every_occurrence_of_every_secret_is_masked() -> None:
    assert redact("a sk-123456 b tok-abcdef c sk-123456", ["sk-123456", "tok-abcdef"]) == (
        "a [secret] b [secret] c [secret]"
    )


def test_a_secret_inside_another_leaves_nothing_of_the_longer_one() -> None:
    assert redact("sk-123456-and-more", ["sk-123456", "sk-123456-and-more"]) == "[secret]"


def test_what_is_too_short_to_be_a_secret_is_left() -> None:
    assert redact("the model is ok", ["", "ok", "model"]) == "the model is ok"


def test_masking_twice_changes_nothing_more() -> None:
    once = redact("key sk-123456", ["sk-123456"])

    assert redact(once, ["sk-123456"]) == once


def test_headers_that_carry_secrets_are_masked_whatever_their_case() -> None:
    headers = {
        "Authorization": "Bearer x",
        "X-API-Key": "x",
        "x-goog-api-key": "x",
        "api-key": "x",
        "Cookie": "x",
        "Proxy-Authorization": "x",
        "X-Portkey-Config-Token": "x",
        "Accept": "text/plain",
    }

    assert mask_secrets(headers) == dict.fromkeys(headers, "[secret]") | {"Accept": "text/plain"}


@pytest.mark.parametrize(
    "setting",
    [
        {"extra_headers": {"X-Portkey-Api-Key": TOKEN}},
        {"extra_headers": {"Authorization": f"Bearer {TOKEN}"}},
        {"extra_headers": {"X-Who": "sk-ant-api03-0123456789abcdef"}},
        {"extra_query": {"key": TOKEN}},
        {"extra_body": {"mcp": [{"auth": {"access_token": TOKEN}}]}},
        {"mcp_servers": [{"type": "url", "name": "tea", "authorization_token": TOKEN}]},
        {"builtin_tools": [{"type": "mcp", "server_url": "https://x.test", "authorization": TOKEN}]},
        {"base_url": f"https://me:{TOKEN}@tea.test/v1"},
    ],
)
def test_what_a_provider_quotes_of_any_setting_is_masked(setting: dict[str, Any]) -> None:
    token = "sk-ant-api03-0123456789abcdef" if "X-Who" in str(setting) else TOKEN
    exchange = Exchange("tea", "call_api", "https://tea.test", ApiKey("", "nowhere"), secrets_in(setting))

    failure = RequestRefused(exchange, f"with {token}", provider_message=f"you sent {token}, why?")

    assert token not in f"{failure} {failure.provider_message} {vars(failure)}"
    assert "you sent [secret], why?" in str(failure)


def test_ordinary_settings_hold_no_secret() -> None:
    config = {
        "extra_headers": {"X-Title": "tea", "User-Agent": "mine/1.0"},
        "extra_body": {"max_tokens": 5, "options": {"num_ctx": 4096}, "stop": ["."]},
        "mcp_servers": [{"type": "url", "url": "https://mcp.test/sse", "name": "tea"}],
    }

    assert secrets_in(config) == ()
