"""Messages as Chat Completions takes them, and back."""

from __future__ import annotations

from typing import Any

import pytest

from agent_provider_kit.chat import to_item, to_message, without_internal

CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"word":"tea"}'}}


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_a_plain_message_is_role_and_content(role: str) -> None:
    message = {"role": role, "content": "Hi", "metadata": {"shown": True}}

    assert to_item(message) == {"role": role, "content": "Hi"}


def test_a_call_keeps_its_shape_and_its_message_may_be_empty() -> None:
    message = {"role": "assistant", "content": "", "metadata": {"tool_calls": [CALL]}}

    assert to_item(message) == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert to_item({**message, "content": "Let me see"})["content"] == "Let me see"


def test_a_freeform_call_is_sent_as_a_custom_one() -> None:
    call = {"id": "c2", "type": "custom", "name": "draw", "input": "a line"}
    item = to_item({"role": "assistant", "content": "", "metadata": {"tool_calls": [call]}})

    assert item["tool_calls"] == [
        {"id": "c2", "type": "custom", "custom": {"name": "draw", "input": "a line"}}
    ]


def test_a_result_names_its_call() -> None:
    message = {"role": "tool", "content": "a drink", "metadata": {"tool_call_id": "c1", "tool_name": "x"}}

    assert to_item(message) == {"role": "tool", "content": "a drink", "tool_call_id": "c1"}


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        ({"type": "text", "text": "Hi"}, {"type": "text", "text": "Hi"}),
        (
            {"type": "image", "url": "https://a.test/b.png"},
            {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}},
        ),
        (
            {"type": "image", "data": "R0lG", "mime_type": "image/gif"},
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lG"}},
        ),
        (
            {"type": "file", "data": "JVBE", "mime_type": "application/pdf", "name": "a.pdf"},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        ),
        ({"type": "file", "file_id": "file-1"}, {"type": "file", "file": {"file_id": "file-1"}}),
        ({"type": "file", "file": {"file_id": "file-1"}}, {"type": "file", "file": {"file_id": "file-1"}}),
        (
            {"type": "image_url", "image_url": {"url": "x", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "x", "detail": "low"}},
        ),
        ({"type": "input_audio", "input_audio": {}}, {"type": "input_audio", "input_audio": {}}),
    ],
)
def test_parts_become_those_of_the_wire_or_pass_unchanged(part: dict[str, Any], sent: dict[str, Any]) -> None:
    message = {"role": "user", "content": "Hi", "multipartContent": [part]}

    assert to_item(message) == {"role": "user", "content": [sent]}


def test_an_item_becomes_a_readable_message() -> None:
    item = {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [CALL],
        "refusal": None,
        "reasoning_content": "hm",
        "annotations": [{"type": "url_citation"}],
        "their_own": 1,
        "_metadata": {"model": "m", "ending": "complete"},
    }

    assert to_message(item) == {
        "role": "assistant",
        "content": "Hi",
        "metadata": {
            "tool_calls": [CALL],
            "annotations": [{"type": "url_citation"}],
            "reasoning": "hm",
            "model": "m",
            "ending": "complete",
        },
    }


def test_a_developer_speaks_as_the_system() -> None:
    assert to_message({"role": "developer", "content": "Be brief"})["role"] == "system"


def test_null_reads_as_nothing_said() -> None:
    assert to_message({"role": "assistant", "content": None, "tool_calls": [CALL]})["content"] == ""


def test_parts_are_readable_and_kept() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Hi "},
        {"type": "text", "text": "you"},
        {"type": "text", "text": None},
        {"type": "thinking", "thinking": "..."},
        {"type": "thinking", "thinking": None},
    ]
    message = to_message({"role": "assistant", "content": parts})

    assert message["content"] == "Hi you"
    assert message["multipartContent"] == parts
    assert message["metadata"] == {"reasoning": "hm..."}


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_has_two_names(field: str) -> None:
    assert to_message({"role": "assistant", "content": "x", field: "hm"})["metadata"] == {"reasoning": "hm"}


def test_what_is_only_ours_is_not_sent() -> None:
    item = {"role": "user", "content": "Hi"}

    assert without_internal(item) is item
    assert without_internal({**item, "_metadata": {"a": 1}}) == item


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": "Be brief", "metadata": {}},
        {"role": "user", "content": "Hi", "metadata": {}},
        {"role": "assistant", "content": "Hi", "metadata": {}},
        {"role": "assistant", "content": "", "metadata": {"tool_calls": [CALL]}},
        {"role": "tool", "content": "a drink", "metadata": {"tool_call_id": "c1"}},
    ],
)
def test_messages_come_back_as_they_went(message: dict[str, Any]) -> None:
    assert to_message(to_item(message)) == message
