"""Registering formats, and what a conversion promises whatever the format."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from agent_core.errors import ArgumentError, RegistrationError, ToolError
from agent_core.frozen import FrozenDict, FrozenList, freeze
from agent_core.interop import (
    InspectedSchema,
    ToolCallFormat,
    ToolInteropRegistry,
    ToolInteropTarget,
    ToolResultFormat,
    ToolSchemaFormat,
)
from agent_core.values import ToolCall, ToolResult

CHAT = "openai.chat.function"
TOOL_USE = {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"word": "heron"}}


def birds(**changes: Any) -> ToolCallFormat:
    """A call format of a plugin's own: ``{"bird": name, "says": arguments}``."""
    made = ToolCallFormat(
        id="birds.call",
        matches=lambda call: isinstance(call, dict) and "bird" in call,
        inspect=lambda call: ToolCall(call_id=None, tool_name=call["bird"], payload=call["says"], raw=call),
        build=lambda call: {"bird": call.tool_name, "says": call.payload},
    )
    return replace(made, **changes)


def birds_result(**changes: Any) -> ToolResultFormat:
    made = ToolResultFormat(
        id="birds.result",
        matches=lambda result: isinstance(result, dict) and "song" in result,
        inspect=lambda result: ToolResult(text=result["song"], raw=result),
        build=lambda result, target: {"song": result.text, "for": target.name},
    )
    return replace(made, **changes)


def birds_schema() -> ToolSchemaFormat:
    return ToolSchemaFormat(
        id="birds.schema",
        matches=lambda schema: isinstance(schema, dict) and "species" in schema,
        inspect=lambda schema: InspectedSchema(name=schema["species"], raw=schema),
        build=lambda schema: {"species": schema.name},
    )


def test_a_plugins_formats_convert_to_and_from_every_other(
    registry: ToolInteropRegistry, caller: ToolInteropTarget
) -> None:
    registry.register_call_format(birds())
    registry.register_schema_format(birds_schema())
    registry.register_result_format(birds_result())

    call = registry.convert_tool_call(TOOL_USE, target=caller, target_formats=["birds.call"])
    schema = registry.convert_tool_schema(
        {"species": "heron"}, target=caller, target_formats=["anthropic.tool"]
    )
    result = registry.convert_tool_result("kraak", target=caller, target_formats=["birds.result"])

    assert call == {"bird": "look_up", "says": {"word": "heron"}}
    assert schema["name"] == "heron"
    assert result == {"song": "kraak", "for": "caller"}


def test_the_format_that_was_registered_last_is_asked_first(registry: ToolInteropRegistry) -> None:
    def refine(block: Any) -> ToolCall:
        return replace(ToolInteropRegistry.default().inspect_call(block), tool_name="refined")

    anthropic_like = birds(
        id="birds.tool_use", matches=lambda call: call.get("type") == "tool_use", inspect=refine
    )
    registry.register_call_format(birds())
    registry.register_call_format(anthropic_like)

    inspected = registry.inspect_call(TOOL_USE)

    assert registry.call_formats()[:2] == ("birds.tool_use", "birds.call")
    assert (inspected.tool_name, inspected.format_id) == ("refined", "birds.tool_use")


@pytest.mark.parametrize("family", ["call", "schema", "result"])
def test_an_id_can_be_registered_once_in_its_family(registry: ToolInteropRegistry, family: str) -> None:
    formats: dict[str, Any] = {"call": birds(), "schema": birds_schema(), "result": birds_result()}
    register = getattr(registry, f"register_{family}_format")
    register(formats[family])

    with pytest.raises(RegistrationError, match=formats[family].id):
        register(formats[family])


def test_a_built_in_id_is_taken(registry: ToolInteropRegistry) -> None:
    with pytest.raises(RegistrationError, match=CHAT):
        registry.register_call_format(birds(id=CHAT))


def test_a_format_without_an_id_cannot_be_registered(registry: ToolInteropRegistry) -> None:
    with pytest.raises(RegistrationError, match="needs an id"):
        registry.register_call_format(birds(id=""))


def test_a_copy_goes_its_own_way(registry: ToolInteropRegistry) -> None:
    registry.register_call_format(birds())
    twin = registry.copy()
    twin.register_result_format(birds_result())
    registry.register_schema_format(birds_schema())

    assert "birds.call" in twin.call_formats()
    assert "birds.result" not in registry.result_formats()
    assert "birds.schema" not in twin.schema_formats()
    assert not any(each.startswith("birds") for each in ToolInteropRegistry.default().call_formats())


def test_an_empty_registry_knows_no_call_but_reads_any_result() -> None:
    registry = ToolInteropRegistry()

    assert registry.inspect_result("a bird").text == "a bird"
    with pytest.raises(ToolError, match="none is registered"):
        registry.inspect_call(TOOL_USE)


