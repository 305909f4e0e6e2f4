"""Making any history one that servers accept."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from agent_core.frozen import freeze, thaw
from agent_provider_kit.chat import repair_items, validate_items

Dicts = list[dict[str, Any]]
USER = {"role": "user", "content": "Hi"}


def calling(*call_ids: Any, **fields: Any) -> dict[str, Any]:
    calls = [
        {"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in call_ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **fields}


def result(call_id: Any, content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def roles(items: Dicts) -> list[str]:
    return [item["role"] for item in items]


GOOD = [
    {"role": "system", "content": "Be brief"},
    USER,
    calling("a", "b"),
    result("b"),
    result("a"),
    {"role": "assistant", "content": "Hi", "their_own": 1},
    {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {}}]},
]


def test_a_good_history_stays_what_it_is() -> None:
    items = freeze(GOOD)

    assert repair_items(items)[0] is items
    assert validate_items(GOOD) == []


def test_a_call_without_a_result_gets_a_truthful_one() -> None:
    items, report = repair_items([calling("a", "b"), result("b"), USER])

    assert roles(items) == ["assistant", "tool", "tool", "user"]
    assert items[2]["tool_call_id"] == "a"
    assert "interrupted" in items[2]["content"] and "may have run" in items[2]["content"]
    assert items[2]["_metadata"] == {"synthesized": True, "interrupted": True}
    assert report == ["call 'a': added a result, since there was none"]


def test_a_call_at_the_end_gets_one_too() -> None:
    assert roles(repair_items([USER, calling("a")])[0]) == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    "history",
    [
        [result("a"), USER],
        [USER, result("a")],
        [calling("a"), result("a"), result("a"), USER],
        [calling("a"), result("a"), USER, result("a")],
        [calling("a"), result("a"), result("b"), USER],
    ],
)
def test_a_result_that_answers_no_call_is_left_out(history: Dicts) -> None:
    items, report = repair_items(history)

    assert len(items) == len(history) - 1
    assert "left out a result that answers no call" in report[0]


@pytest.mark.parametrize(
    "empty",
    [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "assistant"},
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": [{"type": "text", "text": ""}], "annotations": []},
        {"role": "assistant", "content": "", "_metadata": {"incomplete_tool_calls": [{}]}},
    ],
)
def test_an_answer_that_says_nothing_is_left_out(empty: dict[str, Any]) -> None:
    items, report = repair_items([USER, empty, USER])

    assert items == [USER, USER]
    assert "item 1: left out an assistant message that says nothing" in report


@pytest.mark.parametrize(
    "item",
    [
        {"role": "assistant", "content": "", "refusal": "no"},
        {"role": "assistant", "content": "", "reasoning_content": "hm"},
        {"role": "assistant", "content": None, "audio": {"id": "au_1"}},
    ],
)
def test_an_answer_that_says_something_else_stays(item: dict[str, Any]) -> None:
    assert repair_items([item]) == ([item], [])


@pytest.mark.parametrize("role", ["user", "system", "developer", "tool"])
def test_null_becomes_an_empty_text(role: str) -> None:
    history = (
        [calling("a"), {**result("a"), "content": None}]
        if role == "tool"
        else [{"role": role, "content": None}]
    )

    items, report = repair_items(history)

    assert items[-1]["content"] == ""
    assert "wrote an empty text in place of null" in report[0]


def test_empty_parts_are_left_out_but_never_the_message_of_a_person() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    history: Dicts = [
        {"role": "user", "content": [{"type": "text", "text": ""}, picture]},
        {"role": "user", "content": [{"type": "text", "text": ""}]},
        {"role": "user", "content": []},
    ]

    assert [item["content"] for item in repair_items(history)[0]] == [[picture], "", ""]


def test_calls_without_an_id_get_one_and_so_do_their_results() -> None:
    items, report = repair_items([calling(None, ""), result(""), {"role": "tool", "content": "two"}])

    ids = [call["id"] for call in items[0]["tool_calls"]]
    assert ids == ["call_0_0", "call_0_1"]
    assert [item["tool_call_id"] for item in items[1:]] == ids
    assert len(report) == 4


def test_the_same_id_twice_becomes_two() -> None:
    items, _ = repair_items([calling("a", "a"), result("a", "one"), result("a", "two")])

    assert [call["id"] for call in items[0]["tool_calls"]] == ["a", "call_0_1"]
    assert [(item["tool_call_id"], item["content"]) for item in items[1:]] == [
        ("a", "one"),
        ("call_0_1", "two"),
    ]


def test_an_id_that_is_made_up_is_not_one_that_is_taken() -> None:
    items, _ = repair_items([calling("call_0_1", None), result("call_0_1"), result(None)])

    assert [call["id"] for call in items[0]["tool_calls"]] == ["call_0_1", "call_0_1_"]


@pytest.mark.parametrize(
    ("arguments", "readable"),
    [
        ("", {}),
        (None, {}),
        ("null", {}),
        ({"x": 1}, {"x": 1}),
        ('{"x": ', {"unreadable": '{"x": '}),
        ("[1]", {"unreadable": [1]}),
        ("7", {"unreadable": 7}),
    ],
)
def test_arguments_that_are_no_object_become_one(arguments: Any, readable: Any) -> None:
    history = [calling("a"), result("a")]
    history[0]["tool_calls"][0]["function"]["arguments"] = arguments

    items, report = repair_items(history)

    assert orjson.loads(items[0]["tool_calls"][0]["function"]["arguments"]) == readable
    assert "made the arguments of call 'a' readable" in report[0]


def test_freeform_calls_are_left_as_they_are() -> None:
    call = {"id": "a", "type": "custom", "custom": {"name": "draw", "input": "a {line"}}
    history = [{"role": "assistant", "content": None, "tool_calls": [call]}, result("a")]

    assert repair_items(history) == (history, [])


ids = st.sampled_from(["a", "b", "", None])
texts = st.sampled_from(["", "Hi", "you"])
contents = (
    st.none() | texts | st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=2)
)
arguments = st.sampled_from(["{}", '{"x": 1}', "", "{", "[1]", "null", None])
calls = st.lists(
    st.builds(
        lambda call_id, args: {
            "id": call_id,
            "type": "function",
            "function": {"name": "f", "arguments": args},
        },
        ids,
        arguments,
    ),
    max_size=3,
)
histories = st.lists(
    st.one_of(
        st.builds(lambda c, r: {"role": r, "content": c}, contents, st.sampled_from(["user", "system"])),
        st.builds(lambda c: {"role": "assistant", "content": c}, contents),
        st.builds(lambda c, t: {"role": "assistant", "content": c, "tool_calls": t}, contents, calls),
        st.builds(lambda i, c: {"role": "tool", "tool_call_id": i, "content": c}, ids, contents),
    ),
    max_size=8,
)


def text_of(item: dict[str, Any]) -> str:
    content = item.get("content") or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@given(histories)
def test_a_repair_is_final_deterministic_keeps_every_word_and_pairs_every_call(history: Dicts) -> None:
    """All laws on the same histories: making one up takes longer than checking it."""
    before = deepcopy(history)
    items, report = repair_items(history)

    assert repair_items(items) == (items, [])
    assert validate_items(history) == report
    assert bool(report) == (items != history)
    assert (items, report) == repair_items(freeze(history))
    assert history == before
    assert thaw(freeze(history)) == before
    for role in ("user", "system"):
        said = [text_of(item) for item in history if item["role"] == role]
        assert [text_of(item) for item in items if item["role"] == role] == said
    every_call_has_one_result_right_behind_it(items)


def every_call_has_one_result_right_behind_it(items: Dicts) -> None:
    waiting: list[str] = []
    for item in items:
        if item["role"] == "tool":
            waiting.remove(item["tool_call_id"])
        else:
            assert waiting == []
            waiting = [call["id"] for call in item.get("tool_calls") or []]
            assert len(set(waiting)) == len(waiting) and all(waiting)
    assert waiting == []
