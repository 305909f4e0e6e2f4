from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import tool
from agent_testing import ToolCall, responses_reply
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from agent_testing import Talk

SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed"}


def sent(items: list[dict[str, Any]], **config: Any) -> dict[str, Any]:
    state = {"config": {"model": "m", **config}, "tools": config.pop("tools", [])}
    return OpenAIResponsesProvider().request_body(items, state, stream=False)


def said(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def test_nothing_depends_on_the_servers_memory(talk: Talk) -> None:
    talk.add("user", "Hi").stream(responses_reply("Hello", reasoning="Greet"))
    talk.add("user", "Again").stream(responses_reply("Hello"))

    assert talk.sent["store"] is False
    assert talk.sent["include"] == ["reasoning.encrypted_content"]
    assert "previous_response_id" not in talk.sent
    assert talk.sent["input"][1]["encrypted_content"] == "ZW5jcnlwdGVkIGJ5IHRoZSBzY3JpcHQ="
    assert not any("_metadata" in item for item in talk.sent["input"])
    assert talk.server.request.path == "/v1/responses"
    assert talk.server.request.headers["authorization"] == "Bearer sk-responses-secret"


def test_the_same_history_is_always_sent_the_same_way(talk: Talk) -> None:
    talk.add("user", "Hi").stream(responses_reply("Hello", reasoning="Greet", tool_calls=[ToolCall("brew")]))
    talk.add("tool", "ok", metadata={"tool_call_id": "call_1"}).call(responses_reply("Done"))
    first = talk.sent["input"]
    talk.add("user", "Again").call(responses_reply("Done"))

    assert talk.sent["input"][: len(first)] == first


@pytest.mark.parametrize("kept", [True, False])
def test_ids_are_kept_or_left_out(talk: Talk, *, kept: bool) -> None:
    reply = responses_reply("Hello", reasoning="Greet", items=[SEARCH], tool_calls=[ToolCall("brew")])
    talk.add("user", "Hi").stream(reply).add("user", "Again")
    talk.call(responses_reply("Yes"), item_ids="keep" if kept else "omit")

    ids = {item["type"]: item.get("id") for item in talk.sent["input"][1:5]}
    assert ids["web_search_call"] == "ws_1"  # a built-in tool's item is nothing without it
    assert all((own is not None) == kept for kind, own in ids.items() if kind != "web_search_call")


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("system", {"input": [said("system", "Be brief."), said("user", "Hi")]}),
        ("developer", {"input": [said("developer", "Be brief."), said("user", "Hi")]}),
        ("instructions", {"instructions": "Be kind.\n\nBe brief.", "input": [said("user", "Hi")]}),
    ],
)
def test_system_messages_go_where_the_settings_say(role: str, expected: dict[str, Any]) -> None:
    body = sent([said("system", "Be brief."), said("user", "Hi")], system_role=role, instructions="Be kind.")

    assert body["input"] == expected["input"]
    assert body["instructions"] == expected.get("instructions", "Be kind.")


def test_settings_become_fields(talk: Talk) -> None:
    schema = {"type": "json_schema", "name": "tea", "schema": {"type": "object"}, "strict": True}
    talk.add("user", "Hi").call(
        responses_reply("{}"),
        reasoning_effort="low",
        reasoning_summary="auto",
        text_format=schema,
        verbosity="low",
        max_output_tokens=10,
        include=["message.output_text.logprobs"],
        builtin_tools=[{"type": "web_search"}],
        tool_choice="auto",
        parallel_tool_calls=False,
        prompt_cache_key="k",
        extra_body={"seed": 1},
    )

    assert talk.sent == {
        "model": "scripted-model",
        "input": [said("user", "Hi")],
        "store": False,
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": schema, "verbosity": "low"},
        "max_output_tokens": 10,
        "tools": [{"type": "web_search"}],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "seed": 1,
    }


