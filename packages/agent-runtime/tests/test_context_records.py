"""Summaries that stand for the beginning of a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import Message
from agent_runtime.context.records import (
    Record,
    compacted,
    current,
    digest,
    find_cut,
    read_records,
    summary_message,
    undo,
    write_records,
)


def conversation(length: int) -> list[Message]:
    return [Message("user" if turn % 2 == 0 else "assistant", f"turn {turn}") for turn in range(length)]


def record(messages: list[Message], upto: int, summary: str = "They talked.") -> Record:
    return Record(upto=upto, digest=digest(messages[:upto]), summary=summary)


SYSTEM = Message("system", "Be brief.")
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def test_a_record_survives_being_kept_as_data() -> None:
    kept = record(conversation(4), 2)

    assert read_records(write_records([kept])) == [kept]


@pytest.mark.parametrize(
    "saved",
    [
        None,
        "text",
        3,
        [None],
        [{}],
        [{"upto": 0, "digest": "", "summary": ""}],
        [{"upto": "2"}],
        [{"upto": 2}],
    ],
)
def test_what_cannot_be_read_is_no_record(saved: Any) -> None:
    assert read_records(saved) == []


def test_a_record_is_valid_as_long_as_the_beginning_stays() -> None:
    messages = conversation(6)
    kept = record(messages, 4)

    assert kept.is_valid(messages)
    assert kept.is_valid([*messages, Message("user", "more")])
    assert not kept.is_valid([Message("user", "edited"), *messages[1:]])
    assert not kept.is_valid(messages[:3])


def test_a_record_is_about_what_is_said_not_about_how_a_provider_keeps_it() -> None:
    messages = conversation(4)
    pointed = [message.with_native_indices((place,)) for place, message in enumerate(messages)]

    assert record(messages, 2).is_valid(pointed)


def test_other_calls_make_another_history() -> None:
    called = [Message("assistant", "", {"tool_calls": [CALL]}), *conversation(2)]
    other = [Message("assistant", "", {"tool_calls": [{**CALL, "id": "call_2"}]}), *conversation(2)]

    assert not record(called, 1).is_valid(other)


@settings(max_examples=40)
@given(st.lists(st.text(max_size=3), max_size=5), st.lists(st.text(max_size=3), max_size=5))
def test_digests_are_equal_for_equal_histories_only(one: list[str], other: list[str]) -> None:
    first, second = (digest(Message("user", text) for text in texts) for texts in (one, other))

    assert (first == second) == (one == other)


def test_the_newest_valid_record_counts() -> None:
    messages = conversation(8)
    old, new = record(messages, 2), record(messages, 4)
    edited = [*messages[:3], Message("assistant", "edited"), *messages[4:]]

    assert current([old, new], messages) == new
    assert current([old, new], edited) == old
    assert current([], messages) is None


def test_a_record_needs_something_to_follow_what_it_covers() -> None:
    messages = conversation(4)

    assert current([record(messages, 4)], messages) is None


def test_undoing_takes_back_the_newest_record() -> None:
    messages = conversation(6)
    old, new = record(messages, 2), record(messages, 4)

    assert undo([old, new]) == [old]
    assert undo([]) == []


def test_the_summary_stands_in_place_of_what_it_covers() -> None:
    messages = [SYSTEM, *conversation(6)]

    sent = compacted(messages, 4, "They talked.")

    assert sent == [SYSTEM, summary_message("They talked."), *messages[4:]]
    assert all(one is other for one, other in zip(sent[2:], messages[4:], strict=True))


def test_the_summary_does_not_speak_with_the_voice_of_the_system() -> None:
    assert summary_message("x").role == "user"


def test_the_task_stays_in_its_own_words_while_nothing_newer_was_asked() -> None:
    task = Message("user", "Count the files.")
    work = [Message("assistant", f"step {number}") for number in range(6)]

    assert compacted([task, *work], 4, "Three steps done.") == [
        summary_message("Three steps done."),
        task,
        *work[3:],
    ]


def test_of_a_task_in_several_messages_all_stay() -> None:
    asked = [Message("user", "Count the files."), Message("user", "All of them.")]
    messages = [Message("assistant", "Hello."), *asked, Message("assistant", "Well.")]

    assert compacted(messages, 2, "Hello.") == [summary_message("Hello."), *messages[1:]]


def test_an_older_task_is_left_to_the_summary_once_there_is_a_newer_one() -> None:
    messages = conversation(6)

    assert messages[2] not in compacted(messages, 3, "They talked.")


def test_the_place_of_a_cut_is_found_behind_what_a_prompt_has_at_its_front() -> None:
    messages = conversation(6)

    assert find_cut(messages, messages, 4) == 4
    assert find_cut([SYSTEM, *messages], messages, 4) == 5
    assert find_cut([SYSTEM, *messages, Message("user", "note")], messages, 4) == 5


def test_the_place_of_a_cut_is_found_among_newer_objects_that_say_the_same() -> None:
    messages = conversation(6)
    pointed = [message.with_native_indices((place,)) for place, message in enumerate(messages)]

    assert find_cut([SYSTEM, *pointed], messages, 4) == 5


def test_of_several_places_that_say_the_same_the_right_one_is_the_cut() -> None:
    messages = [Message("user" if turn % 2 == 0 else "assistant", "ok") for turn in range(8)]

    assert find_cut(messages, messages, 4) == 4
    assert find_cut([SYSTEM, *messages], messages, 4) == 5


def test_a_cut_that_is_not_there_is_not_found() -> None:
    messages = conversation(6)

    assert find_cut([Message("user", "something else")] * 6, messages, 4) is None
    assert find_cut([], messages, 4) is None
