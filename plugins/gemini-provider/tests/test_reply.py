from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_provider_kit import Exchange, StreamCutOff, StreamMalformed
from agent_provider_kit.keys import ApiKey
from agent_testing import ServerReply, ToolCall, gemini_reply, json_reply, sse_reply
from gemini_provider.events import TextChunk, decode_chunk
from gemini_provider.reply import GenerateReply, merged

if TYPE_CHECKING:
    from agent_testing import Talk

CODE = {
    "executableCode": {"language": "PYTHON", "code": "print(6*7)", "id": "c1"},
    "thoughtSignature": "c2ln",
}
OUTPUT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n", "id": "c1"}}
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aVZCT1I="}}


def chunk(*parts: Any, **candidate: Any) -> dict[str, Any]:
    """A chunk with these parts."""
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    return {"candidates": [{**content, **candidate, "index": 0}], "responseId": "r1", "modelVersion": "m"}


def stream(*chunks: dict[str, Any]) -> ServerReply:
    """A stream of these chunks, in CRLF as the API writes it."""
    return sse_reply(*chunks, newline=b"\r\n")


END = chunk({"text": ""}, finishReason="STOP")


def test_a_text_comes_in_pieces_and_is_one_part_in_the_end(talk: Talk) -> None:
    talk.add("user", "Hi").stream(gemini_reply(chunks=["Hel", "lo", " there"]))

    assert [partial["content"] for partial in talk.partials] == ["Hel", "lo", " there"]
    assert talk.last["content"] == "Hello there"
    assert talk.native[-1]["parts"] == [{"text": "Hello there"}]


def test_thoughts_are_reasoning_and_no_content(talk: Talk) -> None:
    talk.add("user", "Hi").stream(gemini_reply("Yes.", reasoning="They ask me."))

    assert [partial.get("reasoning") for partial in talk.partials] == ["They ", "ask ", "me.", None]
    assert talk.last["content"] == "Yes." and talk.last["metadata"]["reasoning"] == "They ask me."
    assert talk.native[-1]["parts"] == [{"text": "They ask me.", "thought": True}, {"text": "Yes."}]


def test_a_part_with_a_signature_joins_no_other(talk: Talk) -> None:
    signed = {"text": "two", "thoughtSignature": "c2ln"}
    talk.add("user", "Hi").stream(
        stream(chunk({"text": "one "}), chunk(signed), chunk({"text": " three"}), chunk({"text": "."}), END)
    )

    assert talk.native[-1]["parts"] == [{"text": "one "}, signed, {"text": " three."}]
    assert talk.last["content"] == "one two three."


def test_a_signature_in_an_empty_text_at_the_end_is_kept_and_sent_back(talk: Talk) -> None:
    last = {"text": "", "thoughtSignature": "c2ln"}
    talk.add("user", "Hi").stream(stream(chunk({"text": "Yes."}), chunk(last, finishReason="STOP")))
    talk.add("user", "And?").call(gemini_reply("No."))

    assert talk.sent["contents"][1] == {"role": "model", "parts": [{"text": "Yes."}, last]}


def test_unknown_fields_go_back_byte_for_byte(talk: Talk) -> None:
    parts: list[dict[str, Any]] = [
        {"text": "so", "partMetadata": {"z": 1, "a": [1.5, None, "ü"]}},
        {"text": "be it", "thought": False},
        {"novelty": {"deep": {"er": True}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "f", "args": {"b": 1, "a": 2}, "id": "x", "new": []}, "mark": 1},
    ]
    first = chunk(*parts)
    first["candidates"][0]["content"]["contentField"] = "kept"
    talk.add("user", "Hi").stream(stream(first, END)).answer("done").call(gemini_reply("Ok."))

    sent = talk.sent["contents"][1]
    assert orjson.dumps(sent["parts"][:3]) == orjson.dumps(parts[:3])
    assert sent["contentField"] == "kept" and "_metadata" not in sent
    assert orjson.dumps({**sent["parts"][3], "thoughtSignature": 0}) == orjson.dumps(
        {**parts[3], "thoughtSignature": 0}
    )


def test_fields_of_candidate_and_response_are_kept_in_the_metadata(talk: Talk) -> None:
    grounding = {"webSearchQueries": ["tea"], "groundingChunks": [{"web": {"uri": "https://t.example"}}]}
    told = {
        **chunk({"text": "Tea."}, finishReason="STOP", groundingMetadata=grounding, avgLogprobs=-0.5),
        "createTime": "today",
        "usageMetadata": {"promptTokenCount": 1, "serviceTier": "standard"},
    }
    told["candidates"][0]["citationMetadata"] = {"citationSources": [{"uri": "https://c.example"}]}
    talk.add("user", "Hi").call(json_reply(told))

    about = talk.last["metadata"]
    assert about["grounding"] == grounding
    assert about["citations"] == {"citationSources": [{"uri": "https://c.example"}]}
    assert about["candidate"] == {"avgLogprobs": -0.5}
    assert about["response"] == {"createTime": "today", "usageMetadata": told["usageMetadata"]}


