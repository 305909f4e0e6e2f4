"""How each wire format's tool call is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.errors import ToolError
from agent_core.frozen import freeze

if TYPE_CHECKING:
    from agent_core.interop import ToolInteropRegistry

JSON_CALLS: dict[str, dict[str, Any]] = {
    "openai.chat.function": {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look_up", "arguments": '{"word": "heron"}'},
    },
    "openai.responses.function": {
        "type": "function_call",
        "call_id": "call_1",
        "name": "look_up",
        "arguments": '{"word": "heron"}',
    },
    "anthropic.tool_use": {
        "type": "tool_use",
        "id": "call_1",
        "name": "look_up",
        "input": {"word": "heron"},
    },
    "gemini.function_call": {
        "functionCall": {"id": "call_1", "name": "look_up", "args": {"word": "heron"}},
    },
}
TEXT_CALLS: dict[str, dict[str, Any]] = {
    "openai.chat.custom": {
        "id": "call_1",
        "type": "custom",
        "custom": {"name": "patch", "input": "+ a line"},
    },
    "openai.responses.custom": {
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "patch",
        "input": "+ a line",
    },
}


@pytest.mark.parametrize(("format_id", "call"), JSON_CALLS.items())
def test_every_json_call_reads_the_same(
    registry: ToolInteropRegistry, format_id: str, call: dict[str, Any]
) -> None:
    inspected = registry.inspect_call(call)

    assert inspected.format_id == format_id
    assert (inspected.call_id, inspected.tool_name) == ("call_1", "look_up")
    assert (inspected.payload, inspected.payload_kind) == ({"word": "heron"}, "json")
    assert (inspected.payload_format, inspected.problem) == ("json_object", None)
    assert inspected.payload_metadata == {}


@pytest.mark.parametrize(("format_id", "call"), TEXT_CALLS.items())
def test_every_text_call_reads_the_same(
    registry: ToolInteropRegistry, format_id: str, call: dict[str, Any]
) -> None:
    inspected = registry.inspect_call(call)

    assert inspected.format_id == format_id
    assert (inspected.call_id, inspected.tool_name) == ("call_1", "patch")
    assert (inspected.payload, inspected.payload_kind) == ("+ a line", "text")
    assert (inspected.payload_format, inspected.problem) == ("text", None)


@pytest.mark.parametrize("call", [*JSON_CALLS.values(), *TEXT_CALLS.values()])
def test_a_frozen_call_reads_like_a_plain_one_and_is_kept_as_it_came(
    registry: ToolInteropRegistry, call: dict[str, Any]
) -> None:
    frozen = freeze(call)

    inspected = registry.inspect_call(frozen)

    assert inspected == registry.inspect_call(call)
    assert inspected.raw is frozen


@pytest.mark.parametrize("call", JSON_CALLS.values())
def test_a_tool_may_change_its_arguments_without_changing_the_call(
    registry: ToolInteropRegistry, call: dict[str, Any]
) -> None:
    inspected = registry.inspect_call(call)

    inspected.payload["word"] = "egret"

    assert registry.inspect_call(call).payload == {"word": "heron"}


def test_a_chat_call_without_a_type_and_with_decoded_arguments_is_understood(
    registry: ToolInteropRegistry,
) -> None:
    inspected = registry.inspect_call({"function": {"name": "look_up", "arguments": {"word": "heron"}}})

    assert inspected.format_id == "openai.chat.function"
    assert inspected.payload == {"word": "heron"}
    assert inspected.call_id is None


def test_the_flat_custom_call_of_the_platform_is_understood(registry: ToolInteropRegistry) -> None:
    flat = {"id": "call_1", "type": "custom", "name": "patch", "input": "+ a line"}

    assert registry.inspect_call(flat) == registry.inspect_call(TEXT_CALLS["openai.chat.custom"])


def test_a_bare_gemini_call_is_understood(registry: ToolInteropRegistry) -> None:
    inspected = registry.inspect_call({"name": "look_up", "args": {"word": "heron"}})

    assert inspected.format_id == "gemini.function_call"
    assert (inspected.call_id, inspected.payload) == (None, {"word": "heron"})


@pytest.mark.parametrize(
    "grammar",
    [
        {"type": "grammar", "syntax": "lark", "definition": "start: WORD"},
        {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: WORD"}},
    ],
)
def test_a_custom_call_that_names_its_grammar_tells_the_syntax(
    registry: ToolInteropRegistry, grammar: dict[str, Any]
) -> None:
    call = {"id": "call_1", "type": "custom", "name": "patch", "input": "x", "format": grammar}

    assert registry.inspect_call(call).payload_format == "lark"


def test_a_tool_that_the_server_runs_is_no_call(registry: ToolInteropRegistry) -> None:
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}

    with pytest.raises(ToolError, match="expected a tool call"):
        registry.inspect_call(block)


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        (
            {"index": 0, "function": {"name": "look_up", "arguments": "{}", "note": 1}},
            {"index": 0, "function": {"note": 1}},
        ),
        (
            {"type": "custom", "custom": {"name": "patch", "input": "", "note": 1}, "index": 0},
            {"index": 0, "custom": {"note": 1}},
        ),
        (
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "look_up",
                "arguments": "{}",
            },
            {"id": "fc_1"},
        ),
        (
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "patch", "input": ""},
            {"id": "ctc_1"},
        ),
        (
            {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {}, "cache_control": {}},
            {"cache_control": {}},
        ),
        (
            {"functionCall": {"name": "look_up", "args": {}, "willContinue": True}, "thoughtSignature": "s"},
            {"functionCall": {"willContinue": True}, "thoughtSignature": "s"},
        ),
    ],
)
def test_fields_that_only_one_format_knows_are_kept_as_extra(
    registry: ToolInteropRegistry, call: dict[str, Any], extra: dict[str, Any]
) -> None:
    assert registry.inspect_call(call).payload_metadata == {"extra": extra}


def with_field(call: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    """Return *call* with a field replaced, wherever its format keeps that field."""
    return {
        key: with_field(item, field, value) if isinstance(item, dict) and field in item else item
        for key, item in call.items()
    } | ({field: value} if field in call else {})


ALL_CALLS = [*JSON_CALLS.values(), *TEXT_CALLS.values()]


@pytest.mark.parametrize("call", ALL_CALLS)
@pytest.mark.parametrize("name", [None, "", "  ", 7, ["look_up"]])
def test_a_call_without_a_usable_name_is_refused_by_the_name_of_the_field(
    registry: ToolInteropRegistry, call: dict[str, Any], name: Any
) -> None:
    with pytest.raises(ToolError, match=r"name' must be the name of a tool, got"):
        registry.inspect_call(with_field(call, "name", name))


@pytest.mark.parametrize("call", ALL_CALLS)
@pytest.mark.parametrize(("wrong", "kind"), [(7, "a number"), (["x"], "a list"), (True, "a boolean")])
def test_an_id_that_is_not_text_is_refused_since_no_answer_could_quote_it(
    registry: ToolInteropRegistry, call: dict[str, Any], wrong: Any, kind: str
) -> None:
    field = "call_id" if "call_id" in call else "id"

    with pytest.raises(ToolError, match=f"'{field}' must be text, got {kind}"):
        registry.inspect_call(with_field(call, field, wrong))


@pytest.mark.parametrize("call", ALL_CALLS)
@pytest.mark.parametrize("missing", [None, ""])
def test_an_empty_id_is_no_id(registry: ToolInteropRegistry, call: dict[str, Any], missing: Any) -> None:
    field = "call_id" if "call_id" in call else "id"

    assert registry.inspect_call(with_field(call, field, missing)).call_id is None


@pytest.mark.parametrize("call", ALL_CALLS)
def test_a_very_long_id_is_kept_whole(registry: ToolInteropRegistry, call: dict[str, Any]) -> None:
    field = "call_id" if "call_id" in call else "id"
    long_id = "é" * 10_000

    assert registry.inspect_call(with_field(call, field, long_id)).call_id == long_id


@pytest.mark.parametrize("call", TEXT_CALLS.values())
def test_freeform_input_that_is_not_text_is_refused(
    registry: ToolInteropRegistry, call: dict[str, Any]
) -> None:
    with pytest.raises(ToolError, match="'input' must be text, got an object"):
        registry.inspect_call(with_field(call, "input", {"a": 1}))


@pytest.mark.parametrize("call", TEXT_CALLS.values())
def test_freeform_input_that_is_missing_is_empty(registry: ToolInteropRegistry, call: dict[str, Any]) -> None:
    assert registry.inspect_call(with_field(call, "input", None)).payload == ""


@pytest.mark.parametrize("nothing", [None, "look_up", 7, [], {}, {"function": "look_up"}, {"type": "custom"}])
def test_what_is_no_call_at_all_is_refused(registry: ToolInteropRegistry, nothing: Any) -> None:
    with pytest.raises(ToolError, match="expected a tool call in a known format"):
        registry.inspect_call(nothing)


def test_the_refusal_tells_the_keys_and_never_the_values(registry: ToolInteropRegistry) -> None:
    stranger = {"token": "hunter2", "k" * 100: "hunter2"} | {f"key{n}": "hunter2" for n in range(50)}

    with pytest.raises(ToolError) as caught:
        registry.inspect_call(stranger)

    message = str(caught.value)
    assert "'token'" in message and "anthropic.tool_use" in message
    assert "hunter2" not in message
    assert len(message) < 600
