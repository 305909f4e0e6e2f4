"""How much fits into a request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_runtime.context.window import ASSUMED_WINDOW, check_limits, limits
from agent_runtime.errors import SpecError
from agent_runtime.specs import ContextPolicy, ModelSpec


def model(**given: Any) -> ModelSpec:
    return ModelSpec("m", "p", **given)


def test_the_smaller_window_counts() -> None:
    assert limits(ContextPolicy(max_tokens=1000), model(context_window=8000)).window == 1000
    assert limits(ContextPolicy(max_tokens=9000), model(context_window=8000)).window == 8000


def test_one_window_is_enough() -> None:
    assert limits(ContextPolicy(max_tokens=1000), model()).known
    assert limits(ContextPolicy(), model(context_window=8000)).known


def test_a_window_that_nobody_knows_is_only_assumed() -> None:
    window, _reserve, known = limits(ContextPolicy(), model())

    assert (window, known) == (ASSUMED_WINDOW, False)


def test_room_is_kept_for_the_answer() -> None:
    assert limits(ContextPolicy(reserve_tokens=100), model(context_window=8000)).budget == 7900
    assert limits(ContextPolicy(), model(context_window=8000, max_output_tokens=3000)).budget == 5000
    assert limits(ContextPolicy(), model(context_window=8000)).budget == 7000


def test_a_model_that_answers_at_length_leaves_half_the_window_for_the_question() -> None:
    long = model(context_window=100_000, max_output_tokens=64_000)

    assert limits(ContextPolicy(max_tokens=8000), long).budget == 4000


def test_a_reserve_that_leaves_nothing_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"reserve_tokens \(9000\) leaves no room .* 'm' \(8000\)") as caught:
        check_limits(ContextPolicy(reserve_tokens=9000), model(context_window=8000))

    assert caught.value.field == "context_policy.reserve_tokens"
    check_limits(ContextPolicy(reserve_tokens=7999), model(context_window=8000))
    check_limits(ContextPolicy(reserve_tokens=10**9), model())


SIZES = st.none() | st.integers(1, 10**6)


@given(SIZES, SIZES, SIZES, SIZES)
def test_there_is_always_room_for_something(
    window: int | None, most: int | None, reserve: int | None, output: int | None
) -> None:
    try:
        policy = ContextPolicy(max_tokens=most, reserve_tokens=reserve)
        spec = model(context_window=window, max_output_tokens=output)
    except SpecError:
        return

    assert 1 <= limits(policy, spec).budget <= limits(policy, spec).window
