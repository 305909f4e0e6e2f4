"""Arguments: decoded when they are a JSON object, described and never repaired when they are not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_core.interop import ToolInteropRegistry

if TYPE_CHECKING:
    from agent_core.interop import ToolInteropTarget
    from agent_core.values import ToolCall

Case = Callable[..., AbstractContextManager[None]]

NESTED_TOO_DEEPLY = '{"a":' + "[" * 5_000 + "]" * 5_000 + "}"
BROKEN = ['{"a": 1', "{'a': 1}", '{"a": 1,}', "{a: 1}", "```json\n{}\n```", '{"a": 1} trailing', "\ufeff{}"]


def read(arguments: Any) -> ToolCall:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": arguments}}
    return ToolInteropRegistry.default().inspect_call(call)


@pytest.mark.parametrize("nothing", [None, "", "   ", "\n\t", {}, "{}"])
def test_no_arguments_are_an_empty_object(nothing: Any) -> None:
    assert (read(nothing).payload, read(nothing).problem) == ({}, None)


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_json_stays_text_and_the_problem_says_where(broken: str) -> None:
    inspected = read(broken)

    assert inspected.payload == broken
    assert inspected.problem is not None
    assert inspected.problem.startswith("The arguments are not valid JSON: ")
    assert "line 1 column" in inspected.problem or broken.startswith("\ufeff")


def test_the_position_is_the_one_of_the_mistake() -> None:
    problem = read('{\n  "a": 1,\n  "b": oops\n}').problem

    assert problem is not None and "line 3 column 8" in problem


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [("[1, 2]", "a list"), ('"text"', "text"), ("7", "a number"), ("true", "a boolean"), ("null", "nothing")],
)
def test_json_that_is_no_object_is_a_problem_and_keeps_its_text(arguments: str, kind: str) -> None:
    inspected = read(arguments)

    assert inspected.problem == f"The arguments must be a JSON object, got {kind}."
    assert inspected.payload == arguments


def test_decoded_arguments_that_are_no_object_become_text_with_the_same_problem() -> None:
    inspected = read([1, "é"])

    assert inspected.problem == "The arguments must be a JSON object, got a list."
    assert inspected.payload == '[1,"é"]'


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_constant_that_only_python_takes_for_json_is_a_problem_with_a_position(constant: str) -> None:
    inspected = read(f'{{"word": "NaN", "n": {constant}}}')

    assert inspected.payload == f'{{"word": "NaN", "n": {constant}}}'
    assert inspected.problem is not None
    assert f"{constant} is not a JSON value: line 1 column 22" in inspected.problem


def test_the_name_of_such_a_constant_inside_text_is_no_problem() -> None:
    inspected = read(r'{"word": "say \"NaN\" or Infinity"}')

    assert inspected.payload == {"word": 'say "NaN" or Infinity'}


def test_integers_of_any_size_arrive_exactly() -> None:
    assert read('{"n": 123456789012345678901234567890}').payload == {"n": 123456789012345678901234567890}


@pytest.mark.parametrize("deep", [NESTED_TOO_DEEPLY, '{"a":' + "[" * 300 + "]" * 300 + "}"])
def test_arguments_too_deep_to_walk_are_a_problem(deep: str) -> None:
    inspected = read(deep)

    assert inspected.payload == deep
    assert inspected.problem is not None and "nested too deeply" in inspected.problem


def test_many_brackets_side_by_side_are_not_deep() -> None:
    wide = '{"a": [' + ", ".join(["[]"] * 1_000) + "]}"

    assert read(wide).problem is None


@given(st.text())
def test_whatever_the_model_writes_is_either_an_object_or_a_problem_with_its_own_text(text: str) -> None:
    inspected = read(text)

    if inspected.problem is None:
        assert isinstance(inspected.payload, dict)
    else:
        assert inspected.payload == text


def test_broken_arguments_cross_every_wire_and_stay_exactly_as_broken(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, case: Case
) -> None:
    format_ids: list[str] = [
        "openai.chat.function",
        "openai.responses.function",
        "anthropic.tool_use",
        "gemini.function_call",
    ]
    broken: list[str] = [*BROKEN, "[1]", "NaN", NESTED_TOO_DEEPLY]
    for format_id, arguments in product(format_ids, broken):
        with case(format_id, arguments):
            call = {
                "id": "call_1",
                "type": "function",
                "function": {"name": "look_up", "arguments": arguments},
            }

            there = registry.convert_tool_call(call, target=anyone, target_formats=[format_id])
            back = registry.convert_tool_call(there, target=anyone, target_formats=["openai.chat.function"])

            assert registry.inspect_call(there) == registry.inspect_call(call)
            assert back == call


def test_an_object_that_only_looks_like_broken_arguments_is_ordinary(registry: ToolInteropRegistry) -> None:
    for text in ('{"a": 1}', "", 7):
        call = {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"INVALID_JSON": text}}
        assert registry.inspect_call(call).payload == {"INVALID_JSON": text}
        assert registry.inspect_call(call).problem is None


def test_a_lone_surrogate_is_sent_escaped(registry: ToolInteropRegistry, anyone: ToolInteropTarget) -> None:
    call = {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"word": "\ud800"}}

    sent = registry.convert_tool_call(call, target=anyone, target_formats=["openai.chat.function"])

    assert sent["function"]["arguments"] == '{"word":"\\ud800"}'
    assert registry.inspect_call(sent).payload == {"word": "\ud800"}
