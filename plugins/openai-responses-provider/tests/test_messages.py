from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import EchoProvider
from agent_provider_kit import Unreachable
from agent_testing import ToolCall, error_reply, json_reply, responses_reply
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from agent_testing import Talk

provider = OpenAIResponsesProvider()


def test_two_answers_in_a_row_stay_two_messages() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": text, "metadata": {}} for text in ("One", "Two")
    ]

    back = provider.from_native_messages(provider.to_native_messages(messages))

    assert [message["content"] for message in back] == ["One", "Two"]


def test_items_of_unknown_origin_are_put_together_by_sense() -> None:
    said: dict[str, Any] = {"role": "assistant", "content": "Yes"}
    call = {"type": "function_call", "call_id": "c1", "name": "brew", "arguments": "{}"}
    thought: dict[str, Any] = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok"}

    messages = provider.from_native_messages([thought, said, call, output, thought, said, said])

    assert [message["metadata"]["native_indices"] for message in messages] == [[0, 1, 2], [3], [4, 5], [6]]
    assert [message["role"] for message in messages] == ["assistant", "tool", "assistant", "assistant"]


def test_a_calls_kind_survives_the_way_there_and_back() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "brew", "arguments": '{"m":1}'}},
        {"id": "c2", "type": "custom", "name": "draw", "input": "a cup"},
    ]
    items = provider.to_native_messages(
        [{"role": "assistant", "content": "", "metadata": {"tool_calls": calls}}]
    )

    assert [item["type"] for item in items] == ["function_call", "custom_tool_call"]
    [message] = provider.from_native_messages(items)
    assert message["metadata"]["tool_calls"] == calls


def test_arguments_that_are_no_json_stay_as_the_model_wrote_them() -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "brew", "arguments": '{"minutes": '}
    [message] = provider.from_native_messages([item])

    assert message["metadata"]["tool_calls"][0]["function"]["arguments"] == '{"minutes": '
    [again] = provider.to_native_messages([message])
    assert again["call_id"] == "c1"


def test_a_tools_picture_is_sent_as_one() -> None:
    parts = [{"type": "text", "text": "A cup"}, {"type": "image", "data": "aGk=", "mime_type": "image/png"}]
    message = {
        "role": "tool",
        "content": "A cup",
        "metadata": {"tool_call_id": "c1"},
        "multipartContent": parts,
    }

    [item] = provider.to_native_messages([message])

    assert item["output"] == [
        {"type": "input_text", "text": "A cup"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot"}},
        {"type": "tool_search_output", "call_id": "c1", "tools": [], "execution": "client"},
    ],
)
def test_other_answers_to_the_model_are_tool_messages_and_come_back_whole(item: dict[str, Any]) -> None:
    [message] = provider.from_native_messages([item])

    assert message["role"] == "tool"
    assert provider.to_native_messages([message]) == [item]


def test_an_item_that_only_adds_tools_is_a_system_message_without_words() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": []}

    [message] = provider.from_native_messages([item])

    assert (message["role"], message["content"]) == ("system", "")
    assert message["metadata"]["item_type"] == "additional_tools"


def test_another_provider_reads_the_transcript_and_coming_back_restores_the_items(talk: Talk) -> None:
    talk.core.register_provider(EchoProvider())
    reply = responses_reply("Hello", reasoning="Greet", tool_calls=[ToolCall("brew", {"m": 1})])
    talk.add("user", "Hi").stream(reply).add("tool", "ok", metadata={"tool_call_id": "call_1"})
    talk.call(responses_reply("Done"))
    before = talk.native
    talk.add("user", "And you?")
    talk.session, _messages = talk.core.send_request(talk.session, {"provider": "echo"})

    talk.add("user", "Back").call(responses_reply("Welcome"))

    assert talk.native[: len(before)] == before
    assert talk.sent["input"][1]["type"] == "reasoning"


def test_editing_an_answer_leaves_its_neighbours_alone(talk: Talk) -> None:
    talk.add("user", "Hi").stream(responses_reply("Hello", reasoning="Greet"))
    talk.add("user", "Again").stream(responses_reply("Hello again", reasoning="Greet more"))
    talk.session = talk.core.modify_message(talk.session, 1, "Good day", config=talk.config)
    talk.add("user", "Bye").call(responses_reply("Bye"))

    sent = talk.sent["input"]
    assert [item["type"] for item in sent] == [
        "message",
        "message",
        "message",
        "reasoning",
        "message",
        "message",
    ]
    assert sent[1]["content"] == "Good day"
    assert [message.role for message in talk.session.messages] == ["user", "assistant"] * 3


def test_models_come_from_the_server_with_tags_by_their_names(talk: Talk) -> None:
    names = ["gpt-5.2", "o3-mini", "gpt-4o", "text-embedding-3-small"]
    talk.server.play(json_reply({"data": [{"id": name, "owned_by": "x"} for name in names]}))

    models = provider.get_models({**talk.config, "discover_models": True})

    tags = {model["id"]: set(model.get("tags", ())) for model in models}
    assert {"reasoning", "vision", "freeform_tools"} <= tags["gpt-5.2"]
    assert tags["o3-mini"] & {"reasoning", "vision"} == {"reasoning"}
    assert tags["gpt-4o"] & {"reasoning", "vision"} == {"vision"}
    assert tags["text-embedding-3-small"] == set()
    assert talk.server.request.path == "/v1/models"


def test_a_server_that_cannot_be_reached_for_its_models_is_named(talk: Talk) -> None:
    config = {**talk.config, "base_url": "http://127.0.0.1:9", "discover_models": True}

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
        provider.get_models(config)


def test_no_key_is_no_header(talk: Talk) -> None:
    talk.add("user", "Hi").call(responses_reply("Hello"), api_key="")

    assert "authorization" not in talk.server.request.headers


def test_the_error_of_a_refused_key_tells_where_it_came_from(talk: Talk) -> None:
    with pytest.raises(Exception, match=r"config\['api_key'\]"):
        talk.add("user", "Hi").call(error_reply(401, "Incorrect API key", code="invalid_api_key"))
