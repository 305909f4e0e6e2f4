"""Nothing that is unseen, or that reorders a line, gets onto a screen; ordinary text stays as it is."""

from __future__ import annotations

import sys
from unicodedata import bidirectional, category

import pytest
from hypothesis import given, strategies as st

from agent_core.clean_text import clean, escape, hides, mask, one_line, reveal

JOINERS = "\u200c\u200d\ufe0e\ufe0f"
# Format characters that are drawn: numbers of Arabic, Syriac and Kaithi are written below them.
DRAWN = {*map(chr, range(0x600, 0x606)), *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}
# Default_Ignorable_Code_Point that is not a format character, and the blank of Braille.
IGNORED = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u3164\uffa0\ufff0\ufff8\u2800"
TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"  # "I want", written with a joiner
ORDINARY = ["plain text,\n\tÄ 日本 ع", "👩\u200d❤\ufe0f\u200d👨", "1\ufe0f\u20e3", PERSIAN, "⠋⠙ ✓", "naïve"]
HOSTILE = st.text(
    st.sampled_from([*JOINERS, *IGNORED, "\x1b", "\u202e", "\u2066", "\U000e0041", "a", "é", "👩", "1", "\n"])
    | st.characters()
)


def is_unseen(char: str) -> bool:
    if category(char) in ("Cc", "Cs", "Zl", "Zp"):
        return char not in "\n\t"
    is_format = category(char) == "Cf" and char not in DRAWN
    is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0000" <= char <= "\U000e0fff"
    return is_format or is_selector or char in IGNORED or bidirectional(char) in TURNING


def seen_in(text: str) -> str:
    return "".join(char for char in text if not is_unseen(char) and char not in " \n")


def test_every_character_that_nobody_sees_is_known_and_no_other() -> None:
    """All of Unicode in one test: U+E0041 once passed one of several tables and not the others."""
    assigned = (char for char in map(chr, range(sys.maxunicode + 1)) if category(char) != "Cn")

    assert [f"U+{ord(char):04X}" for char in assigned if hides(char) != is_unseen(char)] == []


@given(HOSTILE)
def test_nothing_unseen_or_reordering_passes(text: str) -> None:
    for shown in (clean(text), escape(text), mask(text), reveal(text, joiners=True)):
        left = [place for place, char in enumerate(shown) if is_unseen(char)]
        assert all(shown[place] in JOINERS for place in left)
        assert 0 not in left
        assert not any(shown[place - 1].isascii() and shown[place - 1].isalpha() for place in left)
        assert "".join("j" if is_unseen(char) else "-" for char in shown).find("jjj") < 0
    assert not any(map(is_unseen, reveal(text)))
    assert not hides(reveal(text))


@given(HOSTILE)
def test_cleaning_twice_changes_nothing_and_what_is_seen_stays(text: str) -> None:
    for function in (clean, escape, mask, reveal, one_line):
        assert function(function(text)) == function(text)
    assert seen_in(clean(text)) == seen_in(text)
    assert len(mask(text)) == len(text)
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == escape(text) == mask(text) == reveal(text, joiners=True) == text


def test_each_way_shows_what_was_there() -> None:
    text = "a\x1b[2J\u202eb\U000e0041\u2800c"

    assert clean(text) == "a[2Jb c"
    assert escape(text) == "a\\x1b[2J\\u202eb\\ue0041 c"
    assert reveal(text) == "a<U+001B>[2J<U+202E>b<U+E0041><U+2800>c"
    assert mask(text) == "a\ufffd[2J\ufffdb\ufffd\ufffdc"


def test_what_must_be_exact_shows_spaces_too() -> None:
    assert reveal("a\xa0b\tc\n\ue000") == "a\xa0b\tc\n\ue000"
    assert reveal("a\xa0b\tc\n\ue000\u200b", exact=True) == "a<U+00A0>b<U+0009>c\n<U+E000><U+200B>"
    assert reveal("plain", exact=True) == "plain"


def test_joiners_are_kept_only_where_writing_needs_them() -> None:
    assert clean("pass\u200bword") == "password"
    assert clean("a\u200db") == "ab"
    assert clean("👩\u200d\u200c\u200d👩") == "👩👩"
    assert clean("\u200d👩") == "👩"


def test_one_line_is_one_line() -> None:
    assert one_line("  a\n\n\tb\u2028c \u200b d\x1b  ") == "a b c d"
