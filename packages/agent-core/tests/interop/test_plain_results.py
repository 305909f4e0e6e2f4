"""Whatever a tool returns can be read, even if it is in no format at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.frozen import freeze
from agent_core.interop import ToolInteropRegistry, ToolInteropTarget

if TYPE_CHECKING:
    from agent_core.values import ToolResult

CORE = "core.text"
PICTURE = {"type": "image", "data": "aGVyb24=", "mimeType": "image/png"}


def read(value: Any) -> ToolResult:
    return ToolInteropRegistry.default().inspect_result(value)


@pytest.mark.parametrize("text", ["", "a bird", '{"looks": "like JSON"}', "line\n"])
def test_text_is_itself(text: str) -> None:
    assert (read(text).text, read(text).format_id) == (text, CORE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (7, "7"),
        (True, "true"),
        ([], "[]"),
        ([1, "é"], '[\n  1,\n  "é"\n]'),
        ({}, "{}"),
        ({"b": 1, "a": {"d": 1, "c": 2}}, '{\n  "a": {\n    "c": 2,\n    "d": 1\n  },\n  "b": 1\n}'),
    ],
)
def test_other_values_are_readable_json_that_is_the_same_for_equal_values(value: Any, text: str) -> None:
    assert read(value).text == text
    assert read(freeze(value)).text == text


@pytest.mark.parametrize(
    "answer",
    [
        {"success": True, "result": "a bird"},
        {"result": "a bird"},
        {"content": "a bird"},
        {"output": "a bird"},
        {"success": True, "output": "a bird", "error": None},
        {"content": [{"type": "text", "text": "a bird"}], "isError": False},
        {"success": True, "result": "a bird", "output": None},
    ],
)
def test_an_answer_in_an_envelope_is_taken_out(answer: dict[str, Any]) -> None:
    assert (read(answer).text, read(answer).is_error) == ("a bird", False)


@pytest.mark.parametrize(
    "failure",
    [
        {"success": False, "error": "no such word"},
        {"error": "no such word"},
        {"success": False, "result": "no such word"},
        {"content": "no such word", "is_error": True},
        {"content": [{"type": "text", "text": "no such word"}], "isError": True},
        {"success": False, "error": "no such word", "output": None},
    ],
)
def test_a_failure_in_an_envelope_reads_as_a_failure(failure: dict[str, Any]) -> None:
    assert (read(failure).text, read(failure).is_error) == ("no such word", True)


def test_a_failure_tells_the_error_before_what_was_produced() -> None:
    result = read({"success": False, "error": "exit code 1", "output": "half a page"})

    assert result.text == "exit code 1\nhalf a page"


def test_a_failure_keeps_both_its_error_and_its_pictures() -> None:
    result = read({"success": False, "error": "blurred", "content": [PICTURE]})

    assert [part["type"] for part in result.parts] == ["text", "image"]
    assert result.parts[0]["text"] == result.text == "blurred"


def test_a_success_that_mentions_an_error_is_still_a_success() -> None:
    assert not read({"success": True, "result": "done", "error": "one file skipped"}).is_error


@pytest.mark.parametrize(
    "answer",
    [
        {"success": True, "output": "a bird", "exit_code": 0},
        {"result": 1, "output": 2},
        {"success": True},
        {"success": False},
    ],
)
def test_an_envelope_with_further_fields_is_shown_whole(answer: dict[str, Any]) -> None:
    assert all(f'"{key}"' in read(answer).text for key in answer)


def test_a_display_is_kept_apart_from_the_text() -> None:
    display = {"type": "text", "content": "A bird"}

    result = read({"success": True, "result": "a bird", "display": display})

    assert (result.text, result.display) == ("a bird", display)


def test_a_display_stays_out_of_the_text_of_a_whole_result() -> None:
    result = read({"success": True, "count": 2, "display": {"type": "text", "content": "secret"}})

    assert "secret" not in result.text


@pytest.mark.parametrize("display", ["a bird", ["a bird"], 7])
def test_a_display_that_is_no_object_is_none(display: Any) -> None:
    assert read({"success": True, "result": "x", "display": display}).display is None


def test_a_list_of_content_parts_is_content() -> None:
    result = read([{"type": "text", "text": "a bird"}, PICTURE])

    assert result.text == "a bird"
    assert result.parts[1] == {"type": "image", "mime_type": "image/png", "data": "aGVyb24="}


def test_a_list_of_other_objects_is_json_even_if_they_have_a_type() -> None:
    result = read([{"type": "heron", "count": 2}])

    assert result.parts == () and '"heron"' in result.text


def test_a_value_that_json_does_not_know_still_becomes_text() -> None:
    class Heron:
        def __repr__(self) -> str:
            return "<a heron>"

    assert "<a heron>" in read({"seen": Heron()}).text
    assert "2" in read({1: "one", "two": 2}).text


def test_the_core_shape_comes_out_of_anything() -> None:
    registry = ToolInteropRegistry.default()
    target = ToolInteropTarget("core.tool_result")

    plain = registry.convert_tool_result("a bird", target=target, target_formats=[CORE])
    failed = registry.convert_tool_result({"error": "no"}, target=target, target_formats=[CORE])

    assert plain == {"type": "tool_result", "text": "a bird"}
    assert failed == {"type": "tool_result", "text": "no", "is_error": True}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.sampled_from(["success", "error", "output", "type", "text"]), inner)
    ),
)


@settings(max_examples=30)
@given(values)
def test_any_value_reads_as_text_and_the_core_shape_of_it_reads_the_same(value: Any) -> None:
    registry = ToolInteropRegistry.default()

    core = registry.convert_tool_result(value, target=ToolInteropTarget("x"), target_formats=[CORE])

    assert registry.inspect_result(core) == registry.inspect_result(value)
