"""A tool that takes freeform text, on wires that only know JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.errors import ToolError
from agent_core.interop import unwrap_call, unwrap_schema, wrap_call, wrap_schema

if TYPE_CHECKING:
    from agent_core.interop import ToolInteropRegistry, ToolInteropTarget

JSON_CALLS = [
    "openai.chat.function",
    "openai.responses.function",
    "anthropic.tool_use",
    "gemini.function_call",
]
JSON_SCHEMAS = [
    "openai.chat.function",
    "openai.responses.function",
    "anthropic.tool",
    "gemini.function_declaration",
]
TEXT_FORMATS = ["openai.chat.custom", "openai.responses.custom"]
CALL: dict[str, Any] = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "+ a line"}}
GRAMMARS = [
    {"type": "grammar", "syntax": "lark", "definition": "start: WORD+\n\n%import common.WORD"},
    {"type": "grammar", "syntax": "regex", "definition": "^[+-].*$"},
    None,
]


def tool(grammar: dict[str, Any] | None) -> dict[str, Any]:
    schema = {"type": "custom", "name": "patch", "description": "Apply a patch."}
    return schema if grammar is None else {**schema, "format": grammar}


@pytest.mark.parametrize("format_id", JSON_SCHEMAS)
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_a_text_tool_becomes_a_tool_with_one_required_text_and_comes_back(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, format_id: str, grammar: dict[str, Any] | None
) -> None:
    there = registry.convert_tool_schema(tool(grammar), target=anyone, target_formats=[format_id])
    back = registry.convert_tool_schema(there, target=anyone, target_formats=["openai.responses.custom"])

    wrapped = registry.inspect_schema(there)
    assert wrapped.payload_kind == "json"
    assert list(wrapped.parameters["properties"]) == wrapped.parameters["required"] == ["input"]
    assert wrapped.payload_metadata["wrapped_text"] == (grammar or {"type": "text"})
    assert back == tool(grammar)


@pytest.mark.parametrize("grammar", GRAMMARS[:2])
def test_the_model_is_advised_of_the_grammar_that_the_wire_cannot_enforce(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, grammar: dict[str, Any]
) -> None:
    there = registry.convert_tool_schema(tool(grammar), target=anyone, target_formats=["anthropic.tool"])

    advice = there["input_schema"]["properties"]["input"]["description"]
    assert grammar["definition"] in advice and grammar["syntax"] in advice


@pytest.mark.parametrize("format_id", JSON_CALLS)
@pytest.mark.parametrize("text", ["+ a line", "", '{"input": "nested"}', "line\nline"])
def test_a_text_call_crosses_a_json_wire_and_comes_back(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, format_id: str, text: str
) -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": text}}

    there = registry.convert_tool_call(call, target=anyone, target_formats=[format_id])
    back = registry.convert_tool_call(there, target=anyone, target_formats=["openai.chat.custom"])

    assert registry.inspect_call(there).payload == {"input": text}
    assert back == call


@pytest.mark.parametrize("text_format", TEXT_FORMATS)
@pytest.mark.parametrize("json_format", ["openai.chat.function", "openai.responses.function"])
@pytest.mark.parametrize("text_first", [True, False])
def test_a_text_call_is_wrapped_only_when_no_wanted_format_takes_text(
    registry: ToolInteropRegistry,
    anyone: ToolInteropTarget,
    text_format: str,
    json_format: str,
    text_first: bool,
) -> None:
    wanted = [text_format, json_format] if text_first else [json_format, text_format]

    converted = registry.convert_tool_call(CALL, target=anyone, target_formats=wanted)

    assert registry.inspect_call(converted).format_id == text_format


def test_an_ordinary_tool_with_one_input_stays_json_when_a_wanted_format_takes_json(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    call = {"type": "tool_use", "id": "call_1", "name": "echo", "input": {"input": "hello"}}
    wanted = ["openai.chat.custom", "openai.chat.function"]

    converted = registry.convert_tool_call(call, target=anyone, target_formats=wanted)

    assert converted["type"] == "function"


@pytest.mark.parametrize("arguments", [{}, {"word": "heron"}, {"input": 7}, {"input": "x", "more": 1}])
@pytest.mark.parametrize("format_id", TEXT_FORMATS)
def test_arguments_that_are_not_one_text_cannot_be_sent_as_text(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, arguments: dict[str, Any], format_id: str
) -> None:
    call = {"type": "tool_use", "id": "call_1", "name": "look_up", "input": arguments}

    with pytest.raises(ToolError, match=r"'look_up'.*'anyone'.*takes freeform text, not JSON"):
        registry.convert_tool_call(call, target=anyone, target_formats=[format_id])


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"input": {"type": "string"}},
        {"input": True},
        {"input": {"type": "string", "description": "What to echo."}},
        {"input": {"type": "string"}, "more": {"type": "string"}},
    ],
)
def test_an_ordinary_tool_is_never_taken_for_a_text_tool(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, properties: dict[str, Any]
) -> None:
    schema = {"name": "echo", "input_schema": {"type": "object", "properties": properties}}

    assert unwrap_schema(registry.inspect_schema(schema)) is None
    with pytest.raises(ToolError, match="cannot be converted"):
        registry.convert_tool_schema(schema, target=anyone, target_formats=TEXT_FORMATS)


def test_unwrapping_restores_what_was_wrapped_down_to_the_syntax(registry: ToolInteropRegistry) -> None:
    grammar = GRAMMARS[0]
    call = registry.inspect_call({**CALL, "custom": {**CALL["custom"], "format": grammar}})
    schema = registry.inspect_schema(tool(grammar))

    assert call.payload_format == "lark"
    assert unwrap_call(wrap_call(call)) == call
    assert unwrap_schema(wrap_schema(schema)) == schema
