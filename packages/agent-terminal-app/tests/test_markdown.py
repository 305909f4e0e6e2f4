"""Markdown line by line: nothing is lost, nothing is shown twice, nothing moves the cursor."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.chat.markdown import LineMarkdown, clean

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


def test_a_line_is_not_cut_inside_of_code() -> None:
    assert shown("some `long code here` end", width=12) == ["some", "`long code here`", "end"]


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
