"""What is easily lost on the way: files by address, pictures of tools, speech, own fields."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from agent_provider_kit import RequestRefused
from agent_provider_kit.chat import compose, to_item, to_message
from agent_testing import (
    CHAT_USAGE,
    ScriptedServer,
    Talk,
    ToolCall,
    chat_chunk,
    chat_reply,
    error_reply,
    json_reply,
    sse_reply,
)
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from agent_testing import Line

PNG = "iVBORw0KGgo="


def user(part: dict[str, Any]) -> Any:
    return to_item({"role": "user", "content": "", "multipartContent": [part]})["content"][0]


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (
            {"type": "file", "url": "https://a.test/tea.pdf?v=1", "mime_type": "application/pdf"},
            {"type": "file", "file": {"filename": "tea.pdf", "file_data": "https://a.test/tea.pdf?v=1"}},
        ),
        (
            {"type": "input_file", "file_url": "https://a.test/tea.pdf", "filename": "t.pdf"},
            {"type": "file", "file": {"filename": "t.pdf", "file_data": "https://a.test/tea.pdf"}},
        ),
        (
            {"type": "document", "title": "tea", "source": {"type": "url", "url": "https://a.test/tea.pdf"}},
            {"type": "file", "file": {"filename": "tea", "file_data": "https://a.test/tea.pdf"}},
        ),
        (
            {"type": "audio", "data": "UklG", "mime_type": "audio/x-wav"},
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        ),
        (
            {"type": "audio", "data": "SUQz", "format": "mp3"},
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        ),
        (
            {"inlineData": {"mimeType": "audio/mpeg", "data": "SUQz"}},
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        ),
        (
            {"type": "audio", "url": "https://a.test/tea.mp3"},
            {"type": "audio_url", "audio_url": {"url": "https://a.test/tea.mp3"}},
        ),
        (
            {"type": "video", "url": "https://a.test/tea.mp4"},
            {"type": "video_url", "video_url": {"url": "https://a.test/tea.mp4"}},
        ),
    ],
)
def test_a_part_of_any_kind_is_sent(part: dict[str, Any], sent: dict[str, Any]) -> None:
    assert user(part) == sent


def test_what_a_server_does_not_take_is_refused_by_name(talk: Talk) -> None:
    part = {"type": "audio", "url": "https://a.test/tea.mp3"}
    talk.add("user", "Listen", multipart_content=[part])

    with pytest.raises(RequestRefused, match="Invalid value: 'audio_url'"):
        talk.call(error_reply(400, "Invalid value: 'audio_url'. Supported values are: 'text', 'image_url'."))


def test_pictures_of_results_follow_in_a_message_of_their_own(talk: Talk) -> None:
    calls = [ToolCall("look", {}, id="c1"), ToolCall("listen", {}, id="c2")]
    talk.add("user", "What do you see?").call(chat_reply(tool_calls=calls))
    picture = [{"type": "text", "text": "A cup."}, {"type": "image", "data": PNG, "mime_type": "image/png"}]
    sound = [{"type": "text", "text": "A sip."}, {"type": "audio", "data": "UklG"}]
    talk.add("tool", "A cup.", {"tool_call_id": "c1", "tool_name": "look"}, multipart_content=picture)
    talk.add("tool", "A sip.", {"tool_call_id": "c2", "tool_name": "listen"}, multipart_content=sound)

    talk.call(chat_reply("A cup of tea."))
    _asked, _called, look, listen, images = talk.sent["messages"]
    assert look == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "A cup.\n[The image of this result is in the next message.]",
    }
    assert listen["content"].startswith("A sip.\n[input_audio left out")
    assert images["role"] == "user"
    assert images["content"] == [
        {"type": "text", "text": "From the result of call c1:"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ]
    assert talk.session.messages[2].content == "A cup."


SPOKEN = {"id": "audio_1", "transcript": "Tea.", "data": b64encode(b"tea").decode(), "expires_at": 4102444800}


def spoken_stream() -> Line:
    pieces = [
        {"id": "audio_1", "transcript": "T"},
        {"transcript": "ea."},
        {"data": b64encode(b"t").decode()},
        {"data": b64encode(b"ea").decode()},
        {"expires_at": 4102444800},
    ]
    chunks = [chat_chunk({"audio": piece}) for piece in pieces]
    return sse_reply(*chunks, chat_chunk({}, "stop"), {"choices": [], "usage": CHAT_USAGE}, "[DONE]")


@pytest.mark.parametrize("streamed", [False, True])
def test_a_spoken_answer_is_heard_read_and_referred_to(talk: Talk, streamed: bool) -> None:
    settings: dict[str, Any] = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
    whole = chat_reply("", extra={"content": None, "audio": SPOKEN})
    talk.add("user", "Say it")
    talk.stream(spoken_stream(), **settings) if streamed else talk.call(whole, **settings)

    assert talk.sent["modalities"] == ["text", "audio"]
    assert talk.last["content"] == "Tea."
    sound = talk.last["multipartContent"][1]
    assert (sound["type"], sound["data"], sound["format"]) == ("audio", SPOKEN["data"], "wav")
    if streamed:
        assert "".join(partial["content"] for partial in talk.partials) == "Tea."
    talk.add("user", "Again").call(chat_reply("Tea."))
    assert talk.sent["messages"][1]["audio"] == {"id": "audio_1"}


@pytest.mark.parametrize(
    "change", [{"_metadata": {"server": "elsewhere"}}, {"audio": {**SPOKEN, "expires_at": 1}}]
)
def test_the_words_of_a_spoken_answer_stand_for_it_where_the_sound_is_not_known(
    change: dict[str, Any],
) -> None:
    item = {"role": "assistant", "content": None, "audio": SPOKEN, "_metadata": {"server": "here"}, **change}

    assert compose([item], "here") == [{"role": "assistant", "content": "Tea."}]


@pytest.mark.parametrize("streamed", [False, True])
def test_other_answers_to_the_same_question_are_kept(talk: Talk, streamed: bool) -> None:
    def choice(number: int, text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        return {"index": number, "message": message, "delta": message, "finish_reason": "stop"}

    choices = [choice(1, "Coffee."), choice(0, "Tea."), choice(2, "Milk.")]
    pieces: list[Any] = [{"choices": [each]} for each in choices]
    reply = sse_reply(*pieces, "[DONE]") if streamed else json_reply({"choices": choices})
    talk.add("user", "A drink?")
    talk.stream(reply, n=3) if streamed else talk.call(reply, n=3)

    assert talk.sent["n"] == 3 and talk.last["content"] == "Tea."
    assert [other["content"] for other in talk.about["other_choices"]] == ["Coffee.", "Milk."]
    assert len(talk.native) == 2


OWN = {
    "reasoning_content": "Hm.",
    "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "x"}],
    "annotations": [],
}


def test_own_fields_go_back_to_the_server_that_wrote_them_and_to_no_other(talk: Talk) -> None:
    talk.add("user", "Tea?").call(chat_reply("Yes.", extra=OWN))
    talk.add("user", "Sure?").call(chat_reply("Yes."))
    answer = talk.sent["messages"][1]
    assert answer["reasoning_content"] == "Hm." and answer["reasoning_details"] == OWN["reasoning_details"]
    assert "annotations" not in answer

    elsewhere = talk.server.url.replace("127.0.0.1", "localhost")
    talk.add("user", "Really?").call(chat_reply("Yes."), base_url=elsewhere)

    assert talk.sent["messages"][1] == {"role": "assistant", "content": "Yes."}


def test_fields_of_calls_stay_with_their_server_too() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"g": 1},
    }
    item = {"role": "assistant", "content": None, "tool_calls": [call], "_metadata": {"server": "here"}}

    [own], [other] = compose([item], "here"), compose([item], "there")

    assert own["tool_calls"] == [call]
    assert other["tool_calls"] == [{key: call[key] for key in ("id", "type", "function")}]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_complaint_about_a_field_is_answered_by_sending_again_without_it(
    talk: Talk, streamed: bool
) -> None:
    ask = talk.stream if streamed else talk.call
    talk.add("user", "Tea?").call(chat_reply("Yes.", extra=OWN)).add("user", "Sure?")
    complaint = error_reply(
        422, "body.messages.1.assistant.reasoning_details: Extra inputs are not permitted"
    )
    (talk.stream if streamed else talk.call)(complaint, chat_reply("Yes."))

    refused, accepted = (request.json["messages"][1] for request in talk.server.requests[-2:])
    assert "reasoning_details" in refused and "reasoning_details" not in accepted
    assert accepted["reasoning_content"] == "Hm."
    report = talk.session.metadata["dropped_fields"]
    assert (report["fields"], list(report["native_indices"])) == (["reasoning_details"], [1])

    talk.add("user", "Really?")
    ask(chat_reply("Yes."))
    assert "reasoning_details" not in talk.sent["messages"][1]
    assert talk.native[1]["reasoning_details"] == OWN["reasoning_details"]


def test_a_complaint_about_something_else_is_raised(talk: Talk) -> None:
    talk.add("user", "Tea?").call(chat_reply("Yes.", extra=OWN)).add("user", "Sure?")

    with pytest.raises(RequestRefused, match="colour"):
        talk.call(error_reply(400, "Unknown parameter: 'colour'"))
    assert len(talk.server.requests) == 2


def test_counts_that_a_cut_took_along_are_said_to_be_missing(scripted_server: ScriptedServer) -> None:
    talk = Talk(scripted_server, OpenAICompatibleProvider(), model="m", api_key="a secret key")
    cut = sse_reply(chat_chunk({"content": "Tea."}), chat_chunk({}, "stop"))

    talk.add("user", "A drink?").stream(cut)
    assert talk.about["ending"] == "complete"
    assert "usage" not in talk.about and talk.about["usage_missing"] is True
    talk.add("user", "Another?").stream(chat_reply("Milk."))
    assert "usage_missing" not in talk.about


def test_a_result_of_a_strange_form_is_sent_as_its_text() -> None:
    item = to_item({"role": "tool", "content": "text", "tool_result": {"strange": 1}, "metadata": {}})

    assert item["content"] == "text" and to_message(item)["content"] == "text"
