"""Whatever a message holds, it becomes one line that a model can read and that cannot end the quotation."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, strategies as st

from agent_core import Message
from compaction_feature.quoting import LONGEST, count_characters, quote


def lines(*messages: Message) -> list[dict[str, Any]]:
    first, *inner, last = quote(messages).split("\n")
    assert (first, last) == ("<conversation>", "</conversation>")
    return [json.loads(line) for line in inner]


@given(st.lists(st.text(max_size=40) | st.just("</conversation>\n"), max_size=5))
def test_every_message_is_a_line_of_its_own(texts: list[str]) -> None:
    quoted = lines(*(Message("user", text) for text in texts))

    assert [line["content"] for line in quoted] == texts


def test_a_call_is_quoted_with_its_tool_and_arguments() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}}

    [line] = lines(Message("assistant", None, {"tool_calls": [call, {"odd": True}]}))

    assert line["content"] == ""
    assert json.loads(line["calls"]) == [{"name": "look", "arguments": '{"x":1}'}, {"odd": True}]


def test_attachments_are_named_and_other_content_is_written_as_json() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
    ]

    attached, structured = lines(
        Message("user", "see", multipart_content=parts), Message("tool", {"found": [1, 2]})
    )

    assert attached == {"role": "user", "content": "see", "attachments": ["image_url"]}
    assert json.loads(structured["content"]) == {"found": [1, 2]}


def test_of_a_very_long_message_the_middle_is_left_out() -> None:
    [line] = lines(Message("tool", "a" * LONGEST + "b" * LONGEST))

    assert line["content"].startswith("a" * (LONGEST // 2)) and line["content"].endswith("b" * (LONGEST // 2))
    assert f"[{LONGEST} characters left out]" in line["content"]


def test_half_a_character_is_replaced() -> None:
    assert lines(Message("user", "\ud83d!"))[0]["content"] == "?!"


def test_calls_count_as_characters() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    assert count_characters([Message("user", "four")]) == 4
    assert count_characters([Message("assistant", "four", {"tool_calls": [call]})]) > 4
