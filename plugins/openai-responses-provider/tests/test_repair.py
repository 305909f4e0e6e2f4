from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.frozen import freeze
from openai_responses_provider import OpenAIResponsesProvider
from openai_responses_provider.items import is_client_call, is_output, is_reasoning, numbered

Items = list[dict[str, Any]]
provider = OpenAIResponsesProvider()

USER = {"type": "message", "role": "user", "content": "Tea?"}
SAID = {"type": "message", "role": "assistant", "content": "Yes"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "brew", "arguments": "{}"}
CUSTOM = {"type": "custom_tool_call", "call_id": "c1", "name": "draw", "input": "cup"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
GOOD: list[Items] = [
    [],
    [USER],
    [USER, THOUGHT, SAID],
    [USER, THOUGHT, CALL, OUTPUT, SAID],
    [USER, THOUGHT, SAID, CALL, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}, OUTPUT],
    [USER, CALL, OUTPUT, CALL, OUTPUT],
    [USER, CALL, USER, OUTPUT],
    [{"type": "item_reference", "id": "msg_1"}, {"type": "tea_ceremony"}],
    [{"type": "steep_call", "call_id": "c1"}, {"type": "pour_call_output", "call_id": "c2"}],
    [{"type": "tool_search_call", "call_id": None}, {"type": "tool_search_output", "call_id": None}],
]


def sent(items: Items) -> Items:
    state = {"config": {"model": "m"}, "tools": []}
    body: Items = provider.request_body(items, state, stream=False)["input"]
    return body


@pytest.mark.parametrize("items", GOOD)
def test_a_good_history_is_left_as_it_is(items: Items) -> None:
    assert provider.validate_native(items) == []
    assert provider.repair_native(items)[0] is items
    assert sent(items) == items


@pytest.mark.parametrize("call", [CALL, CUSTOM, {"type": "local_shell_call", "call_id": "c1"}])
def test_a_call_without_an_output_gets_one_that_tells_the_truth(call: dict[str, Any]) -> None:
    repaired, report = provider.repair_native([USER, call, USER])

    made_up = repaired[2]
    assert made_up["type"] == f"{call['type']}_output"
    assert made_up["call_id"] == "c1"
    assert "interrupted" in made_up["output"]
    assert made_up["_metadata"]["synthesized"] is True
    assert report == ["call 'c1': added an output, since there was none"]


def test_made_up_outputs_stand_behind_all_calls_of_the_turn() -> None:
    repaired, _report = provider.repair_native(
        [USER, CALL, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}]
    )

    assert [item.get("call_id") for item in repaired] == [None, "c1", "c2", "c1", "c2"]


def test_an_output_without_a_call_stays_but_is_not_sent() -> None:
    repaired, report = provider.repair_native([USER, OUTPUT, SAID])

    assert report == ["item 1: is not sent, since it answers no call ('c1')"]
    assert repaired[1]["output"] == "ok"
    assert sent(repaired) == sent([USER, OUTPUT, SAID]) == [USER, SAID]


def test_an_output_gets_the_type_that_its_call_wants() -> None:
    repaired, report = provider.repair_native([USER, CUSTOM, OUTPUT])

    assert repaired[2] == {**OUTPUT, "type": "custom_tool_call_output"}
    assert report == ["item 2: is now a custom_tool_call_output, as its call wants"]


@pytest.mark.parametrize("items", [[USER, THOUGHT], [USER, THOUGHT, USER], [USER, THOUGHT, THOUGHT, USER]])
def test_reasoning_that_leads_to_nothing_is_not_sent(items: Items) -> None:
    repaired, report = provider.repair_native(items)

    assert [is_reasoning(item) for item in repaired] == [is_reasoning(item) for item in items]
    assert len(report) == sum(map(is_reasoning, items))
    assert not any(map(is_reasoning, sent(repaired)))


def test_reasoning_goes_with_its_own_turn_only() -> None:
    turn = {"response_id": "r1", "turn_item": 0}
    next_turn = {"response_id": "r2", "turn_item": 0}
    items: Items = [USER, {**THOUGHT, "_metadata": turn}, {**SAID, "_metadata": next_turn}]

    assert provider.validate_native(items) == ["item 1: is not sent, since the reasoning leads to nothing"]


def test_ids_are_left_out_with_the_reasoning_before_them() -> None:
    said = {**SAID, "id": "msg_1"}
    turn = numbered([THOUGHT, said, {**THOUGHT, "id": "rs_2"}])

    assert sent([USER, *turn]) == [
        USER,
        {key: value for key, value in THOUGHT.items() if key != "id"},
        SAID,
    ]


def test_a_call_that_nobody_can_answer_is_not_sent_nor_the_thought_before_it() -> None:
    click = {"type": "computer_call", "call_id": "c1", "action": {"type": "click"}}
    repaired, report = provider.repair_native([USER, THOUGHT, click, USER])

    assert len(report) == 2
    assert sent(repaired) == [USER, USER]


_IDS = st.sampled_from(["c1", "c2"])
_ITEMS = st.one_of(
    st.just(USER),
    st.just(SAID),
    st.just({**SAID, "content": ""}),
    st.just(THOUGHT),
    st.just({"type": "tea_ceremony"}),
    st.builds(
        lambda kind, own, about: {**kind, "call_id": own, **about},
        st.sampled_from(
            [CALL, CUSTOM, OUTPUT, {**OUTPUT, "type": "custom_tool_call_output"}, {"type": "computer_call"}]
        ),
        _IDS,
        st.one_of(
            st.just({}),
            st.builds(
                lambda place, response: {"_metadata": {"turn_item": place, "response_id": response}},
                st.integers(0, 2),
                st.sampled_from(["r1", "r2"]),
            ),
        ),
    ),
)
_HISTORIES = st.lists(_ITEMS, max_size=10)


@settings(max_examples=200, deadline=None)
@given(_HISTORIES)
def test_a_repair_is_final_deterministic_drops_nothing_and_pairs_every_call(items: Items) -> None:
    """All laws on the same histories: making one up takes longer than checking it."""
    before = freeze(items)
    repaired, report = provider.repair_native(before)

    assert provider.repair_native(before) == (repaired, report)
    assert provider.repair_native(repaired) == (repaired, [])
    assert provider.validate_native(items) == report
    kept = iter(repaired)
    assert all(any(_same(item, other) for other in kept) for item in items)
    body = sent(before)
    every_call_has_its_output(body)
    assert sent(repaired) == body
    assert sum(item == USER for item in body) == items.count(USER)
    assert not body or not is_reasoning(body[-1])
    messages = provider.from_native_messages(before)
    places = [place for message in messages for place in message["metadata"]["native_indices"]]
    assert places == list(range(len(items)))


def every_call_has_its_output(body: Items) -> None:
    waiting: list[str] = []
    for item in body:
        if is_client_call(item):
            waiting.append(item["call_id"])
        elif is_output(item):
            waiting.remove(item["call_id"])
    assert waiting == []


def _same(item: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether it is the same item, maybe with a mark or the type that its call wants."""
    hidden = ("_metadata", "type") if is_output(item) else ("_metadata",)
    return all(item[key] == other.get(key) for key in item if key not in hidden)
