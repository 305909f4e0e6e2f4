from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import EchoProvider
from agent_testing import ToolCall, gemini_reply
from gemini_provider import GeminiProvider
from gemini_provider.messages import from_part, to_item, to_messages, to_part

if TYPE_CHECKING:
    from agent_testing import Talk

PNG = "iVBORw0KGgo="


def test_every_role_has_its_item() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    items = GeminiProvider().to_native_messages(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "So", "metadata": {"tool_calls": [call]}},
            {"role": "tool", "content": "1", "metadata": {"tool_call_id": "c", "tool_name": "f"}},
        ]
    )

    assert items == [
        {"role": "system", "parts": [{"text": "Be brief."}]},
        {"role": "user", "parts": [{"text": "Hi"}]},
        {
            "role": "model",
            "parts": [{"text": "So"}, {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "1"}}}],
        },
    ]


def test_a_failed_tool_is_sent_as_an_error() -> None:
    result = {"type": "tool_result", "text": "no such word", "is_error": True}
    known = {"tool_call_id": "c", "tool_name": "f"}
    item = to_item({"role": "tool", "content": "no such word", "metadata": known, "tool_result": result})

    assert item["parts"][0]["functionResponse"]["response"] == {"error": "no such word"}
    [message] = to_messages([item])
    assert message["metadata"]["error"] == {"type": "tool_failed"}
    assert message["content"] == "no such word" and message["metadata"]["tool_name"] == "f"


def test_a_picture_among_the_results_is_sent(talk: Talk) -> None:
    talk.add("user", "Hi").call(gemini_reply(tool_calls=[ToolCall("draw", {}, id="d")]))
    picture = {"type": "image", "mime_type": "image/png", "data": PNG}
    result = {"type": "tool_result", "text": "here", "parts": [{"type": "text", "text": "here"}, picture]}
    known = {"tool_call_id": "d", "tool_name": "draw"}
    talk.add("tool", "here", metadata=known, tool_result=result).call(gemini_reply("Nice."))

    response = talk.sent["contents"][2]["parts"][0]["functionResponse"]
    assert response["response"] == {"output": "here"}
    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PNG}}]


def test_parts_of_a_tool_message_without_a_structured_result_are_sent_too() -> None:
    known = {"tool_call_id": "c", "tool_name": "f", "error": {"type": "tool_failed"}}
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image", "mime_type": "image/png", "data": PNG},
        {"type": "hologram"},
    ]
    item = to_item({"role": "tool", "content": "see", "metadata": known, "multipartContent": parts[:2]})
    odd = to_item({"role": "tool", "content": "see", "metadata": known, "multipartContent": parts})

    [part] = item["parts"]
    assert part["functionResponse"]["response"] == {"error": "see"}
    assert part["functionResponse"]["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
    assert "hologram left out" in odd["parts"][0]["functionResponse"]["response"]["error"]


def test_what_another_provider_ran_is_not_put_into_the_models_mouth() -> None:
    parts = [{"type": "server_tool_use", "id": "s", "name": "web_search"}, {"type": "text", "text": "Tea."}]
    said = {"role": "assistant", "content": "Tea.", "multipartContent": parts}

    assert to_item(said)["parts"] == [{"text": "Tea."}]
    assert to_item({**said, "multipartContent": parts[:1]})["parts"] == [{"text": "Tea."}]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "text": "a"}, {"text": "a"}),
        ({"type": "image", "data": PNG, "mime_type": "image/gif"}, ("image/gif", PNG)),
        ({"type": "image", "data": PNG}, ("image/png", PNG)),
        ({"type": "image_url", "image_url": {"url": f"data:image/webp;base64,{PNG}"}}, ("image/webp", PNG)),
        ({"type": "file", "data": "AA==", "mime_type": "application/pdf"}, ("application/pdf", "AA==")),
        ({"type": "file", "data": "e30=", "mime_type": "application/json"}, ("text/plain", "e30=")),
        ({"type": "file", "data": "AA==", "name": "a.pdf"}, ("application/pdf", "AA==")),
        ({"type": "file", "file": {"file_data": "data:text/csv;base64,AA=="}}, ("text/csv", "AA==")),
        ({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}, ("audio/wav", "AA==")),
    ],
)
def test_parts_of_every_dialect_are_understood(part: dict[str, Any], expected: Any) -> None:
    if isinstance(expected, tuple):
        expected = {"inlineData": {"mimeType": expected[0], "data": expected[1]}}

    assert to_part(part) == expected


