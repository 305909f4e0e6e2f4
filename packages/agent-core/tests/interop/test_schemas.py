"""How each wire format offers a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.errors import ToolError
from agent_core.frozen import freeze

if TYPE_CHECKING:
    from agent_core.interop import ToolInteropRegistry, ToolInteropTarget

PARAMETERS = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
LARK = {"type": "grammar", "syntax": "lark", "definition": "start: WORD+"}
JSON_SCHEMAS: dict[str, dict[str, Any]] = {
    "openai.chat.function": {
        "type": "function",
        "function": {"name": "look_up", "description": "Look a word up.", "parameters": PARAMETERS},
    },
    "openai.responses.function": {
        "type": "function",
        "name": "look_up",
        "description": "Look a word up.",
        "parameters": PARAMETERS,
        "strict": False,
    },
    "anthropic.tool": {"name": "look_up", "description": "Look a word up.", "input_schema": PARAMETERS},
    "gemini.function_declaration": {
        "name": "look_up",
        "description": "Look a word up.",
        "parametersJsonSchema": PARAMETERS,
    },
}
TEXT_SCHEMAS: dict[str, dict[str, Any]] = {
    "openai.chat.custom": {
        "type": "custom",
        "custom": {
            "name": "patch",
            "description": "Apply a patch.",
            "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: WORD+"}},
        },
    },
    "openai.responses.custom": {
        "type": "custom",
        "name": "patch",
        "description": "Apply a patch.",
        "format": LARK,
    },
}
PAIRS = [
    (source, target)
    for family in (JSON_SCHEMAS, TEXT_SCHEMAS)
    for source in family.items()
    for target in family.items()
]


@pytest.mark.parametrize(("format_id", "schema"), JSON_SCHEMAS.items())
def test_every_json_tool_reads_the_same(
    registry: ToolInteropRegistry, format_id: str, schema: dict[str, Any]
) -> None:
    inspected = registry.inspect_schema(freeze(schema))

    assert inspected.format_id == format_id
    assert (inspected.name, inspected.description) == ("look_up", "Look a word up.")
    assert (inspected.parameters, inspected.payload_kind) == (PARAMETERS, "json")
    assert (inspected.payload_format, inspected.payload_metadata) == ("json_object", {})


@pytest.mark.parametrize(("format_id", "schema"), TEXT_SCHEMAS.items())
def test_every_text_tool_reads_the_same(
    registry: ToolInteropRegistry, format_id: str, schema: dict[str, Any]
) -> None:
    inspected = registry.inspect_schema(freeze(schema))

    assert inspected.format_id == format_id
    assert (inspected.name, inspected.description) == ("patch", "Apply a patch.")
    assert (inspected.parameters, inspected.payload_kind) == ({}, "text")
    assert (inspected.payload_format, inspected.payload_metadata) == ("lark", {"format": LARK})


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_tool_is_written_as_its_new_format_writes_it(
    registry: ToolInteropRegistry,
    anyone: ToolInteropTarget,
    source: tuple[str, dict[str, Any]],
    target: tuple[str, dict[str, Any]],
) -> None:
    converted = registry.convert_tool_schema(source[1], target=anyone, target_formats=[target[0]])

    assert converted == target[1]


@pytest.mark.parametrize("text_format", [None, {"type": "text"}])
def test_a_text_tool_without_a_grammar_takes_any_text(
    registry: ToolInteropRegistry, text_format: Any
) -> None:
    inspected = registry.inspect_schema({"type": "custom", "name": "patch", "format": text_format})

    assert (inspected.payload_format, inspected.payload_metadata) == ("text", {})


def test_a_text_format_of_another_kind_travels_as_it_is(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    schema = {"type": "custom", "name": "patch", "format": {"type": "unified_diff", "context": 3}}

    chat = registry.convert_tool_schema(schema, target=anyone, target_formats=["openai.chat.custom"])

    assert chat["custom"]["format"] == schema["format"]
    assert registry.inspect_schema(chat).payload_format == "unified_diff"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "function", "function": {"name": "now"}},
        {"type": "function", "name": "now", "parameters": None},
        {"name": "now", "input_schema": None},
        {"name": "now"},
    ],
)
def test_a_tool_without_parameters_takes_an_empty_object(
    registry: ToolInteropRegistry, schema: dict[str, Any]
) -> None:
    assert registry.inspect_schema(schema).parameters == {"type": "object", "properties": {}}


def test_strictness_travels_between_the_two_openai_formats(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    chat = {"type": "function", "function": {"name": "now", "parameters": PARAMETERS, "strict": True}}

    responses = registry.convert_tool_schema(
        chat, target=anyone, target_formats=["openai.responses.function"]
    )

    assert responses["strict"] is True
    assert (
        registry.convert_tool_schema(responses, target=anyone, target_formats=["openai.chat.function"])
        == chat
    )


def test_a_tool_that_is_not_strict_says_so_to_the_responses_api_which_would_assume_it(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    tool = JSON_SCHEMAS["anthropic.tool"]

    converted = registry.convert_tool_schema(
        tool, target=anyone, target_formats=["openai.responses.function"]
    )

    assert converted["strict"] is False


def test_the_strictness_of_anthropic_is_not_taken_for_the_stricter_one_of_openai(
    registry: ToolInteropRegistry,
) -> None:
    inspected = registry.inspect_schema({**JSON_SCHEMAS["anthropic.tool"], "strict": True})

    assert inspected.payload_metadata == {"extra": {"strict": True}}


def test_an_anthropic_tool_may_call_itself_custom(registry: ToolInteropRegistry) -> None:
    inspected = registry.inspect_schema({"type": "custom", **JSON_SCHEMAS["anthropic.tool"]})

    assert (inspected.format_id, inspected.payload_kind) == ("anthropic.tool", "json")


def test_a_gemini_declaration_in_the_older_dialect_reads_as_json_schema(
    registry: ToolInteropRegistry,
) -> None:
    older = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True, "enum": ["STRING", "OBJECT"]},
            "rows": {"type": "ARRAY", "items": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}},
            "either": {"anyOf": [{"type": "NUMBER"}, {"type": "BOOLEAN"}]},
        },
    }

    inspected = registry.inspect_schema({"name": "look_up", "parameters": older})

    assert inspected.parameters == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["STRING", "OBJECT"]},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "either": {"anyOf": [{"type": "number"}, {"type": "boolean"}]},
        },
    }


def test_a_gemini_declaration_in_snake_case_is_understood(registry: ToolInteropRegistry) -> None:
    inspected = registry.inspect_schema({"name": "look_up", "parameters_json_schema": PARAMETERS})

    assert inspected.parameters == PARAMETERS


def test_anthropic_gets_an_input_schema_of_type_object(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    loose = {"type": "function", "function": {"name": "now", "parameters": {"properties": {}}}}

    converted = registry.convert_tool_schema(loose, target=anyone, target_formats=["anthropic.tool"])

    assert converted["input_schema"]["type"] == "object"


@pytest.mark.parametrize(
    ("schema", "extra"),
    [
        (
            {"type": "function", "function": {"name": "now", "note": 1}, "defer": True},
            {"defer": True, "function": {"note": 1}},
        ),
        ({"type": "function", "name": "now", "defer_loading": True}, {"defer_loading": True}),
        ({"name": "now", "input_schema": {}, "cache_control": {}}, {"cache_control": {}}),
        ({"name": "now", "behavior": "BLOCKING"}, {"behavior": "BLOCKING"}),
        ({"type": "custom", "name": "now", "defer_loading": True}, {"defer_loading": True}),
    ],
)
def test_what_only_one_format_knows_is_extra_and_is_not_sent_to_another(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, schema: dict[str, Any], extra: dict[str, Any]
) -> None:
    inspected = registry.inspect_schema(schema)
    others = [each for each in registry.schema_formats() if each != inspected.format_id]

    assert inspected.payload_metadata["extra"] == extra
    for each in others:
        if inspected.payload_kind == "json" and each.endswith("custom"):
            continue
        converted = registry.convert_tool_schema(schema, target=anyone, target_formats=[each])
        assert "extra" not in registry.inspect_schema(converted).payload_metadata


@pytest.mark.parametrize("schema", [*JSON_SCHEMAS.values(), *TEXT_SCHEMAS.values()])
@pytest.mark.parametrize("name", ["", None, 7])
def test_a_tool_without_a_usable_name_is_refused(
    registry: ToolInteropRegistry, schema: dict[str, Any], name: Any
) -> None:
    body = next((schema[key] for key in ("function", "custom") if key in schema), None)
    nameless = (
        {**schema, "name": name} if body is None else {**schema, schema["type"]: {**body, "name": name}}
    )

    with pytest.raises(ToolError, match="must be the name of a tool"):
        registry.inspect_schema(nameless)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "function", "function": {"name": "now", "parameters": "none"}},
        {"type": "function", "name": "now", "parameters": []},
        {"name": "now", "input_schema": 7},
        {"name": "now", "parametersJsonSchema": "none"},
        {"name": "now", "parameters": "none"},
    ],
)
def test_parameters_that_are_no_object_are_refused(
    registry: ToolInteropRegistry, schema: dict[str, Any]
) -> None:
    with pytest.raises(ToolError, match="parameters must be an object"):
        registry.inspect_schema(schema)


@pytest.mark.parametrize(
    "stranger",
    [None, "look_up", [], {}, {"type": "web_search"}, {"name": "look_up", "inputSchema": PARAMETERS}],
)
def test_what_is_no_known_schema_is_refused(registry: ToolInteropRegistry, stranger: Any) -> None:
    with pytest.raises(ToolError, match="expected a tool schema in a known format"):
        registry.inspect_schema(stranger)
