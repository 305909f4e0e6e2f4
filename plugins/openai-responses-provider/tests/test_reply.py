from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_provider_kit import ContextTooLong, LimitReached, Overloaded, RequestRefused, StreamMalformed
from agent_testing import ToolCall, json_reply, responses_reply, sse_reply

if TYPE_CHECKING:
    from agent_testing import ServerReply, Talk

ODD = {"id": "odd_1", "type": "tea_ceremony", "leaves": {"kind": "sencha", "grams": 4.5}, "steps": [1, None]}
IMAGE = {
    "id": "ig_1",
    "type": "image_generation_call",
    "status": "completed",
    "result": "aGk=",
    "output_format": "webp",
}


def test_an_answer_is_one_message_made_of_all_its_items(talk: Talk) -> None:
    reply = responses_reply(
        "Tea, then.", reasoning="They want tea.", items=[ODD], tool_calls=[ToolCall("brew")]
    )

    talk.add("user", "Tea?").stream(reply)

    assert [item["type"] for item in talk.native] == [
        "message",
        "reasoning",
        "tea_ceremony",
        "message",
        "function_call",
    ]
    assert talk.last["content"] == "Tea, then."
    assert talk.about["native_indices"] == [1, 2, 3, 4]
    assert talk.about["reasoning"] == "They want tea."
    assert talk.about["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "brew", "arguments": "{}"}}
    ]
    assert talk.about["server_tools"] == [ODD]


def test_items_known_or_not_go_back_exactly_as_they_came(talk: Talk) -> None:
    odd_message = {
        "id": "msg_9",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "Hm.", "annotations": [], "mood": {"calm": True}}],
    }
    reply = responses_reply("Hello", reasoning="Greet.", encrypted="Zm9v\u00e9==", items=[ODD, odd_message])
    body = reply.payload(streamed=False)[0]

    talk.add("user", "Hi").stream(reply).add("user", "Again").call(responses_reply("Hello again"))

    assert talk.sent["input"][1:-1] == orjson.loads(body)["output"]
    assert orjson.dumps(talk.sent["input"][1:-1]) == orjson.dumps(orjson.loads(body)["output"])


def test_usage_ending_and_origin_are_reported(talk: Talk) -> None:
    talk.add("user", "Hi").call(responses_reply("Hello"))

    assert talk.about["usage"] == {
        "input_tokens": 12,
        "output_tokens": 7,
        "total_tokens": 19,
        "cached_input_tokens": 4,
        "reasoning_tokens": 2,
    }
    assert (talk.about["ending"], talk.about["finish_reason"]) == ("complete", "completed")
    assert (talk.about["response_id"], talk.about["model"]) == ("resp_scripted", "scripted-model")
    assert talk.about["response"]["service_tier"] == "default"


@pytest.mark.parametrize(
    ("reply", "ending"),
    [
        (responses_reply("Yes"), "complete"),
        (responses_reply(tool_calls=[ToolCall("brew")]), "tool_calls"),
        (responses_reply(tool_calls=[ToolCall("brew", input="tea")]), "tool_calls"),
        (responses_reply(refusal="No tea."), "refusal"),
        (responses_reply("Ye", status="incomplete", incomplete_reason="max_output_tokens"), "length"),
        (responses_reply("Ye", status="incomplete", incomplete_reason="content_filter"), "filtered"),
        (responses_reply("Ye", status="incomplete", incomplete_reason="tea_time"), "length"),
        (responses_reply(status="incomplete", incomplete_reason="content_filter"), "filtered"),
    ],
)
def test_how_an_answer_ended_is_the_same_for_calls_and_streams(
    talk: Talk, reply: ServerReply, ending: str
) -> None:
    talk.add("user", "Hi").call(reply)
    called = talk.about
    talk.add("user", "Hi").stream(reply)

    assert called["ending"] == talk.about["ending"] == ending


def test_a_refusal_is_kept_apart_from_the_text(talk: Talk) -> None:
    talk.add("user", "Hi").stream(responses_reply(refusal="I must not."))

    assert talk.last["content"] == ""
    assert talk.about["refusal"] == "I must not."
    assert "".join(partial.get("refusal", "") for partial in talk.partials) == "I must not."


def test_partials_bring_thoughts_text_and_calls_in_pieces(talk: Talk) -> None:
    calls = [ToolCall("brew", {"minutes": 3}), ToolCall("draw", input="a cup")]
    talk.add("user", "Tea?").stream(responses_reply("Tea it is", reasoning="So thirsty", tool_calls=calls))

    pieces = [partial["tool_call"] for partial in talk.partials if "tool_call" in partial]
    assert "".join(partial.get("reasoning", "") for partial in talk.partials) == "So thirsty"
    assert "".join(partial["content"] for partial in talk.partials) == "Tea it is"
    assert pieces[0] == {"index": 0, "id": "call_1", "name": "brew"}
    assert "".join(piece.get("arguments", "") for piece in pieces) == '{"minutes":3}'
    assert "".join(piece.get("input", "") for piece in pieces if piece["index"] == 1) == "a cup"