def test_an_address_is_sent_as_a_file() -> None:
    sent = to_part({"type": "image", "url": "https://x.example/a.png?b"})

    assert sent == {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/a.png?b"}}
    assert from_part(sent) == {"type": "image", "mime_type": "image/png", "url": "https://x.example/a.png?b"}
    assert to_part({"type": "file", "url": "https://x.example/f"}) == {
        "fileData": {"fileUri": "https://x.example/f"}
    }


def test_parts_in_the_own_form_pass_unchanged() -> None:
    own = {"fileData": {"fileUri": "gs://v", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1}}

    assert to_part(own) is own and from_part(own) is own
    assert to_part({"novelty": 1}) == {"novelty": 1}


def test_what_cannot_be_read_leaves_a_note() -> None:
    assert to_part({"type": "hologram"}) == {"text": "[hologram left out: it cannot be read here]"}
    assert to_part({"type": "file", "name": "a.bin"})["text"].startswith("[a.bin left out")


def test_an_answer_with_a_picture_is_readable_and_comes_back() -> None:
    item = {
        "role": "model",
        "parts": [{"text": "Here:"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}],
    }
    [message] = to_messages([item])

    assert message["multipartContent"] == [
        {"type": "text", "text": "Here:"},
        {"type": "image", "mime_type": "image/png", "data": PNG},
    ]
    assert to_item(message) == item


def test_results_without_ids_are_matched_by_name_and_order() -> None:
    def response(name: str, text: str) -> dict[str, Any]:
        return {"functionResponse": {"name": name, "response": {"output": text}}}

    calls: list[dict[str, Any]] = [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]
    items = [
        {"role": "model", "parts": calls},
        {"role": "user", "parts": [response("g", "1"), response("f", "2"), response("f", "3")]},
    ]
    assistant, *tools = to_messages(items)

    ids = [call["id"] for call in assistant["metadata"]["tool_calls"]]
    assert len(set(ids)) == 3
    assert [tool["metadata"]["tool_call_id"] for tool in tools] == [ids[1], ids[0], ids[2]]
    assert [tool["metadata"]["native_indices"] for tool in tools] == [[1], [1], [1]]


def test_a_message_without_words_has_no_parts() -> None:
    item = to_item({"role": "assistant", "content": None})

    assert item == {"role": "model", "parts": []}
    assert to_messages([item])[0]["content"] == ""


def test_a_result_of_a_strange_structure_keeps_its_text() -> None:
    strange = {"functionResponse": {"name": "f", "response": "text alone"}}
    known = {"tool_call_id": "c", "tool_name": "f", "error": {"type": "tool_failed"}}
    item = to_item({"role": "tool", "content": "text alone", "metadata": known, "tool_result": strange})

    assert item["parts"] == [
        {"functionResponse": {"id": "c", "name": "f", "response": {"error": "text alone"}}}
    ]


def test_going_to_another_provider_and_back_restores_the_signatures(talk: Talk) -> None:
    talk.core.register_provider(EchoProvider())
    talk.add("user", "Hi").call(gemini_reply("Yes.", signature="c2ln"))
    talk.add("user", "And you?").call(provider="echo", model="echo")
    talk.add("user", "And now?").call(gemini_reply("Still."))

    assert talk.sent["contents"][1] == {
        "role": "model",
        "parts": [{"text": "Yes.", "thoughtSignature": "c2ln"}],
    }
    assert len(talk.sent["contents"]) == 5


def test_a_session_of_another_provider_is_sent_whole(talk: Talk) -> None:
    call = {"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    talk.add("user", "Hi").add("assistant", "Look", metadata={"tool_calls": [call], "reasoning": "hm"})
    talk.add("tool", "1", metadata={"tool_call_id": "toolu_1", "tool_name": "f"}).call(gemini_reply("One."))

    assert talk.sent["contents"][1]["parts"] == [
        {"text": "Look"},
        {
            "functionCall": {"id": "toolu_1", "name": "f", "args": {}},
            "thoughtSignature": "skip_thought_signature_validator",
        },
    ]
