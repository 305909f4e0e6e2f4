"""The canonical form tells values apart; the readable form comes back as it was."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.encoding import canonical, parse, readable
from agent_core.frozen import freeze
from agent_core.history import History

if TYPE_CHECKING:
    from pathlib import Path


def has_no_pair(text: str) -> bool:
    """Two halves side by side are one character in JSON, so only lone ones can come back."""
    return not any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


any_text = st.text(st.characters(codec=None) | st.characters(categories=["Cs"])).filter(has_no_pair)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=8,
)


def as_typed(value: Any) -> Any:
    """Return *value* so that == also tells 1, 1.0, True and -0.0 apart."""
    if isinstance(value, dict):
        return {key: as_typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_typed(item) for item in value]
    return type(value), value, isinstance(value, float) and math.copysign(1, value)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=25)
@given(any_json)
def test_readable_text_comes_back_as_it_was(value: Any) -> None:
    assert as_typed(parse(readable(value))) == as_typed(value)


@settings(max_examples=25)
@given(any_json)
def test_readable_text_can_be_written_to_a_file(value: Any) -> None:
    assert parse(readable(value).encode()) == value


def test_readable_text_is_for_people() -> None:
    assert readable({"greeting": "Grüße, 世界"}) == '{\n  "greeting": "Grüße, 世界"\n}'


def test_half_a_surrogate_pair_is_escaped_and_other_characters_are_not(tmp_path: Path) -> None:
    text = readable(["é\ud800"])
    (tmp_path / "session.json").write_text(text, encoding="utf-8")

    assert text == '[\n  "é\\ud800"\n]'
    assert parse((tmp_path / "session.json").read_text(encoding="utf-8")) == ["é\ud800"]


def test_integers_past_64_bits_are_not_rounded() -> None:
    assert parse(readable({"n": 2**70 + 1})) == {"n": 2**70 + 1}


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nonsense", b"\xff\xfe\xfd"])
def test_what_is_not_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@settings(max_examples=25)
@given(any_json)
def test_the_order_of_keys_makes_no_difference(value: Any) -> None:
    assert canonical(reversed_keys(value)) == canonical(value)


@settings(max_examples=25)
@given(any_json)
def test_frozen_and_plain_values_have_one_canonical_form(value: Any) -> None:
    assert canonical(freeze(value)) == canonical(value)


@settings(max_examples=25)
@given(any_json, any_json)
def test_different_values_have_different_canonical_forms(one: Any, other: Any) -> None:
    same = as_typed(one) == as_typed(other)

    assert (canonical(one) == canonical(other)) is same


def test_the_canonical_form_of_json_is_json() -> None:
    assert json.loads(canonical({"b": [1, 2.5, None, True], "a": "ü"})) == {
        "a": "ü",
        "b": [1, 2.5, None, True],
    }


def test_a_history_counts_as_the_list_that_it_equals() -> None:
    assert canonical({"items": History([1, 2])}) == canonical({"items": [1, 2]})
    assert canonical({"items": History([1, 2]), "n": 2**70}) == canonical({"items": [1, 2], "n": 2**70})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 2**70}, {"n": 2**70 + 1}),
        ({"text": "\ud800"}, {"text": "\ud801"}),
        ({"kind": int}, {"kind": str}),
        ({1: "a", "b": 2**70}, {2: "a", "b": 2**70}),
        ({(1, 2): "a"}, {(1, 3): "a"}),
        ({"value": object()}, {"value": object()}),
    ],
    ids=["big integers", "surrogates", "classes", "mixed keys", "odd keys", "objects"],
)
def test_what_json_cannot_say_still_has_a_canonical_form_of_its_own(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(one)
    assert canonical(one) != canonical(other)


def test_nesting_that_is_too_deep_for_the_fast_encoder_still_has_a_canonical_form() -> None:
    def nested(depth: int, leaf: str) -> Any:
        value: Any = leaf
        for _ in range(depth):
            value = [value]
        return value

    assert canonical(nested(300, "a")) == canonical(nested(300, "a"))
    assert canonical(nested(300, "a")) != canonical(nested(300, "b"))
    assert canonical(nested(300, "a")) != canonical(nested(299, "a"))
