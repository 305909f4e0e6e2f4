"""What a provider remembers of a conversation never changes what is sent, whatever request comes next."""

from __future__ import annotations

import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from agent_provider_kit import encoded, known_good, remember_good
from agent_provider_kit.chat import repair_items, without_internal

Item = dict[str, Any]

_CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_ITEMS = st.sampled_from(
    [
        {"role": "user", "content": "hello"},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": "hello", "_metadata": {"usage": 1}},
        {"role": "assistant", "content": None, "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        {"role": "tool", "tool_call_id": "call_2", "content": "of nobody's call"},
    ]
)


def _sent(items: list[Item], memory: dict[str, Any] | None, form: str = "plain") -> Any:
    return orjson.loads(encoded(items, memory, form, without_internal).contents)


@given(st.lists(st.lists(_ITEMS, max_size=6), max_size=6))
def test_any_histories_with_one_memory_are_repaired_and_sent_as_without(histories: list[list[Item]]) -> None:
    memory: dict[str, Any] = {}
    for history in histories:
        for items in (history, [*histories[0], *history]):  # another branch, and a longer version
            repaired = repair_items(items, memory)

            assert repaired == repair_items(items)
            assert _sent(repaired[0], memory) == [without_internal(item) for item in repaired[0]]


def test_only_what_is_new_is_encoded() -> None:
    made: list[Item] = []

    def as_sent(item: Item) -> Item:
        made.append(item)
        return item

    memory: dict[str, Any] = {}
    first = [{"role": "user", "content": str(number)} for number in range(100)]
    longer = [*first, {"role": "assistant", "content": "yes"}]
    encoded(first, memory, "plain", as_sent)
    made.clear()

    encoded(longer, memory, "plain", as_sent)
    assert made == longer[100:]

    encoded(longer[:50], memory, "plain", as_sent)
    assert made == longer[100:]

    encoded(longer, memory, "in another form", as_sent)
    assert made[1:] == longer


@pytest.mark.parametrize("before", [0, 1, 999, 1_000, 1_001, 2_400])
def test_a_long_history_is_sent_like_any_other(before: int) -> None:
    items = [{"role": "user", "content": str(number)} for number in range(2_400)]
    memory: dict[str, Any] = {}
    _sent(items[:before], memory)

    assert _sent(items, memory) == items
    assert _sent(items[:1_500], memory) == items[:1_500]
    assert _sent(items, memory) == items


def test_encoding_a_long_history_takes_the_memory_of_its_bytes() -> None:
    items = [{"role": "user", "content": str(number)} for number in range(20_000)]
    tracemalloc.start()
    try:
        sent = encoded(items, None, "plain", without_internal)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 10 * len(bytes(sent.contents))


def test_a_beginning_that_changed_is_looked_at_again() -> None:
    memory: dict[str, Any] = {}
    good = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    remember_good(good, memory)

    assert known_good([*good, {"role": "user", "content": "c"}], memory) == 2
    assert known_good([{"role": "user", "content": "x"}, *good], memory) == 0
    assert known_good(good[:1], memory) == 0
    assert known_good(good, None) == 0
