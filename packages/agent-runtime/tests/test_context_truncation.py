"""What is left out of a request that would not fit."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings, strategies as st

from agent_core import Message
from agent_runtime.context.window import truncate
from agent_runtime.summary import groups, prefix_length
from agent_runtime.tokens import TokenCounter

few = settings(max_examples=40)  # of each law, since there are many

COUNTER = TokenCounter()
COST = COUNTER.message(Message("user", "a" * 400))


def said(role: str, name: str) -> Message:
    return Message(role, name.ljust(400, "."))


def calls(*ids: str) -> Message:
    made = [{"id": one, "type": "function", "function": {"name": "read", "arguments": "{}"}} for one in ids]
    return Message("assistant", "", {"tool_calls": made})


def result(call_id: str) -> Message:
    return Message("tool", "done".ljust(400, "."), {"tool_call_id": call_id})


def names(messages: tuple[Message, ...]) -> list[str]:
    return [message.content.rstrip(".") for message in messages]


def conversation(turns: int) -> list[Message]:
    return [said("user" if turn % 2 == 0 else "assistant", str(turn)) for turn in range(turns)]


def test_what_fits_is_kept_as_it_is() -> None:
    messages = conversation(4)

    assert truncate(messages, 4 * COST, COUNTER, 1) == (tuple(messages), (), 4 * COST)


def test_the_oldest_go_first_until_the_rest_fits() -> None:
    kept, dropped, tokens = truncate(conversation(6), 4 * COST, COUNTER, 1)

    assert names(dropped) == ["0", "1"]
    assert names(kept) == ["2", "3", "4", "5"]
    assert tokens == 4 * COST


def test_system_messages_at_the_front_stay() -> None:
    messages = [said("system", "rules"), *conversation(6)]

    assert names(truncate(messages, 3 * COST, COUNTER, 1).kept) == ["rules", "4", "5"]


def test_as_many_of_the_first_stay_as_are_pinned() -> None:
    messages = [said("system", "rules"), said("user", "summary"), *conversation(6)]

    assert names(truncate(messages, 4 * COST, COUNTER, 1, pinned=2).kept) == ["rules", "summary", "4", "5"]


def test_recent_messages_stay_even_if_they_do_not_fit() -> None:
    kept, dropped, tokens = truncate(conversation(6), 1, COUNTER, 3)

    assert names(kept) == ["3", "4", "5"]
    assert len(dropped) == 3
    assert tokens == 3 * COST


def test_recent_messages_stay_with_their_whole_group() -> None:
    messages = [*conversation(3), calls("a", "b"), result("a"), result("b")]

    assert truncate(messages, 1, COUNTER, 1).kept == tuple(messages[2:])


def test_the_last_user_message_stays_while_the_calls_after_it_go() -> None:
    task = said("user", "task")
    work = [message for number in "abcde" for message in (calls(number), result(number))]

    kept = truncate([said("user", "old"), said("assistant", "older"), task, *work], 2 * COST, COUNTER, 1).kept

    assert kept == (task, *work[-2:])


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Conversations with calls of which some have no result, results without calls, notes in between."""
    text = st.integers(0, 40).map(lambda size: "a" * size * 10)
    plain = st.builds(Message, st.sampled_from(["user", "assistant", "system"]), text)
    answer = st.builds(
        lambda call_id, said: Message("tool", said, {"tool_call_id": call_id}), st.sampled_from("abcd"), text
    )
    made = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(lambda ids: calls(*ids))
    front = draw(st.lists(st.builds(Message, st.just("system"), text), max_size=2))
    return front + draw(st.lists(st.one_of(plain, answer, made), max_size=25))


BUDGETS = st.integers(0, 2000)
RECENT = st.integers(1, 8)


def places(messages: list[Message], kept: tuple[Message, ...]) -> list[int]:
    """Return where the kept messages stood, found by identity."""
    where = {id(message): place for place, message in enumerate(messages)}
    return [where[id(message)] for message in kept]


@few
@given(histories(), BUDGETS, RECENT)
def test_what_is_kept_is_a_part_of_the_conversation_in_its_order(
    messages: list[Message], budget: int, keep_recent: int
) -> None:
    kept, dropped, tokens = truncate(messages, budget, COUNTER, keep_recent)

    assert all(one < other for one, other in pairwise(places(messages, kept)))
    assert len(kept) + len(dropped) == len(messages)
    assert tokens == COUNTER.messages(kept)


@few
@given(histories(), BUDGETS, RECENT)
def test_no_group_is_ever_split(messages: list[Message], budget: int, keep_recent: int) -> None:
    kept = set(places(messages, truncate(messages, budget, COUNTER, keep_recent).kept))

    for group in groups(messages, prefix_length(messages)):
        assert kept.issuperset(group) or kept.isdisjoint(group)


@few
@given(histories(), BUDGETS, RECENT)
def test_front_end_and_last_request_always_stay(
    messages: list[Message], budget: int, keep_recent: int
) -> None:
    kept = places(messages, truncate(messages, budget, COUNTER, keep_recent).kept)
    asked = [place for place, message in enumerate(messages) if message.role == "user"]

    assert set(range(prefix_length(messages))) <= set(kept)
    assert set(range(len(messages))[-keep_recent:]) <= set(kept)
    assert not asked or asked[-1] in kept


@few
@given(histories(), BUDGETS, RECENT)
def test_truncating_again_changes_nothing(messages: list[Message], budget: int, keep_recent: int) -> None:
    once = truncate(messages, budget, COUNTER, keep_recent)

    assert truncate(once.kept, budget, COUNTER, keep_recent) == (once.kept, (), once.tokens)


@few
@given(histories(), BUDGETS, BUDGETS, RECENT)
def test_more_room_never_keeps_less(messages: list[Message], one: int, other: int, keep_recent: int) -> None:
    less, more = (truncate(messages, budget, COUNTER, keep_recent).kept for budget in sorted((one, other)))

    assert set(places(messages, less)) <= set(places(messages, more))


@few
@given(histories(), BUDGETS, RECENT)
def test_nothing_is_left_out_that_would_have_fitted(
    messages: list[Message], budget: int, keep_recent: int
) -> None:
    kept, dropped, _tokens = truncate(messages, budget, COUNTER, keep_recent)
    if not dropped:
        return
    removed = {id(message) for message in dropped}
    *_, last = (g for g in groups(messages, prefix_length(messages)) if id(messages[g.start]) in removed)

    assert COUNTER.messages([*kept, *(messages[place] for place in last)]) > budget
