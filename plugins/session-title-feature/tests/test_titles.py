"""Whatever a model writes, a title is one line of plain words."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given, strategies as st

from session_title_feature.titles import LONGEST, clean_title


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Brewing green tea", "Brewing green tea"),
        ('"Brewing green tea"', "Brewing green tea"),
        ("“Brewing green tea”", "Brewing green tea"),
        ("**Brewing** _green_ `tea`.", "Brewing green tea"),
        ("# Brewing green tea\n\nThis title says it all.", "Brewing green tea"),
        ("```\nBrewing green tea\n```", "Brewing green tea"),
        ("```text\nTitle: Brewing green tea\n```", "Brewing green tea"),
        ("\n\n  - Title: 'Brewing green tea'  \n", "Brewing green tea"),
        ("> [Brewing](https://tea.test/brew) green tea", "Brewing green tea"),
        ("<b>Brewing</b>\tgreen\u00a0 tea", "Brewing green tea"),
        ("Brew\u202eing\x07 green\u200b tea", "Brewing green tea"),
        ("Rename snake_case names", "Rename snake_case names"),
        ("Don't panic", "Don't panic"),
        ("What is 2 < 3?", "What is 2 < 3?"),
        ("Learning C#", "Learning C#"),
        ("茶の入れ方", "茶の入れ方"),
        ("👩\u200d🍳", "👩\u200d🍳"),
        ("***\n---\n...\nTea", "Tea"),
        ("", ""),
        ('***\n""\n', ""),
    ],
)
def test_a_title_is_freed_of_what_stands_around_it(written: str, title: str) -> None:
    assert clean_title(written) == title


def test_a_long_title_is_cut_between_words() -> None:
    title = clean_title("tea " * 50)

    assert title == " ".join(["tea"] * 19) + "…"
    assert len(title) <= LONGEST


def test_a_long_word_is_cut_anyway() -> None:
    assert clean_title("t" * 200) == "t" * (LONGEST - 1) + "…"


MARKUP = st.text(
    st.sampled_from(list("ab #*_`~\"'“”-+>.:[]()<>/\t\n\u202e\u200d\u0301é")) | st.characters(), max_size=200
)


@given(MARKUP)
def test_a_title_can_be_shown_in_a_list(written: str) -> None:
    title = clean_title(written)

    assert len(title) <= LONGEST
    assert len(title.splitlines()) <= 1
    assert title == title.strip()
    assert not any(mark in title for mark in ("*", "`", "~~"))
    assert not any(category(one) in ("Cc", "Cs", "Co", "Cn") for one in title)
    assert title[:1] not in {'"', "'", "“", "«"} and title[-1:] not in {'"', "'", "”", "»"}


@given(MARKUP)
def test_cleaning_a_clean_title_changes_nothing(written: str) -> None:
    title = clean_title(written)

    assert clean_title(title) == title
