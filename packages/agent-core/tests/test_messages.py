"""A message is frozen, and its dict form has exactly the documented keys."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import FrozenInstanceError, replace
from datetime import date
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import ArgumentError, ArgumentTypeError, Message, Session, SessionFormatError
from agent_core.frozen import FrozenValueError
from agent_core.messages import fold_foreign_fields

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = [{"type": "text", "text": "Look:"}, {"type": "image", "url": "https://a.example/1.png"}]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
json_dicts = st.dictionaries(st.text(), json_values, max_size=3)
message_dicts = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool"]),
        "content": json_values,
        "metadata": json_dicts,
    },
    optional={"multipartContent": st.lists(json_dicts, max_size=2), "tool_result": json_dicts},
)


def full_message() -> Message:
    return Message(
        "tool",
        "two hits",
        metadata={"tool_call_id": "call_1", "native_indices": [3]},
        multipart_content=copy.deepcopy(PARTS),
        tool_result={"success": True, "result": ["a", "b"]},
    )


def test_a_message_needs_only_a_role_and_content() -> None:
    message = Message("user", "Hello")

    assert message.metadata == {}
    assert message.multipart_content is None
    assert message.tool_result is None
    assert message.native_indices is None


def test_the_fields_of_a_message_cannot_be_set() -> None:
    message = Message("user", "Hello")

    with pytest.raises(FrozenInstanceError):
        message.content = "Bye"  # type: ignore[misc]
    assert message.content == "Hello"


def test_nothing_inside_a_message_can_be_changed() -> None:
    message = replace(full_message(), content=[{"text": "a"}])
    data: Any = message  # the type checker would refuse some of this already

    writes: list[Callable[[], Any]] = [
        data.content[0].clear,
        data.metadata.clear,
        data.metadata["native_indices"].clear,
        data.multipart_content.clear,
        data.multipart_content[1].clear,
        data.tool_result["result"].clear,
    ]
    for write in writes:
        with pytest.raises(FrozenValueError):
            write()


def test_changing_the_values_a_message_was_made_from_does_not_change_it() -> None:
    metadata: dict[str, Any] = {"tags": ["a"]}
    parts = copy.deepcopy(PARTS)
    message = Message("user", "Hello", metadata, parts)

    metadata["tags"].append("b")
    parts[0]["text"] = "Never mind"

    assert message.metadata == {"tags": ["a"]}
    assert message.multipart_content == PARTS


def test_the_dict_form_of_a_plain_message_has_three_keys() -> None:
    assert Message("user", "Hello").to_dict() == {"role": "user", "content": "Hello", "metadata": {}}


def test_the_dict_form_names_parts_and_tool_result_as_documented() -> None:
    assert full_message().to_dict() == {
        "role": "tool",
        "content": "two hits",
        "metadata": {"tool_call_id": "call_1", "native_indices": [3]},
        "multipartContent": PARTS,
        "tool_result": {"success": True, "result": ["a", "b"]},
    }


def test_the_dict_form_is_the_callers_to_change() -> None:
    message = full_message()
    data = message.to_dict()

    data["metadata"]["native_indices"].append(4)
    data["multipartContent"].clear()
    data["tool_result"]["result"] = None

    assert message == full_message()


def test_the_frozen_dict_form_says_the_same_and_is_made_once() -> None:
    message = full_message()

    assert message.frozen_dict() == message.to_dict()
    assert message.frozen_dict() is message.frozen_dict()
    with pytest.raises(FrozenValueError):
        message.frozen_dict()["metadata"]["seen"] = True


@settings(max_examples=25)
@given(message_dicts)
def test_a_message_comes_back_from_its_dict_form(data: dict[str, Any]) -> None:
    message = Message.from_dict(data)

    assert message.to_dict() == data
    assert Message.from_dict(message.to_dict()) == message


def test_metadata_may_be_missing_or_null() -> None:
    assert Message.from_dict({"role": "user", "content": "a"}) == Message("user", "a")
    assert Message.from_dict({"role": "user", "content": "a", "metadata": None}) == Message("user", "a")


def test_null_parts_and_results_count_as_missing() -> None:
    data: dict[str, Any] = {
        "role": "user",
        "content": None,
        "metadata": {},
        "multipartContent": None,
        "tool_result": None,
    }

    assert Message.from_dict(data) == Message("user", None)


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        ({"content": "a"}, "role", "missing"),
        ({"role": "user"}, "content", "missing"),
        ({"role": "user", "content": "a", 1: 2}, "extra", "only strings as keys"),
        ({"role": "robot", "content": "a"}, "role", "not 'robot'"),
        ({"role": ["user"], "content": "a"}, "role", "must be one of"),
        ({"role": "user", "content": "a", "metadata": []}, "metadata", "must be a dict, not list"),
        ({"role": "user", "content": "a", "metadata": "x"}, "metadata", "must be a dict, not str"),
        ({"role": "user", "content": "a", "multipartContent": {}}, "multipartContent", "must be a list"),
        ({"role": "user", "content": "a", "multipartContent": [1]}, "multipartContent", "list of dicts"),
        ({"role": "user", "content": "a", "tool_result": "ok"}, "tool_result", "must be a dict, not str"),
        ("user: a", "messages", "must be a dict, not str"),
        (None, "messages", "must be a dict, not NoneType"),
    ],
)
def test_what_is_no_message_is_refused_by_the_name_of_its_field(data: Any, field: str, says: str) -> None:
    with pytest.raises(SessionFormatError, match=says) as caught:
        Message.from_dict(data)

    assert caught.value.field == field
    assert repr(field) in str(caught.value)


def test_native_indices_are_read_from_metadata() -> None:
    assert Message("user", "a", {"native_indices": [0, 2]}).native_indices == (0, 2)
    assert Message("user", "a", {"native_indices": []}).native_indices == ()


@pytest.mark.parametrize("junk", [5, "01", {"0": 1}, ["0"], [-1], [True], [1.0], [None], [[0]]])
def test_native_indices_that_make_no_sense_are_unknown(junk: Any) -> None:
    message = Message("user", "a", {"native_indices": junk, "kept": 1})

    assert message.native_indices is None
    assert message.with_native_indices(None).metadata == {"kept": 1}
    assert message.with_native_indices((4,)).native_indices == (4,)


def test_moving_a_message_changes_only_its_indices() -> None:
    message = full_message()

    moved = message.with_native_indices((5, 6))

    assert moved.native_indices == (5, 6)
    assert moved.with_native_indices((3,)) == message
    assert message.with_native_indices((3,)) is message


def test_removing_indices_from_a_message_without_any_returns_the_message_itself() -> None:
    message = Message("user", "a")

    assert message.with_native_indices(None) is message


def test_a_copy_of_a_message_is_the_message() -> None:
    message = full_message()

    assert copy.copy(message) is message
    assert copy.deepcopy(message) is message
    assert copy.deepcopy([message])[0] is message


def test_a_pickled_message_comes_back_equal_and_frozen() -> None:
    message = full_message()
    message.frozen_dict()

    back = pickle.loads(pickle.dumps(message))

    assert back == message
    assert back.frozen_dict() == message.to_dict()
    with pytest.raises(FrozenValueError):
        back.metadata["native_indices"].append(4)


def test_a_plugins_extra_fields_are_kept_as_metadata() -> None:
    folded = fold_foreign_fields({"role": "assistant", "usage": {"tokens": 3}, "metadata": {"model": "m"}})

    assert folded == {
        "role": "assistant",
        "content": None,
        "metadata": {"usage": {"tokens": 3}, "model": "m"},
    }


def test_a_plugins_own_metadata_wins_over_its_extra_fields() -> None:
    folded = fold_foreign_fields({"role": "user", "content": "a", "usage": 1, "metadata": {"usage": 2}})

    assert folded["metadata"] == {"usage": 2}


def test_metadata_of_the_wrong_type_is_left_for_the_check_that_names_it() -> None:
    folded = fold_foreign_fields({"role": "user", "content": "a", "usage": 1, "metadata": 5})

    with pytest.raises(SessionFormatError, match="'metadata'"):
        Message.from_dict(folded)


# What a message is made of


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("robot", "a"), ArgumentError, "role must be one of .* not 'robot'"),
        ((None, "a"), ArgumentError, "not None"),
        ((["user"], "a"), ArgumentError, "not \\['user'\\]"),
        (("user", "a", None), ArgumentTypeError, "metadata must be a dict, not NoneType"),
        (("user", "a", [1]), ArgumentTypeError, "metadata must be a dict, not list"),
        (("user", "a", {}, "text"), ArgumentTypeError, "multipart_content must be a list of dicts, not str"),
        (("user", "a", {}, {}), ArgumentTypeError, "multipart_content must be a list of dicts, not dict"),
        (("user", "a", {}, ["text"]), ArgumentTypeError, "multipart_content must be a list of dicts"),
        (("tool", "a", {}, None, "done"), ArgumentTypeError, "tool_result must be a dict, not str"),
    ],
)
def test_a_message_checks_its_arguments_when_it_is_made(
    arguments: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Message(*arguments)


def nested(depth: int) -> Any:
    value: Any = "leaf"
    for _ in range(depth):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("metadata", "field", "says"),
    [
        ({"when": date(2026, 1, 2)}, "metadata.when", "date is not JSON data"),
        ({"list": [1, {"odd": {3}}]}, "metadata.list[1].odd", "set is not JSON data"),
        ({"raw": b"x"}, "metadata.raw", "bytes is not JSON data"),
        ({"object": object()}, "metadata.object", "object is not JSON data"),
        (
            {"score": float("nan")},
            "metadata.score",
            "nan is not JSON data: JSON has neither NaN nor infinity",
        ),
        ({"scores": [1.0, float("inf")]}, "metadata.scores[1]", "inf is not JSON data"),
        ({"low": {"is": -float("inf")}}, "metadata.low.is", "-inf is not JSON data"),
        ({"by number": {1: "one"}}, "metadata.by number", "the key 1, and JSON has only strings"),
        ({("a", "b"): 1}, "metadata", "JSON has only strings as keys"),
    ],
)
def test_odd_metadata_is_refused_by_the_name_of_the_part(metadata: Any, field: str, says: str) -> None:
    for make in (lambda: Message("user", "a", metadata), lambda: Session("s", [], metadata)):
        with pytest.raises(SessionFormatError, match=re.escape(says)) as caught:
            make()

        assert caught.value.field == field


@pytest.mark.parametrize("depth", [302, 5_000, 100_000])
def test_metadata_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    for make in (lambda: Message("user", "a", nested(depth)), lambda: Session("s", [], nested(depth))):
        with pytest.raises(SessionFormatError, match="nested"):
            make()


def test_text_and_numbers_of_other_classes_are_text_and_numbers() -> None:
    class Tone(StrEnum):
        WARM = "warm"

    class Level(IntEnum):
        HIGH = 3

    message = Message("user", "a", {"tone": Tone.WARM, "level": Level.HIGH})

    assert json.loads(json.dumps(message.to_dict()))["metadata"] == {"tone": "warm", "level": 3}


def test_fields_that_a_newer_version_wrote_are_kept() -> None:
    data = {"role": "user", "content": "a", "metadata": {}, "reactions": [{"by": "ada"}], "seen": True}

    message = Message.from_dict(data)

    assert message.to_dict() == message.frozen_dict() == data
    assert message.with_native_indices((3,)).to_dict()["reactions"] == [{"by": "ada"}]
    assert message != Message("user", "a")
