"""How tokens are estimated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import Message, ToolDescriptor
from agent_runtime.tokens import LEAST_RATIO, MOST_RATIO, TokenCounter

few = settings(max_examples=40)  # of each law, since there are many

COUNTER = TokenCounter()
EMPTY = COUNTER.message(Message("user", ""))


def calling(arguments: str) -> Message:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": arguments}}
    return Message("assistant", "", {"tool_calls": [call]})


def test_english_text_has_a_token_for_four_characters() -> None:
    assert COUNTER.text("a" * 400) == 100


def test_chinese_text_has_about_a_token_per_character() -> None:
    assert COUNTER.text("茶" * 300) == 300


def test_cyrillic_text_counts_more_than_its_characters_suggest() -> None:
    assert COUNTER.text("чай " * 100) > 400 / 4


@few
@given(st.text())
def test_no_text_counts_less_than_a_quarter_of_its_characters_or_bytes(text: str) -> None:
    assert COUNTER.text(text) >= len(text) / 4
    assert COUNTER.text(text) >= len(text.encode("utf-8", "surrogatepass")) / 4


@few
@given(st.text(), st.text())
def test_a_longer_text_never_counts_less(text: str, more: str) -> None:
    assert COUNTER.text(text + more) >= COUNTER.text(text)


def test_half_a_surrogate_pair_counts_too() -> None:
    assert COUNTER.text("\ud83d") >= 1


def test_an_empty_message_still_costs_something() -> None:
    assert EMPTY > 0


def test_the_arguments_of_tool_calls_count() -> None:
    longer = COUNTER.message(calling('{"path": "' + "a" * 4000 + '"}')) - COUNTER.message(calling("{}"))

    assert longer == pytest.approx(1000, abs=10)


def test_reasoning_counts() -> None:
    thought = Message("assistant", "", {"reasoning": "a" * 4000})

    assert COUNTER.message(thought) - EMPTY == 1000


def test_an_image_counts_the_same_whatever_its_size() -> None:
    def with_image(data: str) -> int:
        part = {"type": "image", "mime_type": "image/png", "data": data}
        return COUNTER.message(Message("user", "", multipart_content=[part]))

    assert with_image("a" * 10) == with_image("a" * 1_000_000) == EMPTY + COUNTER.media_tokens


def test_text_that_stands_both_in_content_and_parts_counts_once() -> None:
    text = "a" * 4000
    message = Message("user", text, multipart_content=[{"type": "text", "text": text}])

    assert COUNTER.message(message) == pytest.approx(1000, abs=20)


def test_a_tool_result_counts_by_the_longer_of_its_two_forms() -> None:
    long: dict[str, Any] = {"type": "tool_result", "text": "a" * 4000}

    assert COUNTER.message(Message("tool", "short", tool_result=long)) > 1000
    assert COUNTER.message(Message("tool", "a" * 4000, tool_result={"text": "short"})) > 1000


def test_content_that_is_no_text_counts_by_what_is_in_it() -> None:
    assert COUNTER.message(Message("tool", {"rows": ["a" * 4000, 1, None]})) > 1000


def test_the_schemas_of_tools_count() -> None:
    schema = {"name": "read", "description": "a" * 4000}

    assert COUNTER.tools([ToolDescriptor(name="read", schema=schema, plugin="files")]) > 1000
    assert COUNTER.tools([]) == 0


@few
@given(st.lists(st.text()), st.lists(st.text()), st.floats(LEAST_RATIO, MOST_RATIO))
def test_the_sum_over_messages_is_the_estimate_for_all(
    one: list[str], other: list[str], ratio: float
) -> None:
    counter = TokenCounter(ratio)
    first, second = ([Message("user", text) for text in texts] for texts in (one, other))

    apart = counter.messages(first) + counter.messages(second)
    assert apart - 1 <= counter.messages(first + second) <= apart  # it is rounded up once, and not twice


texts = st.lists(st.text(max_size=9), max_size=12)


@few
@given(st.lists(st.tuples(texts, st.booleans(), st.integers(0, 12)), max_size=6))
def test_what_a_conversation_weighed_before_changes_no_sum(
    turns: list[tuple[list[str], bool, int]],
) -> None:
    """Conversations grow, are cut and edited, and are sent with and without a system prompt."""
    remembering = TokenCounter(memory={})
    conversation: list[Message] = []
    for said, with_prompt, cut in turns:
        conversation = [*conversation[:cut], *(Message("user", text) for text in said)]
        sent = [Message("system", "Be brief."), *conversation] if with_prompt else conversation

        assert remembering.messages(sent) == COUNTER.messages(sent)


def test_a_counter_learns_from_what_was_really_counted() -> None:
    learnt = COUNTER.calibrated(estimated=2000, actual=3000)

    assert 1 < learnt.ratio < 1.5
    assert learnt.text("a" * 4000) > COUNTER.text("a" * 4000)


def test_a_counter_that_is_right_learns_nothing() -> None:
    assert COUNTER.calibrated(estimated=2000, actual=2000) == COUNTER


def test_a_short_prompt_teaches_less_than_a_long_one() -> None:
    assert COUNTER.calibrated(10, 30).ratio < COUNTER.calibrated(10_000, 30_000).ratio


@few
@given(st.lists(st.tuples(st.integers(-10, 10**9), st.integers(-10, 10**9)), max_size=20))
def test_the_ratio_stays_within_its_bounds(requests: list[tuple[int, int]]) -> None:
    counter = COUNTER
    for estimated, actual in requests:
        counter = counter.calibrated(estimated, actual)

    assert LEAST_RATIO <= counter.ratio <= MOST_RATIO


@few
@given(st.floats(0.3, 3.5))
def test_the_ratio_comes_to_the_truth_after_some_requests(truth: float) -> None:
    counter = COUNTER
    for _ in range(20):
        counter = counter.calibrated(counter.text("a" * 40_000), round(10_000 * truth))

    assert counter.ratio == pytest.approx(truth, rel=0.01)
