"""What secrets look like; the lists of names and values are in the tests of those who ask."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agent_plugin_kit.secrets import (
    SHAPES,
    begins_like_key,
    is_secret_name,
    is_secret_value,
    looks_secret,
    mask_secrets,
    secret_values,
)

BODY = "x1Y2" * 10
ALPHABET = st.sampled_from(
    ["sk-", "ghp_", "eyJ", "://", ":", "@", "-----BEGIN ", "Bearer ", ".", "a1", " ", "-"]
)


@pytest.mark.parametrize("name", ["API_KEY", "api_key", "GITHUB_TOKEN", "DB_PASSWORD", "SENTRY_DSN", "KEY"])
def test_a_name_stands_for_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "GIT_ASKPASS", "HOME", "PASSENGERS", "KEYBOARD"])
def test_a_name_stands_for_no_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_what_is_found_in_a_text_is_also_found_as_a_value() -> None:
    """One list of starts for both: they once drifted apart."""
    for shape in SHAPES:
        for start in shape.starts:
            if start in ("://", "-----BEGIN ") or start.strip().lower() in ("bearer", "basic"):
                continue
            value = start + ("X1Y2" * 4 if start in ("AKIA", "ASIA") else BODY)
            assert is_secret_value(value), start
            assert begins_like_key(value), start


def test_every_shape_finds_its_own_and_takes_out_the_secret_alone() -> None:
    texts = {
        "sk-": f"sk-proj-{BODY}",
        "AKIA": "AKIAIOSFODNN7EXAMPLE",
        "eyJ": f"eyJ{BODY}.{BODY}.{BODY}",
        "Bearer ": f"Bearer {BODY}",
        "://": "://ada:hunter2@",
        "-----BEGIN ": "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
    }
    for shape in SHAPES:
        text = texts.get(shape.starts[0], shape.starts[0] + BODY)
        found = shape.expression.match(text)
        assert found is not None, shape.starts
        assert found[1] in text and found.end() == len(text)


@pytest.mark.parametrize(
    "text", ["sk-something-in-words", "basic characteristics", "https://a.example/x", "hf_", ""]
)
def test_ordinary_words_fit_no_shape(text: str) -> None:
    assert not any(shape.expression.search(text) for shape in SHAPES)
    assert not looks_secret("NOTE", text) or text.startswith("sk-")  # as a variable it is rather withheld


@given(st.lists(ALPHABET, max_size=40).map("".join))
def test_no_text_is_too_much_for_a_shape(text: str) -> None:
    for shape in SHAPES:
        found = shape.expression.search(text)
        assert found is None or found[0].startswith(shape.starts)


SETTINGS = {
    "extra_headers": {"Authorization": ["Bearer hidden-one"], "X-Trace": "shown-one"},
    "mcp_servers": [
        {"url": "https://x.test", "headers": [{"name": "X-Api-Key", "value": "hidden-two"}]},
        {"headers": [{"name": "Accept", "value": "shown-two"}]},
    ],
    "extra_body": {"credentials": {"user": "hidden-three", "more": [{"pass": "hidden-four"}], "age": 5}},
    "extra_query": {"sig": "hidden-five", "api-version": "shown-three"},
}
HIDDEN = ("hidden-one", "hidden-two", "hidden-three", "hidden-four", "hidden-five")


def test_everything_below_a_secret_field_is_secret() -> None:
    values = list(secret_values(SETTINGS))

    assert set(HIDDEN) <= set(values)
    assert not any("shown" in value or value == "X-Api-Key" for value in values)


def test_settings_are_shown_without_what_is_below_a_secret_field() -> None:
    shown = mask_secrets(SETTINGS)

    assert not any(hidden in str(shown) for hidden in HIDDEN)
    assert all(plain in str(shown) for plain in ("shown-one", "shown-two", "shown-three", "X-Api-Key"))
    assert shown["extra_headers"]["Authorization"] == ["[secret]"]
    assert shown["extra_body"]["credentials"] == {
        "user": "[secret]",
        "more": [{"pass": "[secret]"}],
        "age": 5,
    }