def test_grounding_grows_over_the_chunks_of_a_stream(talk: Talk) -> None:
    talk.add("user", "Hi").stream(
        stream(
            chunk({"text": "Tea"}, groundingMetadata={"groundingChunks": [1], "webSearchQueries": ["a"]}),
            chunk({"text": "."}, groundingMetadata={"groundingChunks": [1, 2]}, finishReason="STOP"),
        )
    )

    assert talk.last["metadata"]["grounding"] == {"groundingChunks": [1, 2], "webSearchQueries": ["a"]}
    assert merged([1], [2]) == [1, 2] and merged([1, 2], [1, 2, 3]) == [1, 2, 3] and merged({}, 1) == 1


def test_another_candidate_is_kept_apart(talk: Talk) -> None:
    body = chunk({"text": "A"}, finishReason="STOP")
    other = {"content": {"parts": [{"text": "B"}]}, "index": 1, "finishReason": "STOP"}
    talk.add("user", "Hi").call(json_reply({**body, "candidates": [other, *body["candidates"]]}))

    assert talk.last["content"] == "A" and talk.last["metadata"]["other_candidates"] == [other]


def test_code_that_was_run_is_shown_and_sent_back(talk: Talk) -> None:
    talk.add("user", "6*7?").stream(gemini_reply("42", parts=[CODE, OUTPUT, IMAGE]))

    assert [partial["part"] for partial in talk.partials if "part" in partial] == [
        CODE,
        OUTPUT,
        {"type": "image", "mime_type": "image/png", "data": "aVZCT1I="},
    ]
    [ran] = talk.last["metadata"]["server_tools"]
    assert ran["name"] == "code_execution" and ran["result"]["output"] == "42\n"
    assert talk.last["multipartContent"][2]["type"] == "image"
    talk.add("user", "Thanks").call(gemini_reply("Welcome."))
    assert talk.sent["contents"][1]["parts"] == [CODE, OUTPUT, IMAGE, {"text": "42"}]


@pytest.mark.parametrize("call_id", ["srv_1", None])
def test_a_call_and_a_stream_come_to_the_same(talk: Talk, call_id: str | None) -> None:
    reply = gemini_reply(
        "Tea.",
        reasoning="Hm.",
        parts=[CODE, OUTPUT],
        tool_calls=[ToolCall("look_up", {"word": "tea"}, id=call_id)],
        signature="c2ln",
    )
    begun = talk.add("user", "Hi").session
    called = talk.call(reply).session
    talk.session = begun
    talk.stream(reply)

    assert talk.session.to_dict() == called.to_dict()


def test_a_call_comes_in_one_piece(talk: Talk) -> None:
    talk.add("user", "Hi").stream(gemini_reply(tool_calls=[ToolCall("f", {"a": [1]}, id="x"), ToolCall("g")]))

    first, second = [partial["tool_call"] for partial in talk.partials]
    assert first == {"index": 0, "id": "x", "name": "f", "arguments": '{"a":[1]}'}
    assert second["index"] == 1 and second["name"] == "g" and second["id"].startswith("call_")
    calls = talk.last["metadata"]["tool_calls"]
    assert [call["id"] for call in calls] == ["x", second["id"]]
    assert talk.last["metadata"]["ending"] == "tool_calls"
    assert talk.native[-1]["parts"][1] == {"functionCall": {"name": "g", "args": {}}}


def test_calls_without_ids_in_two_answers_have_different_ones(talk: Talk) -> None:
    ask = ToolCall("f", {})
    talk.add("user", "Hi").call(gemini_reply(tool_calls=[ask, ask], response_id="r1"))
    first = [call["id"] for call in talk.last["metadata"]["tool_calls"]]
    talk.answer("1").answer("2", 1).call(gemini_reply(tool_calls=[ask], response_id="r2"))
    second = [call["id"] for call in talk.last["metadata"]["tool_calls"]]

    assert len({*first, *second}) == 3


def test_a_call_that_is_still_growing_is_never_run(talk: Talk) -> None:
    growing = {"functionCall": {"name": "f", "id": "x", "willContinue": True, "partialArgs": [{"a": 1}]}}
    talk.add("user", "Hi").stream(stream(chunk({"text": "Hm"}), chunk(growing), END))

    assert "tool_calls" not in talk.last["metadata"]
    [cut] = talk.last["metadata"]["incomplete_tool_calls"]
    assert cut["id"] == "x" and talk.native[-1]["parts"] == [{"text": "Hm"}]


