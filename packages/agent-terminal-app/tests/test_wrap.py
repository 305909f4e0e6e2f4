"""Lines in rows: whole words, whatever the width, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.rows import cells, columns, in_rows, prose_rows, two_columns

WORDS = st.text(st.sampled_from("ab *`_(漢é"), max_size=60)


def test_a_line_is_cut_between_words_and_what_goes_on_is_set_off() -> None:
    assert in_rows("one two three four", 9) == ["one two", "three", "four"]
    assert in_rows("  one two three", 9) == ["  one two", "    three"]
    assert in_rows("OK    it: is so and so", 14, 6) == ["OK    it: is", "      so and", "      so"]


def test_a_line_without_a_width_and_one_that_fits_stay_as_they_are() -> None:
    assert in_rows("one  two", None) == ["one  two"]
    assert in_rows("one  two", 8) == ["one  two"]


def test_a_word_that_is_wider_than_a_row_stays_whole() -> None:
    assert in_rows("see https://example.org/a/long/one now", 12) == [
        "see",
        "https://example.org/a/long/one",
        "now",
    ]


def test_what_somebody_wrote_keeps_code_and_links_whole() -> None:
    assert prose_rows("use `git log -p` for that", 14) == ["use", "`git log -p`", "for that"]
    assert prose_rows("see [the page](https://a.b) now", 24) == ["see", "[the page](https://a.b)", "now"]
    assert prose_rows("one two\n```\nthree four five\n```\nsix seven", 7) == [
        "one two",
        "```",
        "three four five",
        "```",
        "six",
        "seven",
    ]


def test_patterns_are_shown_as_they_are() -> None:
    rows = in_rows("deny shell(rm *) and write(*.py) too", 18)

    assert rows == ["deny shell(rm *)", "and write(*.py)", "too"]


def test_a_text_stands_beside_its_front_or_below_it() -> None:
    about = "says what a thing is for, in several words"

    assert two_columns("  /name       ", about, 50) == [
        "  /name        says what a thing is for, in",
        "               several words",
    ]
    assert two_columns(f"  {'name':<30}", about, 40) == [
        "  name",
        "      says what a thing is for, in",
        "      several words",
    ]
    assert two_columns("  name", "short", 40) == ["  name short"]
    assert two_columns("  name  ", "", None) == ["  name"]


def test_every_cell_of_a_row_stays_in_its_column() -> None:
    front = [("  on  write_file", 20), ("ask (default), 1 rule for some arguments", 24)]
    about = "Write a whole file; a missing one is created."

    assert columns(front, about, 80) == [
        "  on  write_file     ask (default), 1 rule    Write a whole file; a missing one",
        "                     for some arguments       is created.",
    ]
    assert columns(front, about, 60) == two_columns(f"{front[0][0]:<20} {front[1][0]}", about, 60)
    long = [("  on  a_name_that_is_wider_than_its_column", 20), ("ask", 24)]
    assert columns(long, "Short.", 90) == [f"{long[0][0]} {'ask':<24} Short."]


@pytest.mark.parametrize("width", [1, 10, 40])
@given(text=WORDS, hang=st.none() | st.integers(0, 50))
def test_nothing_is_lost_and_only_single_words_are_too_wide(width: int, text: str, hang: int | None) -> None:
    rows = in_rows(text, width, hang)

    assert "".join("".join(rows).split()) == "".join(text.split())
    for row in rows:
        assert cells(row) <= width or " " not in row.strip()
