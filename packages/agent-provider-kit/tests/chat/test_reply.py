"""One answer of Chat Completions as it arrives, from the first chunk to the item that is kept."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from agent_provider_kit import (
    ApiKey,
    Exchange,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    SseDecoder,
    StreamCutOff,
    StreamMalformed,
)
from agent_provider_kit.chat import ChatReply, decode_chunk
from agent_provider_kit.chat.chunks import DONE, TextChunk
from agent_testing import ToolCall, chat_chunk, chat_reply

Dicts = list[dict[str, Any]]
EXCHANGE = Exchange("chat", "stream_api", "https://chat.test/v1", ApiKey("sk-very-secret", "a drawer"))


def chunk(data: Any) -> Any:
    return decode_chunk(data if isinstance(data, bytes) else orjson.dumps(data))


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return chat_chunk(fields, finish)


def stream(*data: Any) -> tuple[ChatReply, Dicts]:
    reply, partials = ChatReply(EXCHANGE), []
    for each in data:
        partials += reply.add(chunk(each))
    return reply, partials


def replay(scripted: bytes | None) -> ChatReply:
    decoder, reply = SseDecoder(), ChatReply(EXCHANGE)
    for event in [*decoder.feed(scripted or b""), *decoder.finish()]:
        reply.add(decode_chunk(event.data) or {})
    return reply


def call(**message: Any) -> ChatReply:
    reply = ChatReply(EXCHANGE)
    reply.take({"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]})
    return reply


def item(reply: ChatReply) -> dict[str, Any]:
    [item] = reply.items()
    return item


def without_metadata(reply: ChatReply) -> dict[str, Any]:
    return {key: value for key, value in item(reply).items() if key != "_metadata"}


class TestDecoding:
    def test_plain_text_is_decoded_quickly(self) -> None:
        assert isinstance(chunk(delta(content="Hi")), TextChunk)
        assert isinstance(chunk(delta(role="assistant", content=None)), TextChunk)

    @pytest.mark.parametrize(
        "more",
        [
            delta("stop", content="Hi"),
            delta(content="Hi", reasoning="hm"),
            {**delta(content="Hi"), "usage": {}},
            {**delta(content="Hi"), "error": {}},
            {"choices": []},
            {"choices": [{"delta": {"content": "Hi"}, "index": 1}]},
            {"choices": [{"delta": {"content": "Hi"}, "logprobs": {"content": []}}]},
            {},
        ],
    )
    def test_anything_more_is_decoded_completely(self, more: dict[str, Any]) -> None:
        assert chunk(more) == more

    @pytest.mark.parametrize("data", [b"[DONE]", b" [DONE] "])
    def test_the_end_is_no_json(self, data: bytes) -> None:
        assert chunk(data) is DONE

    def test_an_empty_event_means_nothing(self) -> None:
        assert chunk(b"") is chunk(b"  ") is None

    @pytest.mark.parametrize(
        "data", [b"{", b"null", b"[1]", b"7", b"[DONE", b'"x"', b"\xff", b'{"a": "\xff"}']
    )
    def test_nonsense_is_an_error(self, data: bytes) -> None:
        with pytest.raises(ValueError, match=r"."):
            chunk(data)


class TestText:
    def test_it_is_shown_and_collected(self) -> None:
        reply, partials = stream(
            delta(role="assistant", content=""), delta(content="Hi "), delta("stop", content="you")
        )

        assert partials == [{"role": "assistant", "content": "Hi "}, {"role": "assistant", "content": "you"}]
        assert without_metadata(reply) == {"role": "assistant", "content": "Hi you"}
        assert reply.ended()

    def test_null_is_nothing(self) -> None:
        reply, partials = stream(delta(role="assistant", content=None), delta("stop"))

        assert partials == []
        assert without_metadata(reply) == {"role": "assistant", "content": ""}

    def test_only_the_first_of_several_answers_counts(self) -> None:
        second = {"choices": [{"index": 1, "delta": {"content": "No"}, "finish_reason": "length"}]}
        both = {
            "choices": [{"index": 0, "delta": {"content": "you"}}, {"index": 1, "delta": {"content": "No"}}]
        }
        reply, partials = stream(delta(content="Hi "), second, both, delta("stop"))

        assert [partial["content"] for partial in partials] == ["Hi ", "you"]
        assert item(reply)["_metadata"]["finish_reason"] == "stop"

    def test_parts_are_kept_as_parts(self) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
        text = {"type": "text", "text": "Hi "}
        reply, partials = stream(
            delta(content=[thinking]), delta(content=[text]), delta("stop", content="you")
        )

        assert partials == [
            {"role": "assistant", "content": "", "reasoning": "hm"},
            {"role": "assistant", "content": "Hi "},
            {"role": "assistant", "content": "you"},
        ]
        assert without_metadata(reply)["content"] == [thinking, {"type": "text", "text": "Hi you"}]
        assert without_metadata(call(content=[thinking, text]))["content"] == [thinking, text]


class TestReasoning:
    @pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
    def test_it_is_shown_and_kept_under_the_servers_name(self, field: str) -> None:
        reply, partials = stream(
            delta(**{field: "hm "}), delta(**{field: "hm", "content": None}), delta("stop", content="Hi")
        )

        assert partials == [
            {"role": "assistant", "content": "", "reasoning": "hm "},
            {"role": "assistant", "content": "", "reasoning": "hm"},
            {"role": "assistant", "content": "Hi"},
        ]
        assert without_metadata(reply) == {"role": "assistant", "content": "Hi", field: "hm hm"}

    def test_the_same_under_both_names_is_shown_once(self) -> None:
        reply, partials = stream(delta(reasoning="hm", reasoning_content="hm"), delta("stop", content="Hi"))

        assert [partial.get("reasoning") for partial in partials] == ["hm", None]
        assert item(reply)["reasoning"] == item(reply)["reasoning_content"] == "hm"

    def test_an_object_in_its_place_is_kept_for_the_server(self) -> None:
        reply, _ = stream(delta(reasoning={"summary": "hm"}), delta("stop", content="Hi"))

        assert item(reply)["reasoning"] == {"summary": "hm"}


class TestToolCalls:
    def test_they_are_shown_in_pieces_and_kept_whole(self) -> None:
        scripted = chat_reply(tool_calls=[ToolCall("f", {"x": 1}, id="a"), ToolCall("g", {}, id="b")])
        decoder, reply, partials = SseDecoder(), ChatReply(EXCHANGE), []
        for event in decoder.feed(scripted.stream or b""):
            partials += reply.add(decode_chunk(event.data) or {})

        assert [partial["tool_call"] for partial in partials] == [
            {"index": 0, "id": "a", "name": "f", "arguments": ""},
            {"index": 0, "arguments": '{"x"'},
            {"index": 0, "arguments": ":1}"},
            {"index": 1, "id": "b", "name": "g", "arguments": ""},
            {"index": 1, "arguments": "{"},
            {"index": 1, "arguments": "}"},
        ]
        assert without_metadata(reply) == {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"type": "function", "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"type": "function", "id": "b", "function": {"name": "g", "arguments": "{}"}},
            ],
        }
        assert item(reply)["_metadata"]["ending"] == "tool_calls"

    @pytest.mark.parametrize("reason", [None, "length", "max_tokens", "content_filter"])
    def test_those_that_were_cut_off_are_kept_aside(self, reason: str | None) -> None:
        pieces = [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
            {"index": 1, "id": "b", "function": {"name": "g", "arguments": '{"path": "/et'}},
        ]
        reply, _ = stream(delta(content="So: "), delta(tool_calls=pieces), delta(reason))

        assert [call["id"] for call in item(reply)["tool_calls"]] == ["a"]
        assert [call["id"] for call in item(reply)["_metadata"]["incomplete_tool_calls"]] == ["b"]

    @pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call"])
    def test_those_of_a_finished_answer_are_for_the_model_to_mend(self, reason: str) -> None:
        piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{not json"}}
        reply, _ = stream(delta(tool_calls=[piece]), delta(reason))

        assert item(reply)["tool_calls"][0]["function"]["arguments"] == "{not json"
        assert "incomplete_tool_calls" not in item(reply)["_metadata"]

    def test_whole_calls_of_an_answer_in_one_piece_stay_apart_without_ids(self) -> None:
        function = {"name": "f", "arguments": ""}
        calls = item(call(content=None, tool_calls=[{"function": function}, {"function": function}]))[
            "tool_calls"
        ]

        assert len({call["id"] for call in calls}) == 2


class TestWhatElseIsKept:
    def test_fields_that_only_the_server_understands(self) -> None:
        reply, _ = stream(
            delta(content="Hi", reasoning_details=[{"type": "reasoning.text", "text": "a"}]),
            delta(reasoning_details=[{"type": "reasoning.text", "text": "b"}], note="one "),
            delta(note="two", score=1, audio={"id": "au", "transcript": "He", "expires_at": 1}),
            delta("stop", score=2, audio={"id": "au", "transcript": "llo", "expires_at": 2}, empty=None),
        )

        assert without_metadata(reply) == {
            "role": "assistant",
            "content": "Hi",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "a"},
                {"type": "reasoning.text", "text": "b"},
            ],
            "note": "one two",
            "score": 2,
            "audio": {"id": "au", "transcript": "Hello", "expires_at": 2},
        }

    def test_fields_of_the_message_in_one_piece(self) -> None:
        assert without_metadata(call(content="Hi", annotations=[], their_own={"a": [1]})) == {
            "role": "assistant",
            "content": "Hi",
            "annotations": [],
            "their_own": {"a": [1]},
        }

    def test_what_is_said_about_the_answer_is_ours(self) -> None:
        reply, _ = stream(
            {**delta(content="Hi", note=1), "id": "r1", "model": "m-2026", "service_tier": "flex"},
            {**delta("stop"), "id": "r2", "citations": ["https://a.test"], "created": 5, "nothing": None},
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        )

        assert item(reply)["_metadata"] == {
            "response_id": "r1",
            "model": "m-2026",
            "service_tier": "flex",
            "finish_reason": "stop",
            "ending": "complete",
            "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
            "response_fields": {"citations": ["https://a.test"]},
            "server": "chat.test",
        }

    def test_probabilities_are_collected(self) -> None:
        def likely(token: str) -> dict[str, Any]:
            return {"choices": [{"delta": {"content": token}, "logprobs": {"content": [{"token": token}]}}]}

        reply, _ = stream(likely("Hi"), likely(" you"), delta("stop"))

        assert item(reply)["_metadata"]["logprobs"] == {"content": [{"token": "Hi"}, {"token": " you"}]}

    def test_counts_may_come_in_a_place_of_their_own(self) -> None:
        reply, _ = stream(delta(content="Hi"), {**delta("stop"), "x_groq": {"usage": {"prompt_tokens": 3}}})

        assert item(reply)["_metadata"]["usage"] == {"input_tokens": 3}

    def test_a_server_cannot_write_into_what_is_ours(self) -> None:
        assert item(call(content="Hi", _metadata={"ending": "refusal"}))["_metadata"]["ending"] == "complete"


class TestEnding:
    @pytest.mark.parametrize(
        ("reason", "ending"),
        [
            ("stop", "complete"),
            ("length", "length"),
            ("tool_calls", "tool_calls"),
            ("content_filter", "filtered"),
        ],
    )
    def test_the_finish_reason_says_how(self, reason: str, ending: str) -> None:
        reply, _ = stream(delta(content="Hi"), delta(reason))

        assert reply.ended()
        assert (item(reply)["_metadata"]["finish_reason"], item(reply)["_metadata"]["ending"]) == (
            reason,
            ending,
        )

    def test_a_refusal_is_one(self) -> None:
        reply, partials = stream(delta(content="", refusal="I will "), delta(refusal="not"), delta("stop"))

        assert [partial["refusal"] for partial in partials] == ["I will ", "not"]
        assert item(reply)["refusal"] == "I will not"
        assert item(reply)["_metadata"]["ending"] == "refusal"

    def test_an_empty_refusal_is_none(self) -> None:
        reply, partials = stream(delta(content="Hi", refusal=""), delta("stop", refusal=None))

        assert len(partials) == 1
        assert "refusal" not in item(reply)
        assert item(reply)["_metadata"]["ending"] == "complete"

    def test_the_last_event_may_be_missing(self) -> None:
        reply, _ = stream(delta(content="Hi"), delta("stop"))

        assert reply.ended()

    def test_the_last_event_alone_is_an_end_if_something_was_said(self) -> None:
        reply, _ = stream(delta(content="Hi"), b"[DONE]")

        assert reply.ended()
        assert item(reply)["_metadata"] == {"ending": "complete"}

    def test_the_last_event_without_anything_before_it_is_no_end(self) -> None:
        reply, _ = stream(b"[DONE]")

        assert not reply.ended()
        assert reply.items() == []

    def test_text_without_an_end_is_none(self) -> None:
        reply, _ = stream(delta(content="Hi"))

        assert not reply.ended()
        assert item(reply) == {"role": "assistant", "content": "Hi", "_metadata": {"usage_missing": True}}

    def test_an_answer_that_says_nothing_may_end(self) -> None:
        reply, _ = stream(delta(role="assistant", content=""), delta("stop"))

        assert reply.ended()
        assert without_metadata(reply) == {"role": "assistant", "content": ""}

    @pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
    def test_a_server_that_gives_up_has_not_ended(self, reason: str) -> None:
        reply, _ = stream(delta(content="Hi"))

        with pytest.raises(StreamCutOff, match=f"broke the answer off: {reason}"):
            reply.add(chunk(delta(reason, content=" you")))
        assert not reply.ended()
        assert item(reply)["content"] == "Hi you"

    def test_an_answer_in_one_piece_needs_no_reason(self) -> None:
        reply = ChatReply(EXCHANGE)
        reply.take({"choices": [{"message": {"content": "Hi"}}]})

        assert item(reply)["_metadata"] == {"ending": "complete"}


class TestErrors:
    def test_an_error_in_a_stream_is_raised_and_what_came_before_is_kept(self) -> None:
        reply, _ = stream(delta(content="Hi"))

        with pytest.raises(Overloaded, match="busy"):
            reply.add(chunk({"error": {"message": "busy", "code": 503}, "choices": []}))
        assert item(reply)["content"] == "Hi"

    def test_an_error_in_place_of_an_answer_is_raised(self) -> None:
        with pytest.raises(RequestRefused, match="no such model"):
            ChatReply(EXCHANGE).take({"error": {"message": "no such model", "code": 404}})

    @pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}, {"error": None}])
    def test_an_answer_without_a_choice_is_malformed(self, body: dict[str, Any]) -> None:
        with pytest.raises(StreamMalformed, match="an answer without any choice"):
            ChatReply(EXCHANGE).take(body)

    @pytest.mark.parametrize(
        "nonsense",
        [
            {"choices": {}},
            {"choices": [7]},
            {"choices": [{"delta": [1]}]},
            {"choices": [{"delta": "Hi"}]},
            delta(tool_calls={}),
            delta(tool_calls=["f"]),
            delta(content={"text": "Hi"}),
            delta(content=["Hi"]),
        ],
    )
    def test_something_else_where_an_object_belongs_is_malformed(self, nonsense: dict[str, Any]) -> None:
        with pytest.raises(StreamMalformed, match="something else where"):
            stream(nonsense)

    def test_no_error_shows_the_key(self) -> None:
        with pytest.raises(ProviderFailure) as failed:
            ChatReply(EXCHANGE).take({"error": {"message": "the key sk-very-secret is bad", "code": 401}})

        assert "sk-very-secret" not in str(failed.value)


@pytest.mark.parametrize(
    "scripted",
    [
        chat_reply("Hi you there"),
        chat_reply("Hi", reasoning="hm hm", tool_calls=[ToolCall("f", {"x": 1}), ToolCall("g")]),
        chat_reply(refusal="I will not"),
        chat_reply("Hi", finish_reason="length", usage=None),
        chat_reply(tool_calls=[ToolCall("draw", input="a line")]),
        chat_reply("Hi", extra={"annotations": [{"type": "url_citation"}], "their_own": 1}),
        chat_reply("Hi", reasoning="hm", reasoning_field="reasoning"),
    ],
)
def test_both_forms_of_an_answer_give_the_same_item(scripted: Any) -> None:
    whole = ChatReply(EXCHANGE)
    whole.take(orjson.loads(scripted.body))

    assert replay(scripted.stream).items() == whole.items()


parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "image"])},
    optional={
        "text": st.text(max_size=2) | st.none() | st.integers(-9, 9),
        "thinking": st.text() | st.lists(st.none()),
    },
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)
fields = st.sampled_from(
    ["role", "content", "tool_calls", "refusal", "reasoning", "index", "finish_reason", "x"]
)
call_pieces = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "index": st.integers(0, 2) | json_values,
            "id": st.sampled_from(["a", "b", ""]) | json_values,
            "function": st.fixed_dictionaries({}, optional={"name": json_values, "arguments": json_values})
            | json_values,
        },
    )
    | json_values,
    max_size=3,
)
deltas = st.one_of(
    st.dictionaries(fields, json_values, max_size=4),
    st.fixed_dictionaries({"tool_calls": call_pieces}),
    st.fixed_dictionaries({"content": st.lists(parts, max_size=3)}),
)
chunks = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"delta": deltas}, optional={"finish_reason": json_values}))},
    optional={"usage": json_values, "error": json_values, "id": json_values, "y": json_values},
) | st.dictionaries(st.sampled_from(["choices", "usage", "error", "id"]), json_values)


@given(st.lists(chunks, max_size=4))
def test_whatever_a_server_sends_only_failures_of_the_provider_come_out(data: list[Any]) -> None:
    reply = ChatReply(EXCHANGE)
    try:
        for each in data:
            reply.add(chunk(each))
    except ProviderFailure:
        pass

    for made in reply.items():
        assert made["role"] == "assistant"
        orjson.dumps(made)
