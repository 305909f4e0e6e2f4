"""What is built from a meaning reads as that meaning again, over every wire and every pair of wires."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given, settings, strategies as st

from agent_core.interop import InspectedSchema, ToolInteropRegistry, ToolInteropTarget
from agent_core.values import ToolCall, ToolResult

REGISTRY = ToolInteropRegistry.default()
ANYONE = ToolInteropTarget("anyone")
CALLER = ToolInteropTarget("caller", ToolCall(call_id="call_1", tool_name="draw", payload={}))
JSON_CALLS = [each for each in REGISTRY.call_formats() if not each.endswith("custom")]
TEXT_CALLS = [each for each in REGISTRY.call_formats() if each.endswith("custom")]
JSON_SCHEMAS = [each for each in REGISTRY.schema_formats() if not each.endswith("custom")]
TEXT_SCHEMAS = [each for each in REGISTRY.schema_formats() if each.endswith("custom")]
WIRE_RESULTS = [each for each in REGISTRY.result_formats() if each != "core.text"]
WITH_PICTURES = [each for each in REGISTRY.result_formats() if each != "openai.chat.tool"]
WITH_ERRORS = ["core.text", "anthropic.tool_result", "gemini.function_response"]


names = st.text(min_size=1).filter(lambda name: bool(name.strip()))
ids = st.none() | st.text(min_size=1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
json_calls = st.builds(
    ToolCall, call_id=ids, tool_name=names, payload=st.dictionaries(st.text(), json_values)
)
text_calls = st.builds(
    ToolCall,
    call_id=ids,
    tool_name=names,
    payload=st.text(),
    payload_kind=st.just("text"),
    payload_format=st.just("text"),
)
parameters = st.dictionaries(st.text(), json_values, max_size=3).map(
    lambda properties: {"type": "object", "properties": properties}
)
json_schemas = st.builds(InspectedSchema, name=names, description=st.text(), parameters=parameters)


@st.composite
def text_schemas(draw: st.DrawFn) -> InspectedSchema:
    syntax = draw(st.sampled_from(["text", "lark", "regex"]))
    grammar = {"type": "grammar", "syntax": syntax, "definition": draw(st.text())}
    return InspectedSchema(
        name=draw(names),
        description=draw(st.text()),
        payload_kind="text",
        payload_format=syntax,
        payload_metadata={} if syntax == "text" else {"format": grammar},
    )


pictures = st.builds(
    lambda kind, data: {"type": "image", "mime_type": f"image/{kind}", "data": data},
    st.sampled_from(["png", "jpeg"]),
    st.binary().map(bytes.hex),
)
illustrated = st.builds(
    lambda text, more: ToolResult(text=text, parts=({"type": "text", "text": text}, *more)),
    st.text(min_size=1),
    st.lists(pictures, min_size=1).map(tuple),
)


def build(family: str, format_id: str, *values: Any) -> Any:
    table = getattr(REGISTRY._tables, family)
    return table.select([format_id])[0].build(*values)


def over_call(format_id: str, call: ToolCall) -> ToolCall:
    return REGISTRY.inspect_call(build("calls", format_id, call))


def over_schema(format_id: str, schema: InspectedSchema) -> InspectedSchema:
    return REGISTRY.inspect_schema(build("schemas", format_id, schema))


def over_result(format_id: str, result: ToolResult, target: ToolInteropTarget) -> ToolResult:
    return REGISTRY.inspect_result(build("results", format_id, result, target))


def over_two(wires: tuple[str, ...], start: Any, target: ToolInteropTarget) -> ToolResult:
    first, second = wires
    there = REGISTRY.convert_tool_result(start, target=target, target_formats=[first])
    then = REGISTRY.convert_tool_result(there, target=target, target_formats=[second])
    return REGISTRY.inspect_result(then)


@settings(max_examples=25)
@given(call=json_calls)
def test_a_json_call_survives_any_two_wires(call: ToolCall) -> None:
    for first, second in product(JSON_CALLS, repeat=2):
        assert over_call(second, over_call(first, call)) == call, (first, second)


@settings(max_examples=25)
@given(call=text_calls)
def test_a_text_call_survives_any_two_wires(call: ToolCall) -> None:
    for first, second in product(TEXT_CALLS, repeat=2):
        assert over_call(second, over_call(first, call)) == call, (first, second)


@settings(max_examples=25)
@given(call=text_calls)
def test_a_text_call_survives_a_json_wire(call: ToolCall) -> None:
    for text_format, json_format in product(TEXT_CALLS, JSON_CALLS):
        start = build("calls", text_format, call)

        there = REGISTRY.convert_tool_call(start, target=ANYONE, target_formats=[json_format])
        back = REGISTRY.convert_tool_call(there, target=ANYONE, target_formats=[text_format])

        assert back == start, json_format


@settings(max_examples=25)
@given(schema=json_schemas)
def test_a_json_tool_survives_any_two_wires(schema: InspectedSchema) -> None:
    for first, second in product(JSON_SCHEMAS, repeat=2):
        assert over_schema(second, over_schema(first, schema)) == schema, (first, second)


@settings(max_examples=25)
@given(schema=text_schemas())
def test_a_text_tool_survives_any_two_wires(schema: InspectedSchema) -> None:
    for first, second in product(TEXT_SCHEMAS, repeat=2):
        assert over_schema(second, over_schema(first, schema)) == schema, (first, second)


@settings(max_examples=25)
@given(schema=text_schemas())
def test_a_text_tool_survives_a_json_wire(schema: InspectedSchema) -> None:
    for text_format, json_format in product(TEXT_SCHEMAS, JSON_SCHEMAS):
        start = build("schemas", text_format, schema)

        there = REGISTRY.convert_tool_schema(start, target=ANYONE, target_formats=[json_format])
        back = REGISTRY.convert_tool_schema(there, target=ANYONE, target_formats=[text_format])

        assert back == start, json_format


@settings(max_examples=25)
@given(text=st.text(), call_id=st.text(min_size=1), tool=names)
def test_a_result_survives_any_two_wires(text: str, call_id: str, tool: str) -> None:
    target = ToolInteropTarget("x", ToolCall(call_id=call_id, tool_name=tool, payload={}))
    result = ToolResult(text=text, call_id=call_id)

    for first, second in product(WIRE_RESULTS, repeat=2):
        assert over_result(second, over_result(first, result, target), target) == result, (first, second)


@settings(max_examples=25)
@given(result=illustrated)
def test_an_illustrated_result_survives_any_two_wires(result: ToolResult) -> None:
    start = build("results", "core.text", result, CALLER)

    for wires in product(WITH_PICTURES, repeat=2):
        inspected = over_two(wires, start, CALLER)
        assert (inspected.text, inspected.parts) == (result.text, result.parts), wires


@settings(max_examples=25)
@given(text=st.text(min_size=1))
def test_a_failure_survives_any_two_wires_that_can_tell_it(text: str) -> None:
    start = {"type": "tool_result", "text": text, "is_error": True}

    for wires in product(WITH_ERRORS, repeat=2):
        inspected = over_two(wires, start, CALLER)
        assert (inspected.text, inspected.is_error) == (text, True), wires
