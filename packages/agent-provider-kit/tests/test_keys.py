"""Where a key comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_provider_kit import ApiKey, find_key

if TYPE_CHECKING:
    import pytest


def test_a_configured_key_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "from-environment")

    assert find_key({"api_key": "sk-1"}, "ACME_API_KEY") == ("sk-1", "config['api_key']")


def test_whoever_fills_the_configuration_may_say_where_the_key_came_from() -> None:
    config = {"api_key": "sk-1", "api_key_origin": "the keyring"}

    assert find_key(config) == ("sk-1", "the keyring")


def test_the_first_variable_that_is_set_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_API_KEY", "")
    monkeypatch.setenv("SECOND_API_KEY", "sk-2\n")

    assert find_key({}, "FIRST_API_KEY", "SECOND_API_KEY") == ("sk-2", "environment SECOND_API_KEY")


def test_an_empty_key_in_the_configuration_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-2")

    assert find_key({"api_key": ""}, "ACME_API_KEY") == ("", "nowhere")


def test_whoever_looked_for_a_key_may_say_why_there_is_none() -> None:
    found = find_key({"api_key": "", "api_key_origin": "nowhere: the variable MINE is not set"})

    assert (found.value, found.reason) == ("", "the variable MINE is not set")
    assert (find_key({}).reason, ApiKey("sk-1", "a drawer").reason) == ("", "")


def test_without_any_there_is_an_empty_key() -> None:
    assert find_key({}, "ACME_API_KEY") == ("", "nowhere")


def test_a_key_never_shows_itself() -> None:
    key = ApiKey("sk-very-secret", "a drawer")

    assert f"{key} {key!r} {[key]}" == "ApiKey(from a drawer) ApiKey(from a drawer) [ApiKey(from a drawer)]"