def test_a_custom_call_keeps_its_text_and_is_answered_in_kind(talk: Talk) -> None:
    talk.add("user", "Draw").stream(responses_reply(tool_calls=[ToolCall("draw", input="a\ncup")]))
    assert talk.about["tool_calls"] == [{"id": "call_1", "type": "custom", "name": "draw", "input": "a\ncup"}]

    talk.add("tool", "drawn", metadata={"tool_call_id": "call_1"}).call(responses_reply("Done"))

    assert talk.sent["input"][-1] == {
        "type": "custom_tool_call_output",
        "call_id": "call_1",
        "output": "drawn",
    }


def test_two_messages_of_one_answer_are_two_paragraphs(talk: Talk) -> None:
    said: list[dict[str, Any]] = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        for text in ("Let me see.", "Green.")
    ]
    done = [
        {"type": "response.output_item.done", "output_index": place, "item": item}
        for place, item in enumerate(said)
    ]
    last = {"type": "response.completed", "response": {"status": "completed", "output": said}}
    talk.add("user", "Tea?").stream(sse_reply(*done, last))

    assert talk.last["content"] == "Let me see.\n\nGreen."
    assert "".join(partial["content"] for partial in talk.partials) == talk.last["content"]


def test_annotations_and_pictures_are_shown(talk: Talk) -> None:
    citation = {"type": "url_citation", "url": "https://tea.example", "start_index": 0, "end_index": 3}
    talk.add("user", "Tea?").stream(responses_reply("Tea", items=[IMAGE], annotations=[citation]))

    assert talk.about["annotations"] == [citation]
    assert talk.last["multipartContent"] == [
        {"type": "text", "text": "Tea"},
        {"type": "image", "mime_type": "image/webp", "data": "aGk="},
    ]
    assert "result" not in talk.about["server_tools"][0]


def test_the_last_event_counts_where_it_differs_from_earlier_ones(talk: Talk) -> None:
    early = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "early"}
    said = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.done", "output_index": 0, "item": early},
        {"type": "response.output_item.done", "output_index": 1, "item": said},
        {
            "type": "response.completed",
            "response": {
                "id": "r",
                "status": "completed",
                "output": [{**early, "encrypted_content": "late"}, said],
            },
        },
    ]
    talk.add("user", "Hi").stream(sse_reply(*events))

    assert talk.native[1]["encrypted_content"] == "late"
    assert "".join(partial["content"] for partial in talk.partials) == "Hi"


def test_a_last_event_without_output_leaves_the_items_that_came_before(talk: Talk) -> None:
    events: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "H"},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "i"},
        {"type": "response.completed", "response": {"id": "r", "output": []}},
    ]
    talk.add("user", "Hi").stream(sse_reply(*events))

    assert talk.last["content"] == "Hi"
    assert talk.about["ending"] == "complete"


def test_an_answer_that_comes_only_in_the_last_event_is_shown(talk: Talk) -> None:
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "All at once"}],
    }
    call = {"type": "function_call", "name": "brew", "arguments": "{}", "call_id": "c1"}
    talk.add("user", "Hi").stream(
        sse_reply({"type": "response.completed", "response": {"status": "completed", "output": [said, call]}})
    )

    assert talk.partials[0]["content"] == "All at once"
    assert [partial["tool_call"] for partial in talk.partials[1:]] == [
        {"index": 0, "id": "c1", "name": "brew"},
        {"index": 0, "arguments": "{}"},
    ]


def test_events_need_no_sequence_numbers(talk: Talk) -> None:
    reply: dict[str, Any] = {"reasoning": "Hm", "tool_calls": [ToolCall("brew")]}
    talk.add("user", "Hi").stream(responses_reply("Hello", **reply))
    with_numbers = talk.native[1:]
    talk.session = talk.core.create_session("talk")
    talk.add("user", "Hi").stream(responses_reply("Hello", **reply, numbered=False))

    assert talk.native[1:] == with_numbers


def test_a_call_that_was_cut_off_by_the_limit_is_not_one(talk: Talk) -> None:
    cut = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "brew",
        "status": "incomplete",
        "arguments": '{"min',
    }
    reply = responses_reply(
        reasoning="Hm", items=[cut], status="incomplete", incomplete_reason="max_output_tokens"
    )

    talk.add("user", "Tea?").call(reply)

    assert "tool_calls" not in talk.about
    assert talk.about["incomplete_tool_calls"][0]["function"] == {"name": "brew", "arguments": '{"min'}
    assert talk.about["ending"] == "length"
    talk.add("user", "Go on").call(responses_reply("Sorry"))
    assert [item["type"] for item in talk.sent["input"]] == ["message", "message"]


