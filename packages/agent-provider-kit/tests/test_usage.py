"""Token counts in one shape."""

from __future__ import annotations

from typing import get_args

import pytest

from agent_provider_kit import Ending, make_usage
from agent_provider_kit.chat import read_usage
from agent_provider_kit.chat.chunks import ending_of, is_broken_off


def test_counts_that_were_not_given_are_left_out() -> None:
    assert make_usage(input_tokens=3, output_tokens=None, cached_input_tokens="2", reasoning_tokens=True) == {
        "input_tokens": 3
    }


def test_the_total_is_filled_in_where_it_can_be() -> None:
    assert make_usage(input_tokens=3, output_tokens=4)["total_tokens"] == 7
    assert make_usage(input_tokens=3, output_tokens=4, total_tokens=9)["total_tokens"] == 9
    assert "total_tokens" not in make_usage(output_tokens=4)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({}, {}),
        (
            {"prompt_tokens": 1, "completion_tokens": 2},
            {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            {
                "input_tokens": 9,
                "output_tokens": 2,
                "total_tokens": 11,
                "cached_input_tokens": 4,
                "cache_write_tokens": 3,
                "reasoning_tokens": 1,
            },
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 0, "prompt_cache_hit_tokens": 5},
            {"input_tokens": 9, "output_tokens": 0, "total_tokens": 9, "cached_input_tokens": 5},
        ),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, {"input_tokens": 9}),
        ({"prompt_tokens": 9, "prompt_tokens_details": []}, {"input_tokens": 9}),
    ],
)
def test_the_counts_of_chat_servers(theirs: dict[str, object], ours: dict[str, int]) -> None:
    assert read_usage(theirs) == ours


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("stop", "complete"),
        ("eos", "complete"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "filtered"),
        ("something new", "complete"),
    ],
)
def test_every_finish_reason_is_an_ending(reason: str, ending: str) -> None:
    assert ending_of(reason) == ending
    assert ending in get_args(Ending)
    assert not is_broken_off(reason)


@pytest.mark.parametrize("reason", ["error", "abort", "cancelled", "insufficient_system_resource"])
def test_giving_up_is_no_ending(reason: str) -> None:
    assert is_broken_off(reason)
