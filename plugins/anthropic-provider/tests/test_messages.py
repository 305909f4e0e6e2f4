from __future__ import annotations

from typing import Any

import pytest

from anthropic_provider import AnthropicProvider
from anthropic_provider.messages import to_item, to_messages, wire_id

PIXEL = "R0lGODlhAQABAAAAADs="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": PIXEL}}


def calling(call_id: str, name: str = "look_up", arguments: str = '{"word": "tea"}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_system_message_is_an_item_of_its_own() -> None:
    message = {"role": "system", "content": "Be brief.", "metadata": {}}

    assert to_item(message) == {"role": "system", "content": "Be brief."}
    assert to_messages(to_item(message)) == [message]


def test_a_call_of_the_assistant_becomes_a_tool_use_and_comes_back() -> None:
    message = {"role": "assistant", "content": "Let me see.", "metadata": {"tool_calls": [calling("call_1")]}}

    item = to_item(message)

    assert item["content"] == [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"word": "tea"}},
    ]
    [back] = to_messages(item)
    assert back["metadata"]["tool_calls"] == [calling("call_1", arguments='{"word":"tea"}')]


def test_a_call_of_a_freeform_tool_becomes_one_with_an_input() -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "ls"}}

    [block] = to_item({"role": "assistant", "content": "", "metadata": {"tool_calls": [call]}})["content"]

    assert block == {"type": "tool_use", "id": "call_1", "name": "run", "input": {"input": "ls"}}


def test_ids_and_names_that_the_api_does_not_take_are_changed_alike_everywhere() -> None:
    call = calling("functions.look_up:0", name="my.tool")
    [use] = to_item({"role": "assistant", "content": None, "metadata": {"tool_calls": [call]}})["content"]
    [result] = to_item({"role": "tool", "content": "ok", "metadata": {"tool_call_id": call["id"]}})["content"]

    assert use["id"] == result["tool_use_id"] == wire_id("functions.look_up:0")
    assert use["name"] == "my_tool"
    assert wire_id("functions.look_up:0") != wire_id("functions:look_up.0")
    assert wire_id("toolu_01-a") == "toolu_01-a"


def test_a_tool_message_becomes_a_result_of_the_user() -> None:
    message = {"role": "tool", "content": "a drink", "metadata": {"tool_call_id": "call_1"}}

    item = to_item(message)

    block = {"type": "tool_result", "tool_use_id": "call_1", "content": "a drink"}
    assert item == {"role": "user", "content": [block]}
    assert to_messages(item) == [{**message, "tool_result": block}]


@pytest.mark.parametrize(
    "failed",
    [
        {"tool_result": {"type": "tool_result", "text": "no tea", "is_error": True}},
        {"metadata": {"tool_call_id": "call_1", "error": {"type": "tool_failed"}}},
    ],
)
def test_a_failure_is_marked_as_one_and_comes_back_as_one(failed: dict[str, Any]) -> None:
    message = {"role": "tool", "content": "no tea", "metadata": {"tool_call_id": "call_1"}, **failed}

    [block] = to_item(message)["content"]
    [back] = to_messages(to_item(message))

    assert block["is_error"] is True and block["content"] == "no tea"
    assert back["metadata"]["error"] == {"type": "tool_failed"}
    assert to_item(back) == to_item(message)


def test_a_failure_without_words_gets_one_since_the_api_wants_some() -> None:
    result = {"type": "tool_result", "text": "", "is_error": True}
    message = {"role": "tool", "content": "", "metadata": {"tool_call_id": "a"}, "tool_result": result}

    assert to_item(message)["content"][0]["content"] == "Error"


def test_images_in_a_result_are_sent_and_come_back() -> None:
    result = {
        "type": "tool_result",
        "text": "Look",
        "parts": [{"type": "image", "mime_type": "image/gif", "data": PIXEL}],
    }
    message = {"role": "tool", "content": "Look", "metadata": {"tool_call_id": "a"}, "tool_result": result}

    [block] = to_item(message)["content"]

    assert block["content"] == [{"type": "text", "text": "Look"}, IMAGE]
    assert to_messages(to_item(message))[0]["tool_result"] == block


def test_a_result_that_nobody_can_read_is_sent_as_its_text() -> None:
    odd = {"type": "tool_result", "content": 7, "tool_use_id": 7}
    message = {"role": "tool", "content": "seven", "metadata": {"tool_call_id": "a"}, "tool_result": odd}

    [block] = to_item(message)["content"]

    assert block == {"type": "tool_result", "tool_use_id": "a", "content": "seven"}


def test_an_item_with_several_results_and_words_is_several_messages() -> None:
    results = [{"type": "tool_result", "tool_use_id": name, "content": f"{name}!"} for name in ("a", "b")]
    item = {"role": "user", "content": [*results, {"type": "text", "text": "Go on"}]}

    messages = AnthropicProvider().from_native_messages([item])

    assert [(message["role"], message["content"]) for message in messages] == [
        ("tool", "a!"),
        ("tool", "b!"),
        ("user", "Go on"),
    ]


def test_the_assistants_own_parts_are_used_when_an_item_is_made_anew() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    item = {"role": "assistant", "content": [{"type": "text", "text": "Hm"}, search, found]}

    [message] = to_messages(item)

    assert message["multipartContent"] == item["content"]
    assert to_item(message) == item


def test_parts_of_another_providers_assistant_give_way_to_the_text() -> None:
    message = {"role": "assistant", "content": "Hm", "multipartContent": [{"executableCode": {"code": "1"}}]}

    assert to_item(message) == {"role": "assistant", "content": "Hm"}


def test_content_that_is_no_text_is_sent_as_json() -> None:
    assert to_item({"role": "user", "content": None, "metadata": {}})["content"] == ""
    assert "tea" in to_item({"role": "user", "content": {"word": "tea"}, "metadata": {}})["content"]