@pytest.mark.parametrize("field", ["arguments", "input"])
def test_without_a_status_the_last_call_of_an_incomplete_answer_must_be_whole(talk: Talk, field: str) -> None:
    kind = "function_call" if field == "arguments" else "custom_tool_call"
    whole = {"id": "fc_0", "type": "function_call", "call_id": "c0", "name": "brew", "arguments": "{}"}
    cut = {"id": "fc_1", "type": kind, "call_id": "c1", "name": "brew", field: '{"min'}
    reply = responses_reply(items=[whole, cut], status="incomplete", incomplete_reason="max_output_tokens")

    talk.add("user", "Tea?").stream(reply)

    assert [call["id"] for call in talk.about["tool_calls"]] == ["c0"]
    assert [call["id"] for call in talk.about["incomplete_tool_calls"]] == ["c1"]


def test_missing_and_repeated_call_ids_become_ids_of_their_own(talk: Talk) -> None:
    calls = [
        {"type": "function_call", "name": "brew", "arguments": "{}", **own}
        for own in ({"call_id": "c1"}, {"call_id": "c1"}, {"id": "fc_9"}, {})
    ]
    talk.add("user", "Tea?").call(json_reply({"status": "completed", "output": calls}))

    ids = [call["id"] for call in talk.about["tool_calls"]]
    assert ids == ["c1", "c1_1", "fc_9", "call_3"]
    assert [item["call_id"] for item in talk.native[1:]] == ids


ERRORS = [
    ("rate_limit_exceeded", "Slow down", Overloaded),
    ("server_error", "It broke", Overloaded),
    ("insufficient_quota", "You exceeded your current quota", LimitReached),
    ("context_length_exceeded", "Your input exceeds the context window", ContextTooLong),
    ("invalid_prompt", "This prompt is not allowed", RequestRefused),
]


@pytest.mark.parametrize(("code", "message", "failure"), ERRORS)
def test_a_failed_response_is_a_failure_of_its_kind(
    talk: Talk, code: str, message: str, failure: type[Exception]
) -> None:
    reply = responses_reply("Half", status="failed", error={"code": code, "message": message})

    with pytest.raises(failure, match=message):
        talk.add("user", "Hi").call(reply)
    with pytest.raises(failure, match=message) as raised:
        talk.stream(reply)
    assert raised.value.partial["messages"][0]["content"] == "Half"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("code", "message", "failure"), ERRORS)
@pytest.mark.parametrize("nested", [True, False])
def test_an_error_event_is_a_failure_of_its_kind(
    talk: Talk,
    code: str,
    message: str,
    failure: type[Exception],
    nested: bool,
) -> None:
    error = {"code": code, "message": message}
    event = {"type": "error", "error": error} if nested else {"type": "error", **error}

    with pytest.raises(failure, match=message):
        talk.add("user", "Hi").stream(sse_reply(event))


def test_a_complete_answer_with_nothing_in_it_is_an_error(talk: Talk) -> None:
    with pytest.raises(StreamMalformed, match="nothing in it"):
        talk.add("user", "Hi").stream(responses_reply())
    with pytest.raises(StreamMalformed, match="nothing in it"):
        talk.call(responses_reply())


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_item.added", "output_index": 0},
        {"type": "response.content_part.added", "output_index": 0, "part": {}},
        {"type": "response.completed", "response": {"status": "completed", "output": ["tea"]}},
        {"type": "response.completed", "response": {"status": "completed", "output": 5}},
    ],
)
def test_an_event_that_lacks_something_is_malformed(talk: Talk, event: dict[str, Any]) -> None:
    with pytest.raises(StreamMalformed):
        talk.add("user", "Hi").stream(sse_reply(event))


@pytest.mark.parametrize("body", [{}, {"output": None}, {"output": {}}])
def test_a_body_without_output_is_malformed(talk: Talk, body: dict[str, Any]) -> None:
    with pytest.raises(StreamMalformed):
        talk.add("user", "Hi").call(json_reply(body))


def test_the_progress_of_built_in_tools_is_shown(talk: Talk) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    events: list[dict[str, Any]] = [
        {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
        {
            "type": "response.image_generation_call.partial_image",
            "item_id": "ig_1",
            "partial_image_b64": "aGk=",
        },
        {"type": "response.some.thing.new"},
        {"type": "response.completed", "response": {"status": "completed", "output": [said]}},
    ]
    talk.add("user", "Hi").stream(sse_reply(*events))

    assert [partial["server_tool"] for partial in talk.partials[:2]] == [
        {"id": "ws_1", "type": "web_search_call", "status": "searching"},
        {"id": "ig_1", "type": "image_generation_call", "status": "partial_image", "image": "aGk="},
    ]
