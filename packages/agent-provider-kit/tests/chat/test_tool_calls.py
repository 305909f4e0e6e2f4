"""Tool calls out of the pieces that servers send."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st

from agent_provider_kit.chat.tool_calls import ToolCallPieces, shown, split_usable

Dicts = list[dict[str, Any]]


def piece(index: int | None = None, call_id: str | None = None, **function: Any) -> dict[str, Any]:
    given = {"index": index, "id": call_id, "function": function or None}
    return {key: value for key, value in given.items() if value is not None}


def put_together(*pieces: dict[str, Any]) -> Dicts:
    calls = ToolCallPieces()
    for each in pieces:
        calls.add(each)
    return calls.calls()


def summary(calls: Dicts) -> list[tuple[str, str, str]]:
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]


def test_pieces_are_joined_by_index() -> None:
    calls = put_together(
        piece(0, "a", name="f", arguments=""),
        piece(1, "b", name="g", arguments="{"),
        piece(0, arguments='{"x"'),
        piece(1, arguments="}"),
        piece(0, arguments=":1}"),
    )

    assert summary(calls) == [("a", "f", '{"x":1}'), ("b", "g", "{}")]
    assert [call["type"] for call in calls] == ["function", "function"]


def test_whole_calls_need_no_index() -> None:
    calls = put_together(
        piece(None, "a", name="f", arguments="{}"), piece(None, "b", name="f", arguments='{"x":1}')
    )

    assert summary(calls) == [("a", "f", "{}"), ("b", "f", '{"x":1}')]


def test_one_index_for_several_calls_is_taken_apart_by_id() -> None:
    calls = put_together(piece(0, "a", name="f", arguments="{}"), piece(0, "b", name="g", arguments="{}"))

    assert summary(calls) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_one_index_for_several_calls_without_ids_is_taken_apart_by_name_and_arguments() -> None:
    calls = put_together(
        piece(0, "", name="f", arguments='{"x":1}'),
        piece(0, "", name="f", arguments='{"x":2}'),
        piece(0, "", name="g", arguments="{}"),
    )

    assert [(name, arguments) for _, name, arguments in summary(calls)] == [
        ("f", '{"x":1}'),
        ("f", '{"x":2}'),
        ("g", "{}"),
    ]
    assert len({call["id"] for call in calls}) == 3


def test_another_id_in_each_piece_is_still_one_call() -> None:
    calls = put_together(
        piece(0, "a", name="f", arguments='{"x"'), piece(0, "b", arguments=":1"), piece(0, "c", arguments="}")
    )

    assert summary(calls) == [("a", "f", '{"x":1}')]


def test_id_and_name_in_each_piece_are_still_one_call() -> None:
    for index in (0, None):
        calls = put_together(
            piece(index, "a", name="f", arguments='{"x"'),
            piece(index, "a", name="f", arguments=":1}"),
            piece(index, "a", name="f", arguments=""),
        )

        assert summary(calls) == [("a", "f", '{"x":1}')]


def test_pieces_without_index_and_id_go_on_with_the_last_call() -> None:
    calls = put_together(piece(None, "a", name="f", arguments="{"), piece(arguments="}"))

    assert summary(calls) == [("a", "f", "{}")]


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_id_is_made_up_once(missing: str | None) -> None:
    calls = ToolCallPieces()
    calls.add(piece(0, missing, name="f", arguments="{}"))

    [first], [again] = calls.calls(), calls.calls()

    assert first["id"].startswith("call_")
    assert first == again


def test_the_same_id_twice_becomes_two_ids() -> None:
    first, second = put_together(
        piece(0, "a", name="f", arguments="{}"), piece(1, "a", name="g", arguments="{}")
    )

    assert first["id"] == "a"
    assert second["id"] not in ("a", "")


def test_arguments_may_be_an_object() -> None:
    assert summary(put_together(piece(0, "a", name="f", arguments={"x": 1}))) == [("a", "f", '{"x":1}')]


def test_a_call_without_arguments_has_empty_ones() -> None:
    assert summary(put_together(piece(0, "a", name="f"))) == [("a", "f", "")]


def test_freeform_calls_grow_as_well() -> None:
    calls = put_together(
        {"index": 0, "id": "a", "custom": {"name": "draw", "input": "a "}},
        {"index": 0, "custom": {"input": "line"}},
    )

    assert calls == [{"type": "custom", "id": "a", "custom": {"name": "draw", "input": "a line"}}]


def test_fields_that_only_the_server_understands_are_kept() -> None:
    signature = {"google": {"thought_signature": "xyz"}}
    calls = put_together({**piece(0, "a", name="f", arguments="{}"), "extra_content": signature})

    assert calls[0]["extra_content"] == signature
    assert "index" not in calls[0]


def test_a_piece_shows_its_number_and_what_it_brings() -> None:
    assert shown(piece(0, "a", name="f", arguments=""), 3) == {
        "index": 3,
        "id": "a",
        "name": "f",
        "arguments": "",
    }
    assert shown(piece(0, arguments='{"x"'), 0) == {"index": 0, "arguments": '{"x"'}
    assert shown({"custom": {"input": "a"}}, 1) == {"index": 1, "input": "a"}
    assert shown({}, 0) == {"index": 0}


class TestUsable:
    WHOLE: ClassVar[Dicts] = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    ]

    def test_all_calls_of_a_finished_answer_are(self) -> None:
        odd = [{"id": "b", "type": "function", "function": {"name": "f", "arguments": "{not json"}}]

        assert split_usable(self.WHOLE + odd, finished=True) == (self.WHOLE + odd, [])

    @pytest.mark.parametrize("arguments", ["", "{", '{"x": 1', '"x"', "7", "[1]", "null", '{"x":1}}'])
    def test_a_call_that_was_cut_off_is_not(self, arguments: str) -> None:
        cut = [{"id": "b", "type": "function", "function": {"name": "f", "arguments": arguments}}]

        assert split_usable(self.WHOLE + cut, finished=False) == (self.WHOLE, cut)

    def test_a_freeform_call_of_an_unfinished_answer_is_not(self) -> None:
        freeform = [{"id": "b", "type": "custom", "custom": {"name": "draw", "input": "a line"}}]

        assert split_usable(freeform, finished=False) == ([], freeform)

    def test_a_call_of_nothing_is_not(self) -> None:
        nameless: Dicts = [{"id": "b", "type": "function", "function": {"arguments": "{}"}}, {"id": "c"}]

        assert split_usable(nameless, finished=True) == ([], nameless)


@given(st.lists(st.tuples(st.sampled_from("fgh"), st.integers(0, 99)), min_size=1, max_size=4), st.data())
def test_however_arguments_are_cut_the_calls_are_the_same(
    calls: list[tuple[str, int]], data: st.DataObject
) -> None:
    gathered = ToolCallPieces()
    for index, (name, number) in enumerate(calls):
        arguments = f'{{"number": {number}}}'
        cut = data.draw(st.integers(0, len(arguments)))
        gathered.add(piece(index, f"c{index}", name=name, arguments=arguments[:cut]))
        gathered.add(piece(index, arguments=arguments[cut:]))

    assert summary(gathered.calls()) == [
        (f"c{index}", name, f'{{"number": {number}}}') for index, (name, number) in enumerate(calls)
    ]