def test_models_that_do_not_think_are_not_asked_for_their_thoughts() -> None:
    assert "include" not in sent([], model="gpt-4o-mini")
    assert "include" not in sent([], model="o3", encrypted_reasoning=False)
    assert sent([], model="gpt-4o", encrypted_reasoning=True)["include"] == ["reasoning.encrypted_content"]


def test_without_tools_nothing_is_said_about_them() -> None:
    assert "tool_choice" not in sent([], tool_choice="required", parallel_tool_calls=True)


def test_function_tools_arrive_in_the_apis_form_and_can_be_chosen_by_name(talk: Talk) -> None:
    @tool
    def brew(minutes: int) -> str:
        """Make tea."""
        return f"brewed for {minutes}"

    talk.core.register_tool(brew)
    talk.add("user", "Tea").call(responses_reply("ok"), tool_choice="brew")

    [schema] = talk.sent["tools"]
    assert (schema["type"], schema["name"], schema["strict"]) == ("function", "brew", False)
    assert talk.sent["tool_choice"] == {"type": "function", "name": "brew"}


class Sketch:
    """A tool that takes freeform text by a grammar."""

    name = "sketch"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        grammar = {"type": "grammar", "syntax": "regex", "definition": "[a-z ]+"}
        return [{"type": "custom", "name": "draw", "description": "Draw", "format": grammar}]

    def execute_tool(self, tool_name: str, arguments: str) -> dict[str, Any]:
        return {"success": True, "content": f"{tool_name}: {arguments}"}


def test_a_grammar_tool_is_offered_called_and_answered_as_one(talk: Talk) -> None:
    talk.core.register_tool(Sketch())
    talk.add("user", "Draw").stream(responses_reply(tool_calls=[ToolCall("draw", input="a cup")]))
    assert talk.sent["tools"][0]["format"]["definition"] == "[a-z ]+"

    [message] = talk.core.execute_tool_calls(talk.about["tool_calls"], talk.config)
    talk.add(
        "tool", message["content"], metadata=message["metadata"], tool_result=message["tool_result"]
    ).call(responses_reply("Nice"))

    assert talk.sent["input"][-1]["type"] == "custom_tool_call_output"
    assert "draw: a cup" in talk.sent["input"][-1]["output"]


def test_only_a_person_may_say_nothing() -> None:
    body = sent([said("user", "Hi"), said("assistant", ""), said("user", "")])

    assert body["input"] == [said("user", "Hi"), said("user", "")]


def test_images_and_files_are_sent_in_the_apis_form(talk: Talk) -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "Look"},
        {"type": "image", "data": "aGk=", "mime_type": "image/png"},
        {"type": "image", "url": "https://tea.example/cup.png"},
        {"type": "file", "data": "aGk=", "mime_type": "application/pdf", "name": "tea.pdf"},
        {"type": "file", "url": "https://tea.example/tea.pdf"},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "input_image", "image_url": "https://tea.example/2.png", "detail": "low", "more": 1},
        {"type": "tea_leaf", "kind": "sencha"},
    ]
    talk.session = talk.core.add_message(talk.session, "user", "Look", multipart_content=parts)
    talk.call(responses_reply("A cup"))

    assert talk.sent["input"][0]["content"] == [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_image", "image_url": "https://tea.example/cup.png"},
        {"type": "input_file", "filename": "tea.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://tea.example/tea.pdf"},
        {"type": "input_file", "file_id": "file_1"},
        parts[6],
        parts[7],
    ]


def test_ids_that_are_too_long_stay_together() -> None:
    provider = OpenAIResponsesProvider()
    call = {"id": "x" * 80, "type": "function", "function": {"name": "brew", "arguments": "{}"}}
    items = provider.to_native_messages(
        [
            {"role": "assistant", "content": "", "metadata": {"tool_calls": [call]}},
            {"role": "tool", "content": "ok", "metadata": {"tool_call_id": "x" * 80}},
        ]
    )

    assert items[0]["call_id"] == items[1]["call_id"]
    assert len(items[0]["call_id"]) <= 64
