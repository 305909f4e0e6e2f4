"""Putting fields together of which nobody told us how."""

from __future__ import annotations

from typing import Any

import pytest

from agent_provider_kit.chat.reply import merge


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"a": "x"}, {"a": "y"}, {"a": "xy"}),
        ({"a": [1]}, {"a": [2]}, {"a": [1, 2]}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": True}, {"a": False}, {"a": False}),
        ({"a": "x"}, {"a": None}, {"a": "x"}),
        ({"a": "x"}, {"a": 1}, {"a": 1}),
        ({"a": {"b": "x", "c": 1}}, {"a": {"b": "y", "d": 2}}, {"a": {"b": "xy", "c": 1, "d": 2}}),
        ({"id": "x", "type": "t"}, {"id": "x", "type": "t"}, {"id": "x", "type": "t"}),
        ({"a": {"b": {"c": "x"}}}, {"a": {"b": {"c": "y"}}}, {"a": {"b": {"c": "xy"}}}),
    ],
)
def test_a_piece_is_added(before: dict[str, Any], piece: dict[str, Any], after: dict[str, Any]) -> None:
    merge(before, piece)

    assert before == after


def test_a_piece_that_is_merged_later_stays_as_it_was() -> None:
    into: dict[str, Any] = {}
    first = {"a": {"b": "x"}}

    merge(into, first)
    merge(into, {"a": {"b": "y"}})

    assert (into, first) == ({"a": {"b": "xy"}}, {"a": {"b": "x"}})