def test_usage_is_counted_with_thoughts_and_cache(talk: Talk) -> None:
    talk.add("user", "Hi").stream(gemini_reply("Hello there"))

    assert talk.last["metadata"]["usage"] == {
        "input_tokens": 12,
        "output_tokens": 7,
        "total_tokens": 19,
        "cached_input_tokens": 4,
        "reasoning_tokens": 2,
    }


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("STOP", "complete"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filtered"),
        ("RECITATION", "filtered"),
        ("PROHIBITED_CONTENT", "filtered"),
        ("BLOCKLIST", "filtered"),
        ("SPII", "filtered"),
        ("IMAGE_SAFETY", "filtered"),
        ("LANGUAGE", "filtered"),
        ("A_NEW_ONE", "complete"),
    ],
)
def test_every_end_is_reported(talk: Talk, way: str, reason: str, ending: str) -> None:
    getattr(talk.add("user", "Hi"), way)(gemini_reply("So", finish_reason=reason))

    about = talk.last["metadata"]
    assert (about["finish_reason"], about["ending"]) == (reason, ending)
    assert (about["response_id"], about["model"]) == ("scripted-response", "scripted-model")


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize("reason", ["SAFETY", "MAX_TOKENS"])
def test_an_answer_that_was_stopped_before_its_first_word_is_an_empty_message(
    talk: Talk, way: str, reason: str
) -> None:
    getattr(talk.add("user", "Hi"), way)(json_or_stream(chunk(finishReason=reason)))

    assert talk.last["content"] == "" and talk.last["metadata"]["finish_reason"] == reason
    talk.add("user", "Again").call(gemini_reply("Ok."))
    assert [content["role"] for content in talk.sent["contents"]] == ["user"]


def json_or_stream(body: dict[str, Any]) -> ServerReply:
    return ServerReply(body=orjson.dumps(body), stream=b"data: " + orjson.dumps(body) + b"\r\n\r\n")


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("reason", "failure"),
    [
        ("MALFORMED_FUNCTION_CALL", StreamMalformed),
        ("UNEXPECTED_TOOL_CALL", StreamMalformed),
        ("OTHER", StreamCutOff),
        ("STOP", StreamCutOff),
    ],
)
def test_an_end_that_is_none_is_an_error(talk: Talk, way: str, reason: str, failure: type[Exception]) -> None:
    ended = chunk(finishReason=reason, finishMessage="print(default_api.f(")

    with pytest.raises(failure, match=reason) as caught:
        getattr(talk.add("user", "Hi"), way)(json_or_stream(ended))
    assert "default_api.f" in str(caught.value)


def test_the_text_before_a_malformed_call_is_kept(talk: Talk) -> None:
    with pytest.raises(StreamMalformed) as caught:
        talk.add("user", "Hi").stream(
            stream(chunk({"text": "I will look"}), chunk(finishReason="MALFORMED_FUNCTION_CALL"))
        )

    [kept] = (caught.value.partial or {})["messages"]
    assert kept["content"] == "I will look" and "ending" not in kept["metadata"]


@pytest.mark.parametrize(
    "nonsense",
    [
        {"candidates": ["so"]},
        {"candidates": [{"content": {"parts": ["so"]}, "finishReason": "STOP"}]},
        {"candidates": [{"content": "so", "finishReason": "STOP"}]},
        {"candidates": 3},
        {"candidates": []},
        {},
    ],
)
def test_an_answer_of_another_form_is_malformed(talk: Talk, nonsense: dict[str, Any]) -> None:
    with pytest.raises(StreamMalformed):
        talk.add("user", "Hi").call(json_reply(nonsense))


def test_counts_that_are_no_object_do_not_spoil_the_answer(talk: Talk) -> None:
    odd = {**chunk({"text": "Yes."}), "usageMetadata": [1]}
    talk.add("user", "Hi").stream(stream(odd, END))

    assert talk.last["content"] == "Yes." and "usage" not in talk.last["metadata"]


def test_plain_text_takes_the_quick_way() -> None:
    told = {**chunk({"text": "Hi"}), "usageMetadata": {"promptTokenCount": 1}}

    assert isinstance(decode_chunk(orjson.dumps(told)), TextChunk)
    assert isinstance(decode_chunk(orjson.dumps(chunk({"text": "Hm", "thought": True}))), TextChunk)
    for full in (
        chunk({"text": "Hi", "thought": False}),
        chunk({"text": "Hi", "thoughtSignature": "x"}),
        chunk({"text": "Hi"}, finishReason="STOP"),
        chunk({"text": "Hi"}, {"text": "Ho"}),
        {**chunk({"text": "Hi"}), "new": 1},
    ):
        assert decode_chunk(orjson.dumps(full)) == full


@pytest.mark.parametrize("nothing", [b"", b"  ", b"[DONE]"])
def test_events_without_meaning_are_passed_over(nothing: bytes) -> None:
    assert decode_chunk(nothing) is None


def test_a_reply_of_nothing_has_no_items() -> None:
    reply = GenerateReply(Exchange("gemini", "stream_api", "http://x", ApiKey("", "nowhere")))

    assert reply.items() == [] and not reply.ended()
