"""Which messages belong together."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from agent_core import Message
from agent_runtime.summary import groups, last_user_turn, prefix_length, recent_start


def user(text: str = "hello") -> Message:
    return Message("user", text)


def says(text: str = "well") -> Message:
    return Message("assistant", text)


def calls(*ids: str) -> Message:
    made = [{"id": one, "type": "function", "function": {"name": "read", "arguments": "{}"}} for one in ids]
    return Message("assistant", "", {"tool_calls": made})


def result(call_id: str) -> Message:
    return Message("tool", "done", {"tool_call_id": call_id})


def sizes(*messages: Message) -> list[int]:
    return [len(group) for group in groups(messages, prefix_length(messages))]


def test_the_prefix_is_the_leading_run_of_system_messages() -> None:
    system = Message("system", "Be brief.")

    assert prefix_length([system, system, user(), system]) == 2
    assert prefix_length([user()]) == 0
    assert prefix_length([system]) == 1


def test_messages_without_calls_stand_alone() -> None:
    assert sizes(user(), says(), user()) == [1, 1, 1]


def test_a_call_and_its_results_are_one_group() -> None:
    assert sizes(user(), calls("a", "b"), result("a"), result("b"), says()) == [1, 3, 1]


def test_what_was_said_between_a_call_and_its_result_is_in_the_group() -> None:
    assert sizes(calls("a", "b"), result("a"), user("wait"), says(), result("b"), user()) == [5, 1]


def test_a_result_without_a_call_stays_with_what_stands_before_it() -> None:
    assert sizes(user(), says(), result("lost"), user()) == [1, 2, 1]


def test_a_result_at_the_very_front_is_a_group_of_its_own() -> None:
    assert sizes(Message("system", "x"), result("lost"), result("lost"), user()) == [2, 1]


def test_an_id_that_is_used_again_belongs_to_the_latest_call() -> None:
    assert sizes(calls("a"), result("a"), user(), calls("a"), result("a")) == [2, 1, 2]


def test_a_call_that_waits_for_a_result_stays_with_all_that_follows_it() -> None:
    assert sizes(user(), calls("a", "b"), result("a"), user(), user()) == [1, 4]
    assert sizes(calls("a"), user(), says(), user()) == [1, 1, 1, 1]  # the model has gone on without


def test_calls_that_cannot_be_read_do_no_harm() -> None:
    odd = Message("assistant", "", {"tool_calls": ["nonsense", {"id": 3}, {}]})

    assert sizes(odd, Message("tool", "x"), user()) == [2, 1]


MESSAGES = st.lists(
    st.one_of(
        st.builds(user),
        st.builds(says),
        st.builds(calls, st.sampled_from("abc"), st.sampled_from("abc")),
        st.builds(result, st.sampled_from("abcd")),
        st.just(Message("system", "note")),
    ),
    max_size=20,
)


@settings(max_examples=40)
@given(MESSAGES)
def test_groups_follow_each_other_without_gaps(messages: list[Message]) -> None:
    start = prefix_length(messages)
    places = [place for group in groups(messages, start) for place in group]

    assert places == list(range(start, len(messages)))


@settings(max_examples=40)
@given(MESSAGES)
def test_a_result_is_in_the_group_of_the_last_call_with_its_id(messages: list[Message]) -> None:
    group_of = {place: group for group in groups(messages, prefix_length(messages)) for place in group}
    callers: dict[str, int] = {}
    for place, message in enumerate(messages):
        if message.role == "tool" and (caller := callers.get(message.metadata["tool_call_id"])) is not None:
            assert group_of[place] == group_of[caller]
        for call in message.metadata.get("tool_calls", ()):
            callers[call["id"]] = place


def test_the_last_user_turn_is_every_message_that_the_user_sent_in_a_row() -> None:
    messages = [user(), says(), user(), user(), calls("a"), result("a")]

    assert last_user_turn(messages) == range(2, 4)
    assert last_user_turn(messages, 2) == range(1)
    assert not last_user_turn([says()])


def test_recent_messages_begin_with_a_whole_group() -> None:
    messages = [user(), calls("a", "b"), result("a"), result("b"), user()]
    found = groups(messages, 0)

    assert recent_start(messages, found, 1) == 4
    assert recent_start(messages, found, 2) == 1
    assert recent_start(messages, found, 99) == 0
