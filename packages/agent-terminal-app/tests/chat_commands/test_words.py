"""Small words."""

from __future__ import annotations

import pytest

from agent_terminal_app.chat.words import age, count, one_line


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (86400 * 13, "13 d"),
        (-5, "0 s"),
    ],
)
def test_how_long_ago_something_was(seconds: float, told: str) -> None:
    assert age(1_000_000_000 - seconds, now=1_000_000_000) == told


def test_what_was_long_ago_has_a_day() -> None:
    assert age(1_000_000_000, now=1_100_000_000) in ("2001-09-08", "2001-09-09")


def test_one_thing_and_several() -> None:
    assert (count(1, "message"), count(0, "tool"), count(1200, "token")) == (
        "1 message",
        "0 tools",
        "1,200 tokens",
    )


def test_anything_becomes_one_line() -> None:
    assert one_line("a\n\tb  c") == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line(7) == "7"
    assert "\x1b" not in one_line("\x1b[2J")
    assert one_line("\ud800").isprintable()
