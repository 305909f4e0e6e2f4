"""Keeping secrets out of texts and headers."""

from __future__ import annotations

from agent_provider_kit import redact, redact_headers


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
        "Accept": "text/plain",
    }

    assert redact_headers(headers) == dict.fromkeys(headers, "[secret]") | {"Accept": "text/plain"}