def test_an_unknown_format_is_refused_with_the_known_ones(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    for convert in (registry.convert_tool_call, registry.convert_tool_schema, registry.convert_tool_result):
        with pytest.raises(ArgumentError, match=r"'birds'.*known are .*'openai\."):
            convert({}, target=anyone, target_formats=["birds"])


@pytest.mark.parametrize("formats", [[], CHAT])
def test_the_wanted_formats_are_a_list_that_names_some(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, formats: Any
) -> None:
    with pytest.raises(ArgumentError, match="target_formats"):
        registry.convert_tool_call(TOOL_USE, target=anyone, target_formats=formats)


VALUES_IN_THEIR_FORMAT: list[tuple[str, str, dict[str, Any]]] = [
    (
        "call",
        CHAT,
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": ' {"a": 1}'}, "index": 0},
    ),
    (
        "call",
        "openai.chat.custom",
        {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x", "y": 1}},
    ),
    (
        "call",
        "openai.responses.function",
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "", "status": "done"},
    ),
    (
        "call",
        "openai.responses.custom",
        {"type": "custom_tool_call", "id": "ctc", "call_id": "c", "name": "f", "input": ""},
    ),
    ("call", "anthropic.tool_use", {**TOOL_USE, "caller": {"type": "direct"}}),
    ("call", "gemini.function_call", {"functionCall": {"id": "c", "name": "f"}, "thoughtSignature": "s"}),
    ("schema", CHAT, {"type": "function", "function": {"name": "f", "strict": False, "note": 1}}),
    ("schema", "openai.chat.custom", {"type": "custom", "custom": {"name": "f", "format": {"type": "text"}}}),
    ("schema", "openai.responses.function", {"type": "function", "name": "f", "defer_loading": True}),
    ("schema", "openai.responses.custom", {"type": "custom", "name": "f", "format": {"type": "text"}}),
    ("schema", "anthropic.tool", {"name": "f", "input_schema": {}, "cache_control": {}, "strict": True}),
    ("schema", "gemini.function_declaration", {"name": "f", "parameters": {"type": "OBJECT"}}),
    ("result", "core.text", {"type": "tool_result", "text": "x", "note": 1}),
    ("result", "openai.chat.tool", {"role": "tool", "tool_call_id": "c", "content": "x", "name": "f"}),
    (
        "result",
        "openai.responses.function_call_output",
        {"type": "function_call_output", "call_id": "c", "output": "x", "id": "fco"},
    ),
    (
        "result",
        "openai.responses.custom_tool_call_output",
        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_file"}]},
    ),
    (
        "result",
        "anthropic.tool_result",
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "document"}], "is_error": False},
    ),
    (
        "result",
        "gemini.function_response",
        {"functionResponse": {"id": "c", "name": "f", "response": {"a": 1}, "scheduling": "SILENT"}},
    ),
]


@pytest.mark.parametrize(("family", "format_id", "value"), VALUES_IN_THEIR_FORMAT)
def test_what_is_in_a_wanted_format_already_is_returned_itself_with_all_its_fields(
    registry: ToolInteropRegistry,
    caller: ToolInteropTarget,
    family: str,
    format_id: str,
    value: dict[str, Any],
) -> None:
    ids = getattr(registry, f"{family}_formats")()
    others = [each for each in ids if each != format_id]
    convert = getattr(registry, f"convert_tool_{family}")

    for given in (value, freeze(value)):
        assert convert(given, target=caller, target_formats=[*others, format_id]) is given


@pytest.mark.parametrize(
    ("loose", "sent"),
    [
        (
            {"function": {"name": "f", "arguments": {"a": 1}, "note": 1}, "index": 0},
            {
                "index": 0,
                "id": "call_1",
                "type": "function",
                "function": {"name": "look_up", "arguments": '{"a":1}', "note": 1},
            },
        ),
        (
            {"id": "c", "type": "custom", "name": "f", "input": "x", "index": 0},
            {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "look_up", "input": "x"}},
        ),
        (
            {"type": "function_call", "name": "f", "arguments": {"a": 1}, "status": "done"},
            {
                "type": "function_call",
                "name": "look_up",
                "arguments": '{"a":1}',
                "status": "done",
                "call_id": "call_1",
            },
        ),
        (
            {"type": "custom_tool_call", "name": "f", "input": "x", "status": "done"},
            {
                "type": "custom_tool_call",
                "name": "look_up",
                "input": "x",
                "status": "done",
                "call_id": "call_1",
            },
        ),
        (
            {"type": "tool_use", "name": "f", "input": '{"a": 1}', "caller": {}},
            {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"a": 1}, "caller": {}},
        ),
        (
            {"name": "f", "args": {"a": 1}, "partial": False},
            {"functionCall": {"id": "call_1", "name": "look_up", "args": {"a": 1}, "partial": False}},
        ),
    ],
)
def test_a_loose_call_is_put_right_before_it_is_sent_in_its_own_format(
    registry: ToolInteropRegistry, caller: ToolInteropTarget, loose: dict[str, Any], sent: dict[str, Any]
) -> None:
    own = registry.inspect_call(loose).format_id

    assert registry.convert_tool_call(freeze(loose), target=caller, target_formats=[own]) == sent


