"""Markdown line by line: nothing is lost, nothing is shown twice, nothing moves the cursor."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.chat.rendering.markdown import LineMarkdown
from agent_terminal_app.chat.rendering.text import clean
from agent_terminal_app.rows import cells

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def shown(text: str, *, color: bool = False, width: int | None = None, piece: int = 3) -> list[str]:
    markdown = LineMarkdown(color=color, width=width)
    lines = []
    for start in range(0, len(text), piece):
        lines += markdown.feed(text[start : start + piece])
    return [*lines, *markdown.end()]


def test_a_line_is_shown_when_it_is_finished_and_only_once() -> None:
    markdown = LineMarkdown(color=False)

    assert markdown.feed("One") == []
    assert markdown.feed(" line\nand") == ["One line"]
    assert markdown.end() == ["and"]
    assert markdown.end() == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Title", "\x1b[1;34mTitle\x1b[0m"),
        ("a **bold** word", "a \x1b[1mbold\x1b[0m word"),
        ("an *italic* word", "an \x1b[3mitalic\x1b[0m word"),
        ("some `co*de*` here", "some \x1b[36mco*de*\x1b[0m here"),
        ("- item", "• item"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("snake_case_name", "snake_case_name"),
    ],
)
def test_what_each_mark_looks_like(text: str, line: str) -> None:
    assert shown(text, color=True) == [line]


def test_code_is_shown_as_it_is_until_its_fence_closes() -> None:
    text = "```python\n# no *title*\n- no item\n```\n- item\n"

    assert shown(text) == ["```python", "# no *title*", "- no item", "```", "• item"]


def test_a_long_line_is_cut_between_words_while_it_arrives() -> None:
    markdown = LineMarkdown(color=False, width=10)

    assert markdown.feed("one two three") == ["one two"]
    assert markdown.feed(" four\n") == ["three four"]


def test_a_line_is_cut_outside_of_marks_if_that_is_possible() -> None:
    assert shown("some `long code` end", width=12) == ["some", "`long code`", "end"]


def test_marks_that_are_wider_than_the_terminal_go_on_in_the_next_row() -> None:
    lines = shown("**a bold sentence of many words** and more", color=True, width=14)

    bold = ["\x1b[1ma bold\x1b[0m", "\x1b[1msentence of\x1b[0m", "\x1b[1mmany words\x1b[0m"]
    assert lines == [*bold, "and more"]


def test_the_rows_of_a_long_item_stand_below_its_words() -> None:
    text = "- one two three\n  - four five six\n12. seven eight\n> nine ten eleven\n"

    assert shown(text, width=10) == [
        "• one two", "  three", "  • four", "    five", "    six", "12. seven", "    eight",
        "│ nine ten", "│ eleven",
    ]  # fmt: skip


def test_a_row_is_no_new_item_because_of_how_it_begins() -> None:
    assert shown("one two # three - four\n", width=8) == ["one two", "# three", "- four"]
    assert shown("one two # three\n", color=True, width=8) == ["one two", "# three"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[the docs](https://example.com/a_(b))", "the docs (\x1b[4mhttps://example.com/a_(b)\x1b[0m)"),
        ("[example.com](https://example.com)", "\x1b[4mhttps://example.com\x1b[0m"),
        ("![a cat](https://example.com/cat.png)", "a cat (\x1b[4mhttps://example.com/cat.png\x1b[0m)"),
        ("<https://example.com>", "\x1b[4mhttps://example.com\x1b[0m"),
        ("[bank.example](https://evil.example)", "bank.example (\x1b[4mhttps://evil.example\x1b[0m)"),
    ],
)
def test_a_link_is_shown_with_its_address(text: str, line: str) -> None:
    assert shown(text, color=True) == [line]
    assert shown(text, color=False) == [text]


TABLE = "| Name | Size |\n|:-----|-----:|\n| a | 1 |\n| 日本 | **22** |\n"


def test_a_table_is_held_back_until_it_is_complete_and_then_aligned() -> None:
    markdown = LineMarkdown(color=False, width=40)

    assert markdown.feed(TABLE) == []
    assert markdown.feed("\nDone.\n") == [
        "Name │   Size",
        "─────┼───────",
        "a    │      1",
        "日本 │ **22**",
        "",
        "Done.",
    ]


def test_a_table_at_the_end_is_shown_at_the_end() -> None:
    assert shown(TABLE, width=40)[0] == "Name │   Size"


def test_a_line_with_a_bar_is_no_table() -> None:
    assert shown("a | b\nc\n") == ["a | b", "c"]
    assert shown("a | b\n---\n")[0] == "a | b"


def test_a_table_that_is_too_wide_is_cut_in_its_cells_or_put_below_each_other() -> None:
    wide = "| A | B |\n|---|---|\n| x | one two three four |\n"

    assert shown(wide, width=16) == [
        "A │ B",
        "──┼─────────────",
        "x │ one two",
        "  │ three four",
    ]
    many = "| A | B | C | D |\n|---|---|---|---|\n| first | second | third | fourth |\n"
    assert shown(many, width=12) == ["A: first", "B: second", "C: third", "D: fourth"]


def test_text_without_spaces_is_cut_between_wide_characters_and_not_before_a_full_stop() -> None:
    assert shown("東京は日本です。次", width=14) == ["東京は日本で", "す。次"]


@given(st.text("日本ab ", max_size=60), st.integers(4, 20))
def test_rows_are_as_wide_as_the_terminal_at_most(text: str, width: int) -> None:
    for line in shown(text, width=width):
        assert cells(line) <= width or not any(char in line.strip() for char in "日本 ")


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\u202eabc", "a\rb", "\x08"])
def test_what_would_move_the_cursor_is_made_visible(evil: str) -> None:
    (line,) = shown(f"x{evil}y", piece=100)

    assert "\x1b" not in line and "\x9b" not in line and "\u202e" not in line and "\x08" not in line
    assert "\r" not in line


@given(st.text(alphabet=st.characters(exclude_characters="\r"), max_size=200), st.integers(1, 7))
def test_the_words_are_all_there_whatever_the_pieces(text: str, piece: int) -> None:
    plain = shown(text, piece=piece)

    assert plain == shown(text, piece=1000)
    assert [_STYLE.sub("", line) for line in shown(text, color=True, piece=piece)] != [] or not plain


@given(st.lists(st.text("abc", min_size=1, max_size=12), max_size=40), st.integers(5, 30))
def test_cutting_loses_no_word_and_keeps_within_the_width(words: list[str], width: int) -> None:
    lines = shown(" ".join(words), width=width)

    assert " ".join(lines).split() == words
    assert all(len(line) <= width or " " not in line for line in lines)


def test_clean_keeps_ordinary_text() -> None:
    assert clean("Größe 5, „gut“\t✓") == "Größe 5, „gut“\t✓"
