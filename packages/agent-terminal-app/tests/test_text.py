"""Text for a screen: nothing in it moves a cursor, and it is measured as terminals do."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.chat.rendering.text import (
    age,
    clean,
    count,
    fitted,
    most_cells,
    one_line,
    only_styles,
    padded,
    printed,
    styled,
    unstyled,
)
from agent_terminal_app.rows import cells, cut_place

ANYTHING = st.text(max_size=80)
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\U000e0000-\U000e007f]"
)


@given(ANYTHING)
def test_clean_text_has_nothing_unseen_and_stays_as_it_is(text: str) -> None:
    safe = clean(text)

    assert not UNSEEN.search(safe)
    assert clean(safe) == safe


@pytest.mark.parametrize("text", ["Größe 5, „gut“\t✓", "日本語", "👩‍👩‍👧", "a\nb", "naïve café"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\udc80", "\\udc80"),
        ("\U000e0041", "\\ue0041"),
        ("a\rb", "a\\x0db"),
    ],
)
def test_what_is_taken_out_is_seen_to_have_been_there(text: str, seen: str) -> None:
    assert clean(text) == seen


@given(ANYTHING, st.booleans())
def test_only_our_styles_leave(text: str, color: bool) -> None:
    shown = only_styles(styled(text, "bold", color=color), color=color)

    assert not UNSEEN.search(unstyled(shown) if color else shown)
    assert unstyled(shown) == clean(text) or "\x1b" in text


def test_without_colours_not_even_styles_leave() -> None:
    assert only_styles("\x1b[1mbold\x1b[0m", color=False) == "bold"
    assert only_styles("\x1b]0;title\x07\x1b[1mx", color=True) == "\\x1b]0;title\\x07\x1b[1mx"


def test_what_a_program_printed_is_shown_without_its_colours() -> None:
    assert printed("\x1b[31mred\x1b[0m\tx\x1b[2J") == "red x\\x1b[2J"


def test_one_line_is_one_line() -> None:
    assert one_line("  a\n\n\tb\r\nc  ") == "a b c"


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("👩‍👩‍👧", 2), ("", 0)]
)
def test_how_many_cells_text_takes(text: str, width: int) -> None:
    assert cells(text) == width


@given(st.text(st.characters(codec="utf-8"), max_size=40).map(clean), st.integers(0, 30))
def test_fitted_text_fits(text: str, width: int) -> None:
    text = text.replace("\n", "").replace("\t", "")
    shown = fitted(text, width)

    assert cells(shown) <= width
    assert shown == text if most_cells(text) <= width else (shown.endswith("…") or width == 0)


@given(st.text("a日é", max_size=20), st.integers(0, 30))
def test_padded_text_takes_exactly_so_many_cells(text: str, width: int) -> None:
    text = text[: cut_place(text, width)]

    assert cells(padded(text, width)) == width
    assert cells(unstyled(padded(styled(text, "bold", color=True), width, right=True))) == width


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