@pytest.mark.parametrize(
    "format_id", [each for each in ToolInteropRegistry.default().call_formats() if "custom" not in each]
)
def test_a_call_is_built_under_the_id_and_the_name_of_the_targets_call(
    registry: ToolInteropRegistry, caller: ToolInteropTarget, format_id: str
) -> None:
    registry.register_call_format(birds())

    built = registry.convert_tool_call(
        {"bird": "heron", "says": {}}, target=caller, target_formats=[format_id]
    )

    inspected = registry.inspect_call(built)
    assert (inspected.call_id, inspected.tool_name) == ("call_1", "look_up")


def test_no_id_is_invented_for_a_call_without_one(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    converted = registry.convert_tool_call(
        {"name": "look_up", "args": {}}, target=anyone, target_formats=["anthropic.tool_use"]
    )

    assert converted == {"type": "tool_use", "name": "look_up", "input": {}}


def containers(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(each for item in inner for each in containers(item))]


@pytest.mark.parametrize(("family", "format_id", "value"), VALUES_IN_THEIR_FORMAT)
def test_what_is_built_is_plain_and_shares_nothing_with_what_came_in(
    registry: ToolInteropRegistry,
    caller: ToolInteropTarget,
    family: str,
    format_id: str,
    value: dict[str, Any],
) -> None:
    before = deepcopy(value)
    convert = getattr(registry, f"convert_tool_{family}")

    for other in getattr(registry, f"{family}_formats")():
        if other == format_id or (other.endswith("custom") and family != "result"):
            continue
        for given in (value, freeze(value)):
            built = containers(convert(given, target=caller, target_formats=[other]))
            assert not any(isinstance(each, (FrozenDict, FrozenList)) for each in built)
            for each in built:
                if isinstance(each, dict):
                    each.clear()
    assert value == before


def test_a_format_that_can_only_be_read_refuses_to_be_built(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    registry.register_call_format(birds(build=None))

    assert registry.inspect_call({"bird": "heron", "says": {}}).tool_name == "heron"
    with pytest.raises(ToolError, match=r"birds\.call: this format can only be read"):
        registry.convert_tool_call(TOOL_USE, target=anyone, target_formats=["birds.call"])


def test_a_format_that_refuses_leaves_its_place_to_the_next(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget
) -> None:
    registry.register_call_format(birds(build=None))

    converted = registry.convert_tool_call(TOOL_USE, target=anyone, target_formats=["birds.call", CHAT])

    assert converted["type"] == "function"


@pytest.mark.parametrize("broken", ["matches", "inspect", "build"])
def test_a_format_that_breaks_is_named_without_quoting_what_it_was_given(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, broken: str
) -> None:
    def fail(_value: Any) -> Any:
        raise KeyError("hunter2")

    registry.register_call_format(birds(**{broken: fail}))
    value = TOOL_USE if broken == "build" else {"bird": "heron", "says": {}}

    with pytest.raises(ToolError, match=r"'birds\.call' failed: KeyError") as caught:
        registry.convert_tool_call(
            value, target=anyone, target_formats=["birds.call" if broken == "build" else CHAT]
        )
    assert "hunter2" not in str(caught.value)


def test_exactly_one_built_in_format_recognises_each_value(registry: ToolInteropRegistry) -> None:
    tables = registry._tables
    families: dict[str, Any] = {"call": tables.calls, "schema": tables.schemas, "result": tables.results}

    for family, format_id, value in VALUES_IN_THEIR_FORMAT:
        assert [each.id for each in families[family].formats if each.matches(value)] == [format_id]


def test_no_built_in_format_stumbles_over_a_stranger(registry: ToolInteropRegistry) -> None:
    strangers: list[Any] = [
        None,
        7,
        "text",
        [],
        [{}],
        {},
        {"type": ["custom"]},
        {"function": 7, "custom": 7},
        {1: 2},
    ]
    tables = registry._tables

    for table in (tables.calls, tables.schemas, tables.results):
        assert not any(each.matches(value) for each in table.formats for value in strangers)
