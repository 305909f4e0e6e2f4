"""How each wire format answers a tool call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.errors import ToolError
from agent_core.frozen import freeze

if TYPE_CHECKING:
    from agent_core.interop import ToolInteropRegistry, ToolInteropTarget

Case = Callable[..., AbstractContextManager[None]]

RESULTS: dict[str, dict[str, Any]] = {
    "core.text": {"type": "tool_result", "text": "a bird"},
    "openai.chat.tool": {"role": "tool", "tool_call_id": "call_1", "content": "a bird"},
    "openai.responses.function_call_output": {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "a bird",
    },
    "openai.responses.custom_tool_call_output": {
        "type": "custom_tool_call_output",
        "call_id": "call_1",
        "output": "a bird",
    },
    "anthropic.tool_result": {"type": "tool_result", "tool_use_id": "call_1", "content": "a bird"},
    "gemini.function_response": {
        "functionResponse": {"id": "call_1", "name": "look_up", "response": {"output": "a bird"}},
    },
}
SAID = {"type": "text", "text": "a bird:"}
PICTURE = {"type": "image", "mime_type": "image/png", "data": "aGVyb24="}
ILLUSTRATED: dict[str, dict[str, Any]] = {
    "core.text": {"type": "tool_result", "text": "a bird:", "parts": [SAID, PICTURE]},
    "openai.responses.function_call_output": {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            {"type": "input_text", "text": "a bird:"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGVyb24="},
        ],
    },
    "anthropic.tool_result": {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": [
            SAID,
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVyb24="}},
        ],
    },
    "gemini.function_response": {
        "functionResponse": {
            "id": "call_1",
            "name": "look_up",
            "response": {"output": "a bird:"},
            "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGVyb24="}}],
        },
    },
}


@pytest.mark.parametrize(("format_id", "result"), RESULTS.items())
def test_every_result_reads_the_same(
    registry: ToolInteropRegistry, format_id: str, result: dict[str, Any]
) -> None:
    inspected = registry.inspect_result(freeze(result))

    assert inspected.format_id == format_id
    assert (inspected.text, inspected.is_error, inspected.parts) == ("a bird", False, ())
    assert inspected.call_id == (None if format_id == "core.text" else "call_1")
    assert inspected.display is None


def test_every_result_is_written_as_its_new_format_writes_it(
    registry: ToolInteropRegistry, caller: ToolInteropTarget, case: Case
) -> None:
    for (format_id, expected), source in product(RESULTS.items(), RESULTS.values()):
        with case(format_id, source):
            written = registry.convert_tool_result(source, target=caller, target_formats=[format_id])

            assert written == expected


@pytest.mark.parametrize("source", ILLUSTRATED.values())
@pytest.mark.parametrize(("format_id", "expected"), ILLUSTRATED.items())
def test_pictures_cross_every_wire_that_has_room_for_them(
    registry: ToolInteropRegistry,
    caller: ToolInteropTarget,
    source: dict[str, Any],
    format_id: str,
    expected: dict[str, Any],
) -> None:
    assert registry.inspect_result(source).parts == (SAID, PICTURE)
    assert registry.convert_tool_result(source, target=caller, target_formats=[format_id]) == expected


@pytest.mark.parametrize("source", ILLUSTRATED.values())
def test_a_picture_that_finds_no_room_is_left_out_in_words(
    registry: ToolInteropRegistry, caller: ToolInteropTarget, source: dict[str, Any]
) -> None:
    message = registry.convert_tool_result(source, target=caller, target_formats=["openai.chat.tool"])

    assert message["content"] == "a bird:\n[image left out]"


def test_a_picture_prefers_the_format_that_has_room_to_the_one_named_first(
    registry: ToolInteropRegistry, caller: ToolInteropTarget
) -> None:
    wanted = ["openai.chat.tool", "anthropic.tool_result"]

    converted = registry.convert_tool_result(ILLUSTRATED["core.text"], target=caller, target_formats=wanted)

    assert converted == ILLUSTRATED["anthropic.tool_result"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "url", "url": "https://birds.example/heron"}},
        {"type": "image_url", "image_url": {"url": "https://birds.example/heron"}},
        {"type": "input_image", "image_url": "https://birds.example/heron", "detail": "low"},
        {"type": "image", "url": "https://birds.example/heron"},
    ],
)
def test_a_picture_may_be_an_address_in_any_dialect(
    registry: ToolInteropRegistry, caller: ToolInteropTarget, part: dict[str, Any]
) -> None:
    result = {"type": "tool_result", "text": "", "parts": [part]}

    there = registry.convert_tool_result(result, target=caller, target_formats=["anthropic.tool_result"])
    words = registry.convert_tool_result(result, target=caller, target_formats=["gemini.function_response"])

    assert there["content"] == [
        {"type": "image", "source": {"type": "url", "url": "https://birds.example/heron"}}
    ]
    assert words["functionResponse"]["response"] == {"output": "[image left out]"}


def test_text_in_several_pieces_is_one_text(registry: ToolInteropRegistry) -> None:
    pieces = [{"type": "text", "text": "a bird"}, {"type": "text", "text": "of the marsh"}]

    inspected = registry.inspect_result({"type": "tool_result", "tool_use_id": "call_1", "content": pieces})

    assert (inspected.text, inspected.parts) == ("a bird\nof the marsh", ())


def test_text_that_its_parts_do_not_repeat_is_not_lost(
    registry: ToolInteropRegistry, caller: ToolInteropTarget
) -> None:
    result = {"type": "tool_result", "text": "found one", "parts": [SAID, PICTURE]}

    sent = registry.convert_tool_result(result, target=caller, target_formats=["anthropic.tool_result"])

    assert [part.get("text") for part in sent["content"]] == ["found one", "a bird:", None]


def test_a_part_of_an_unknown_kind_returns_only_to_the_format_it_is_from(
    registry: ToolInteropRegistry, caller: ToolInteropTarget
) -> None:
    reference = {"type": "tool_reference", "tool_name": "look_up"}
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": [SAID, reference]}

    assert registry.inspect_result(block).parts == (SAID, reference)
    sent = registry.convert_tool_result(block, target=caller, target_formats=["gemini.function_response"])
    assert sent["functionResponse"]["response"] == {"output": "a bird:\n[tool_reference left out]"}


@pytest.mark.parametrize(
    ("format_id", "result"),
    [
        ("core.text", {"type": "tool_result", "text": "no such word", "is_error": True}),
        (
            "anthropic.tool_result",
            {"type": "tool_result", "tool_use_id": "call_1", "content": "no such word", "is_error": True},
        ),
        (
            "gemini.function_response",
            {
                "functionResponse": {
                    "id": "call_1",
                    "name": "look_up",
                    "response": {"error": "no such word"},
                }
            },
        ),
    ],
)
def test_a_failure_stays_one_where_the_format_can_say_so(
    registry: ToolInteropRegistry, caller: ToolInteropTarget, format_id: str, result: dict[str, Any]
) -> None:
    core = {"type": "tool_result", "text": "no such word", "is_error": True}

    assert registry.inspect_result(result).is_error
    assert registry.convert_tool_result(core, target=caller, target_formats=[format_id]) == result


def test_only_the_platforms_own_result_carries_a_display(
    registry: ToolInteropRegistry, caller: ToolInteropTarget
) -> None:
    display = {"type": "text", "content": "a bird"}
    result = {"success": True, "result": "a bird", "display": display}

    for format_id in registry.result_formats():
        sent = registry.convert_tool_result(result, target=caller, target_formats=[format_id])
        assert registry.inspect_result(sent).display == (display if format_id == "core.text" else None)


@pytest.mark.parametrize(
    "result",
    [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "x", "display": {"type": "html"}},
        {"role": "tool", "tool_call_id": "call_1", "content": "x", "display": {"type": "html"}},
    ],
)
def test_a_result_from_a_wire_never_becomes_a_display(
    registry: ToolInteropRegistry, result: dict[str, Any]
) -> None:
    assert registry.inspect_result(result).display is None


@pytest.mark.parametrize("format_id", [each for each in RESULTS if each != "core.text"])
def test_an_answer_to_nobody_cannot_be_sent_and_the_error_says_what_is_missing(
    registry: ToolInteropRegistry, anyone: ToolInteropTarget, format_id: str
) -> None:
    with pytest.raises(ToolError, match=f"{format_id}: .* give the target a call"):
        registry.convert_tool_result("a bird", target=anyone, target_formats=[format_id])


@pytest.mark.parametrize(
    ("result", "id_field"),
    [
        ({"type": "tool_result", "content": "a bird", "cache_control": {}}, "tool_use_id"),
        ({"role": "tool", "content": "a bird", "name": "x"}, "tool_call_id"),
        ({"type": "function_call_output", "output": "a bird", "status": "completed"}, "call_id"),
    ],
)
def test_a_tool_may_leave_the_id_to_the_platform_and_keeps_its_other_fields(
    registry: ToolInteropRegistry, caller: ToolInteropTarget, result: dict[str, Any], id_field: str
) -> None:
    own = registry.inspect_result(result).format_id

    assert registry.convert_tool_result(freeze(result), target=caller, target_formats=[own]) == {
        **result,
        id_field: "call_1",
    }


def test_a_gemini_response_may_leave_the_id_to_the_platform(
    registry: ToolInteropRegistry, caller: ToolInteropTarget
) -> None:
    body = {"name": "look_up", "response": {"output": "a bird"}, "scheduling": "SILENT"}

    sent = registry.convert_tool_result(
        {"functionResponse": body}, target=caller, target_formats=["gemini.function_response"]
    )

    assert sent == {"functionResponse": {**body, "id": "call_1"}}


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    ],
)
def test_media_that_is_no_picture_we_know_is_kept_as_it_came(
    registry: ToolInteropRegistry, part: dict[str, Any]
) -> None:
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": [part]}

    assert registry.inspect_result(result).parts == (part,)


def test_content_may_list_bare_texts(registry: ToolInteropRegistry) -> None:
    result = {"role": "tool", "tool_call_id": "call_1", "content": ["a bird", "of the marsh"]}

    assert registry.inspect_result(result).text == "a bird\nof the marsh"


def test_a_gemini_response_with_keys_of_its_own_is_read_whole(registry: ToolInteropRegistry) -> None:
    response = {"temperature": 21, "sky": "clear"}

    inspected = registry.inspect_result({"functionResponse": {"name": "look_up", "response": response}})

    assert inspected.text == '{\n  "sky": "clear",\n  "temperature": 21\n}'


@pytest.mark.parametrize(
    "result",
    [
        {"type": "tool_result", "tool_use_id": 7, "content": ""},
        {"role": "tool", "tool_call_id": 7, "content": ""},
        {"type": "function_call_output", "call_id": 7, "output": ""},
        {"functionResponse": {"id": 7, "name": "look_up", "response": {}}},
        {"functionResponse": {"name": "look_up", "response": "a bird"}},
    ],
)
def test_a_result_with_a_field_of_the_wrong_type_is_refused(
    registry: ToolInteropRegistry, result: dict[str, Any]
) -> None:
    with pytest.raises(ToolError, match=r"must be (text|an object), got"):
        registry.inspect_result(result)


@pytest.mark.parametrize(
    "result",
    [
        {"type": "tool_result", "tool_use_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": None},
        {"role": "tool", "tool_call_id": "call_1", "content": []},
        {"functionResponse": {"name": "look_up"}},
    ],
)
def test_a_result_that_says_nothing_is_empty_text(
    registry: ToolInteropRegistry, result: dict[str, Any]
) -> None:
    assert registry.inspect_result(result).text == ""
