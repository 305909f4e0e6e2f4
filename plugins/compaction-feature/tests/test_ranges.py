"""Cuts never part what belongs together, whatever the conversation looks like."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, Message
from agent_core.testing import ScriptedProvider
from compaction_feature import CompactionFeature
from compaction_feature.ranges import Place, RangeError, choose_range, find_cuts, items_of, native_places

WORDS = "some words that take their room " * 20


def call(*ids: str) -> Message:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return Message("assistant", WORDS, {"tool_calls": calls})


def result(call_id: str) -> Message:
    return Message("tool", WORDS, {"tool_call_id": call_id})


USER, ANSWER, SYSTEM = Message("user", WORDS), Message("assistant", WORDS), Message("system", WORDS)


def one_each(messages: list[Message]) -> list[Place]:
    return [(place,) for place in range(len(messages))]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Exchanges in any order: plain ones, ones with calls, ids used again, one left open at the end."""
    messages = [SYSTEM] * draw(st.integers(0, 2))
    for _ in range(draw(st.integers(1, 6))):
        messages.append(USER)
        ids = draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3))
        if ids:
            messages += [call(*ids), *map(result, draw(st.permutations(ids)))]
        messages.append(ANSWER)
    if draw(st.booleans()):
        messages += [USER, call("open")]
    return messages


@settings(max_examples=40)
@given(conversations(), st.data())
def test_a_range_holds_every_call_with_all_of_its_results(
    messages: list[Message], data: st.DataObject
) -> None:
    cuts = find_cuts(messages, one_each(messages))
    start = data.draw(st.integers(0, len(messages)))
    end = data.draw(st.integers(0, len(messages)))
    try:
        chosen = choose_range(messages, cuts, start, end, keep=0)
    except RangeError:
        return

    inside = messages[chosen.start : chosen.end]
    called = [one["id"] for message in inside for one in message.metadata.get("tool_calls", ())]
    answered = [message.metadata["tool_call_id"] for message in inside if message.role == "tool"]
    assert sorted(called) == sorted(answered)
    assert start <= chosen.start < chosen.end <= end


@settings(max_examples=40)
@given(conversations())
def test_everything_but_an_open_call_can_be_cut_out(messages: list[Message]) -> None:
    cuts = find_cuts(messages, one_each(messages))
    is_open = bool(messages[-1].metadata.get("tool_calls"))

    chosen = choose_range(messages, cuts, 0, len(messages), keep=0)

    assert (chosen.start, chosen.end) == (0, len(messages) - is_open)


@settings(max_examples=40)
@given(conversations(), st.data())
def test_undoing_gives_back_what_there_was(messages: list[Message], data: st.DataObject) -> None:
    core = AgentCore()
    core.register_provider(ScriptedProvider(["short"]))
    core.register_feature(CompactionFeature)
    session = core.append_messages(core.create_session("s"), messages)
    if data.draw(st.booleans()):
        session = core.rebuild_native_history(session, {})
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(messages)), st.integers(0, len(messages)))))

    compacted, told = core.execute_session_action(
        session, {}, "compaction", "compact_range", {"start": start, "end": end}
    )
    back, _ = core.execute_session_action(compacted, {}, "compaction", "undo_compaction", {})

    plain = [message.with_native_indices(None) for message in session.messages]
    assert [message.with_native_indices(None) for message in back.messages] == plain
    if told["status"] == "ok":
        assert len(compacted.messages) == len(messages) - (told["end"] - told["start"]) + 1
        assert [m.native_indices for m in back.messages] == [(place,) for place in range(len(messages))]
    else:
        assert compacted == session


def test_messages_that_share_an_item_stay_together() -> None:
    cuts = find_cuts([USER, ANSWER, USER, ANSWER], [(0,), (1, 2), (2,), (3,)])

    assert cuts == [True, True, False, True, True]


def test_a_result_without_a_call_stays_with_what_is_before_it() -> None:
    cuts = find_cuts([USER, result("lost"), ANSWER], one_each([USER] * 3))

    assert cuts == [True, False, True, True]


def test_a_call_that_the_model_has_gone_on_without_is_not_waited_for() -> None:
    cuts = find_cuts([USER, call("lost"), USER, ANSWER], one_each([USER] * 4))

    assert all(cuts)


def test_instructions_in_front_that_belong_to_nobody_stay() -> None:
    assert items_of([(1,), (2,), (4,)], 0, 2) == range(1, 3)


def test_what_belongs_to_nobody_goes_with_the_message_behind_it() -> None:
    assert items_of([(1,), (2,), (4,)], 2, 3) == range(3, 5)


def test_a_message_without_items_has_an_empty_place() -> None:
    assert items_of([(0,), (), (1,)], 1, 2) == range(1, 1)
    assert items_of([(), (3,)], 0, 1) == range(3, 3)


def test_messages_whose_items_nobody_knows_are_one_block() -> None:
    core = AgentCore()
    session = core.append_messages(core.create_session(), [USER, ANSWER])

    places = native_places(session, [{"x": 1}, {"x": 2}, {"x": 3}], lambda _messages: [{"y": 1}])

    assert places == [(0, 1, 2), (0, 1, 2)]
    assert find_cuts([USER, ANSWER], places) == [True, False, True]


@pytest.mark.parametrize("count", [1, 3])
def test_system_messages_in_front_stay_by_default(count: int) -> None:
    messages = [SYSTEM] * count + [USER, ANSWER, USER]

    chosen = choose_range(messages, find_cuts(messages, one_each(messages)), None, None, keep=1)

    assert (chosen.start, chosen.end) == (count, count + 2)
