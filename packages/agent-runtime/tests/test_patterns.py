"""The pattern language, held against a matcher that is too simple to be wrong."""

from __future__ import annotations

import copy
import pickle
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from agent_runtime.errors import SpecError
from agent_runtime.patterns import Glob, escape

few = settings(max_examples=40)  # of each law, since there are many

SYMBOLS = st.sampled_from(["a", "b", "/", "\n", "*", "?", "\\*", "\\?", "\\\\", "\\a"])
PATTERNS = st.lists(SYMBOLS, min_size=1, max_size=9).map("".join)
TEXTS = st.text("ab/\n*?\\", max_size=9)


def slowly(pattern: str, text: str) -> bool:
    """Say by the definition of the language whether *text* fits, however long that takes."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(slowly(pattern[1:], text[start:]) for start in range(len(text) + 1))
    if pattern[0] == "\\":
        return text[:1] == pattern[1] and slowly(pattern[2:], text[1:])
    return bool(text) and pattern[0] in ("?", text[0]) and slowly(pattern[1:], text[1:])


def every(alphabet: str, longest: int, *, shortest: int) -> list[str]:
    lengths = range(shortest, longest + 1)
    return ["".join(word) for length in lengths for word in product(alphabet, repeat=length)]


def test_all_small_patterns_and_texts_agree_with_the_definition() -> None:
    texts = every("ab", 5, shortest=0)

    for pattern in every("ab*?", 5, shortest=1):
        glob = Glob.parse(pattern)
        assert [glob.matches(text) for text in texts] == [slowly(pattern, text) for text in texts], pattern


@few
@given(PATTERNS, TEXTS)
def test_matching_agrees_with_the_definition(pattern: str, text: str) -> None:
    assert Glob.parse(pattern).matches(text) == slowly(pattern, text)


@few
@given(st.lists(st.tuples(SYMBOLS, st.text("ab/\n*?\\", max_size=3)), min_size=1, max_size=9))
def test_a_text_made_from_a_pattern_fits(pairs: list[tuple[str, str]]) -> None:
    """Random texts rarely fit; these were made to."""
    filled = [
        taken if symbol == "*" else (taken or "a")[0] if symbol == "?" else symbol[-1]
        for symbol, taken in pairs
    ]

    assert Glob.parse("".join(symbol for symbol, _ in pairs)).matches("".join(filled))


@few
@given(st.text(min_size=1), st.text())
def test_an_escaped_text_matches_itself_and_nothing_else(text: str, other: str) -> None:
    glob = Glob.parse(escape(text))

    assert glob.matches(text)
    assert glob.matches(other) == (other == text)
    assert glob.is_literal and glob.literal_length == len(text)


@few
@given(PATTERNS, TEXTS)
def test_no_text_that_fits_is_shorter_than_what_the_pattern_spells_out(pattern: str, text: str) -> None:
    glob = Glob.parse(pattern)

    assert not glob.matches(text) or len(text) >= glob.literal_length


@pytest.mark.parametrize(
    ("pattern", "is_literal", "length"),
    [("read", True, 4), ("read_*", False, 5), ("?", False, 0), ("a**b", False, 2), (r"\*\a", True, 2)],
)
def test_a_pattern_knows_what_it_spells_out(pattern: str, is_literal: bool, length: int) -> None:
    glob = Glob.parse(pattern)

    assert (glob.is_literal, glob.literal_length) == (is_literal, length)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*a*a*a*a*b", "a" * 100_000),
        ("*a?a*a?a*b?b*", "a" * 100_000),
        ("*?" * 200 + "b", "a" * 100_000),
        ("*" + "a" * 100 + "?b*", "a" * 100_000),
        ("*" * 10_000 + "b", "a" * 100_000),
    ],
)
def test_patterns_that_defeat_backtracking_come_to_an_end(pattern: str, text: str) -> None:
    assert not Glob.parse(pattern).matches(text)
    assert Glob.parse(pattern).matches(f"{text}bbb")


def test_a_star_takes_line_ends_and_case_matters() -> None:
    assert Glob.parse("git *").matches("git log\r\n\u2028\0--all\n")
    assert not Glob.parse("git *").matches("Git log")


@pytest.mark.parametrize("pattern", ["", None, 3, ["a"]])
def test_what_is_no_text_is_refused(pattern: object) -> None:
    with pytest.raises(SpecError, match="not empty"):
        Glob.parse(pattern)  # type: ignore[arg-type]  # bad on purpose


@pytest.mark.parametrize("pattern", ["\\", "a\\", "\\\\\\"])
def test_a_backslash_at_the_end_is_refused(pattern: str) -> None:
    with pytest.raises(SpecError, match="ends in a backslash: double it"):
        Glob.parse(pattern)


@few
@given(PATTERNS, TEXTS)
def test_a_copy_matches_the_same(pattern: str, text: str) -> None:
    glob = Glob.parse(pattern)

    for other in (copy.deepcopy(glob), pickle.loads(pickle.dumps(glob))):
        assert other == glob and other.matches(text) == glob.matches(text)


# --- two patterns -----------------------------------------------------------------------------------------


def test_all_small_patterns_meet_where_a_text_fits_both() -> None:
    """Two patterns of three symbols that share a text share one that is no longer than both together."""
    texts = every("ab", 7, shortest=0)
    fitting = {
        pattern: {text for text in texts if slowly(pattern, text)} for pattern in every("ab*?", 3, shortest=1)
    }

    for pattern, other in product(fitting, repeat=2):
        one, two = Glob.parse(pattern), Glob.parse(other)
        assert one.meets(two) == bool(fitting[pattern] & fitting[other]), (pattern, other)
        if one.covers(two):
            assert fitting[other] <= fitting[pattern], (pattern, other)


@few
@given(PATTERNS, TEXTS.filter(bool))
def test_a_text_that_is_known_is_covered_and_met_if_it_fits(pattern: str, text: str) -> None:
    glob, known = Glob.parse(pattern), Glob.parse(escape(text))

    assert glob.covers(known) == glob.meets(known) == known.meets(glob) == glob.matches(text)


@few
@given(PATTERNS, PATTERNS, TEXTS)
def test_what_is_covered_fits_and_what_fits_both_is_met(pattern: str, other: str, text: str) -> None:
    one, two = Glob.parse(pattern), Glob.parse(other)

    if two.matches(text):
        assert one.matches(text) or not one.covers(two)
        assert one.meets(two) or not one.matches(text)
    assert one.meets(two) == two.meets(one)


@few
@given(PATTERNS)
def test_a_pattern_covers_itself_and_everything_covers_it(pattern: str) -> None:
    glob = Glob.parse(pattern)

    assert glob.covers(glob) and Glob.parse("*").covers(glob)


@pytest.mark.parametrize(
    ("pattern", "other", "covers", "meets"),
    [
        ("git *", "git * origin", True, True),
        ("git push*", "git * origin", False, True),
        ("git push*", "git log *", False, False),
        ("cat *.env*", "cat .e*v", False, True),
        ("rm ?", "rm *", False, True),
        ("*", "**", True, True),
        ("a", "b", False, False),
    ],
)
def test_what_may_be_is_covered_or_met(pattern: str, other: str, covers: bool, meets: bool) -> None:
    one, two = Glob.parse(pattern), Glob.parse(other)

    assert (one.covers(two), one.meets(two)) == (covers, meets)


def test_long_patterns_are_compared_in_a_moment() -> None:
    long = Glob.parse("a*b?" * 5_000)

    assert long.meets(long) and long.covers(long)
    assert not Glob.parse("c*").meets(long)
