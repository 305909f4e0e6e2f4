from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_testing import ServerReply, ToolCall, anthropic_reply, sse_event

if TYPE_CHECKING:
    from agent_testing import Talk

SEARCH_CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tea"}}
SEARCH_RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://tea.example", "encrypted_content": "Zm9v"}],
}


def events(*told: dict[str, Any]) -> ServerReply:
    """A stream of these events, between a message's beginning and its end."""
    start = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
    every = [start, *told, end, {"type": "message_stop"}]
    return ServerReply(stream=b"".join(sse_event(event, event["type"]) for event in every))


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def test_a_text_comes_in_pieces_and_is_one_block_in_the_end(talk: Talk) -> None:
    talk.add("user", "Hi").stream(anthropic_reply(chunks=["Hel", "lo", " there"]))

    assert [partial["content"] for partial in talk.partials] == ["Hel", "lo", " there"]
    assert talk.last["content"] == "Hello there"
    assert talk.native[-1]["content"] == [{"type": "text", "text": "Hello there"}]


def test_a_call_and_a_stream_come_to_the_same(talk: Talk) -> None:
    reply = anthropic_reply(
        "Tea.",
        reasoning="Hm.",
        redacted="eHl6",
        blocks=[SEARCH_CALL, SEARCH_RESULT],
        tool_calls=[ToolCall("look_up", {"word": "tea"})],
    )
    begun = talk.add("user", "Hi").session
    called = talk.call(reply).session
    talk.session = begun
    talk.stream(reply)

    assert talk.session.to_dict() == called.to_dict()


def test_thinking_goes_back_byte_for_byte_with_its_signature(talk: Talk) -> None:
    signature = "EqkB+/==\\u00e9"
    talk.add("user", "Hi").stream(
        anthropic_reply("Hello.", reasoning="A greeting.\n", signature=signature, redacted="c2VjcmV0+/==")
    )
    talk.add("user", "Again").stream(anthropic_reply("Hello again."))

    assert talk.sent["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "A greeting.\n", "signature": signature},
        {"type": "redacted_thinking", "data": "c2VjcmV0+/=="},
        {"type": "text", "text": "Hello."},
    ]


def test_thinking_is_shown_apart_from_what_is_said(talk: Talk) -> None:
    talk.add("user", "Hi").stream(anthropic_reply("Hello.", reasoning="A greeting"))

    thoughts = [partial["reasoning"] for partial in talk.partials if "reasoning" in partial]
    assert "".join(thoughts) == "A greeting"
    assert talk.last["metadata"]["reasoning"] == "A greeting"
    assert talk.last["content"] == "Hello."


def test_tool_calls_come_in_pieces_and_are_whole_in_the_end(talk: Talk) -> None:
    calls = [ToolCall("look_up", {"word": "tea"}), ToolCall("sum_up", {})]
    talk.add("user", "Hi").stream(anthropic_reply("Let me see.", tool_calls=calls))

    pieces = [partial["tool_call"] for partial in talk.partials if "tool_call" in partial]
    assert pieces[0] == {"index": 0, "id": "toolu_1", "name": "look_up"}
    assert "".join(piece.get("arguments", "") for piece in pieces if piece["index"] == 0) == '{"word":"tea"}'
    assert [piece for piece in pieces if piece["index"] == 1] == [
        {"index": 1, "id": "toolu_2", "name": "sum_up"},
        {"index": 1, "arguments": "{"},
        {"index": 1, "arguments": "}"},
    ]
    assert talk.last["metadata"]["tool_calls"] == [
        {
            "id": "toolu_1",
            "type": "function",
            "function": {"name": "look_up", "arguments": '{"word":"tea"}'},
        },
        {"id": "toolu_2", "type": "function", "function": {"name": "sum_up", "arguments": "{}"}},
    ]
    assert talk.last["metadata"]["ending"] == "tool_calls"


def test_a_number_too_long_for_a_machine_word_is_not_rounded(talk: Talk) -> None:
    number = 123456789012345678901234567890
    start = {"type": "tool_use", "id": "toolu_1", "name": "count", "input": {}}
    pieces = [
        {"type": "input_json_delta", "partial_json": piece}
        for piece in ('{"to": 1234567890', f"{number}"[10:], "}")
    ]
    talk.add("user", "Hi").stream(events(*block(0, start, *pieces)))

    assert talk.native[-1]["content"][0]["input"] == {"to": number}


def test_arguments_that_are_no_json_reach_the_tool_runner_as_they_are(talk: Talk) -> None:
    start = {"type": "tool_use", "id": "toolu_1", "name": "count", "input": {}}
    broken = {"type": "input_json_delta", "partial_json": '{"to": three}'}
    talk.add("user", "Hi").stream(events(*block(0, start, broken)))

    [call] = talk.last["metadata"]["tool_calls"]
    assert call["function"]["arguments"] == '{"to": three}'
    assert talk.native[-1]["content"][0]["input"] == {"INVALID_JSON": '{"to": three}'}


def test_server_tools_and_their_results_are_kept_and_shown(talk: Talk) -> None:
    talk.add("user", "Hi").stream(anthropic_reply("Tea.", blocks=[SEARCH_CALL, SEARCH_RESULT]))

    assert [partial["part"] for partial in talk.partials if "part" in partial] == [SEARCH_CALL, SEARCH_RESULT]
    [shown] = talk.last["metadata"]["server_tools"]
    assert shown["name"] == "web_search" and shown["result"] == SEARCH_RESULT["content"]
    assert talk.last["multipartContent"][:2] == [SEARCH_CALL, SEARCH_RESULT]

    talk.add("user", "Thanks").stream(anthropic_reply("Welcome."))
    assert talk.sent["messages"][1]["content"][:2] == [SEARCH_CALL, SEARCH_RESULT]


def test_the_input_of_a_server_tool_may_come_in_pieces(talk: Talk) -> None:
    pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", '{"query": ', '"tea"}')]
    talk.add("user", "Hi").stream(events(*block(0, {**SEARCH_CALL, "input": {}}, *pieces)))

    assert talk.native[-1]["content"] == [SEARCH_CALL]
    assert not any("tool_call" in partial for partial in talk.partials)


def test_citations_are_collected_into_their_text(talk: Talk) -> None:
    cited = [{"type": "char_location", "cited_text": word, "document_index": 0} for word in ("tea", "cup")]
    deltas = [{"type": "citations_delta", "citation": citation} for citation in cited]
    text = {"type": "text_delta", "text": "Tea in a cup."}
    start = {"citations": [], "type": "text", "text": ""}
    talk.add("user", "Hi").stream(events(*block(0, start, deltas[0], text, deltas[1])))

    assert talk.native[-1]["content"] == [{"type": "text", "text": "Tea in a cup.", "citations": cited}]
    assert talk.last["metadata"]["citations"] == cited


def test_blocks_and_deltas_that_nobody_knows_are_kept(talk: Talk) -> None:
    start = {"type": "hologram", "id": "h1", "shape": "", "rays": [1], "depth": None}
    deltas: list[dict[str, Any]] = [
        {"type": "hologram_delta", "shape": "cu", "rays": [2]},
        {"type": "hologram_delta", "shape": "be", "depth": {"of": 3}},
    ]
    talk.add("user", "Hi").stream(events(*block(0, start, *deltas)))

    whole = {"type": "hologram", "id": "h1", "shape": "cube", "rays": [1, 2], "depth": {"of": 3}}
    assert talk.native[-1]["content"] == [whole]
    talk.add("user", "More").call(anthropic_reply("Yes."))
    assert talk.sent["messages"][1]["content"] == [whole]


def test_what_else_comes_with_a_known_delta_is_kept_but_not_sent_back(talk: Talk) -> None:
    delta = {"type": "thinking_delta", "thinking": "Hm.", "estimated_tokens": 2}
    signature = {"type": "signature_delta", "signature": "c2ln"}
    start = {"type": "thinking", "thinking": "", "signature": ""}
    talk.add("user", "Hi").stream(
        events(*block(0, start, delta, signature), {"type": "weather", "sun": True})
    )

    [thinking] = talk.native[-1]["content"]
    assert thinking == {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    extra = {"type": "content_block_delta", "index": 0}
    extra["delta"] = {"type": "thinking_delta", "estimated_tokens": 2}
    assert talk.native[-1]["_metadata"]["unknown_events"] == [extra, {"type": "weather", "sun": True}]
    assert {"role": "assistant", "content": "", "reasoning": "Hm."} in talk.partials


def test_what_the_message_says_about_itself_is_kept_with_it(talk: Talk) -> None:
    start = {
        "id": "msg_9",
        "role": "assistant",
        "model": "claude-9",
        "content": [],
        "usage": {"input_tokens": 3},
    }
    delta = {"stop_reason": "end_turn", "stop_sequence": None, "container": {"id": "container_1"}}
    every: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        *block(0, {"type": "text", "text": "Hi."}),
        {
            "type": "message_delta",
            "delta": delta,
            "usage": {"output_tokens": 2, "server_tool_use": {"web_search_requests": 1}},
            "context_management": {"applied_edits": []},
        },
        {"type": "message_stop"},
    ]
    talk.add("user", "Hi").stream(ServerReply(stream=b"".join(sse_event(each) for each in every)))

    about = talk.native[-1]["_metadata"]
    assert about["response_id"] == "msg_9" and about["model"] == "claude-9"
    assert about["response"] == {
        "usage": {"input_tokens": 3, "output_tokens": 2, "server_tool_use": {"web_search_requests": 1}},
        "container": {"id": "container_1"},
        "context_management": {"applied_edits": []},
    }
    assert about["usage"] == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def test_usage_counts_all_that_was_sent_and_tells_what_was_cached(talk: Talk) -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 5},
    }
    talk.add("user", "Hi").stream(anthropic_reply("Hello.", usage=usage))

    assert talk.last["metadata"]["usage"] == {
        "input_tokens": 1110,
        "output_tokens": 7,
        "total_tokens": 1117,
        "cached_input_tokens": 100,
        "cache_write_tokens": 1000,
        "reasoning_tokens": 5,
    }


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("end_turn", "complete"),
        ("stop_sequence", "complete"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "paused"),
        ("something_new", "complete"),
    ],
)
@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_stop_reason_is_kept_in_our_words_and_in_the_providers(
    talk: Talk, way: str, reason: str, ending: str
) -> None:
    getattr(talk.add("user", "Hi"), way)(anthropic_reply("Hm.", stop_reason=reason))

    assert talk.last["metadata"]["ending"] == ending
    assert talk.last["metadata"]["finish_reason"] == reason


@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_call_that_the_length_limit_cut_off_is_not_offered_to_be_run(talk: Talk, way: str) -> None:
    calls = [ToolCall("look_up", {"word": "tea"}), ToolCall("write", {"text": "Once upon"})]
    getattr(talk.add("user", "Hi"), way)(anthropic_reply("Ok.", tool_calls=calls, stop_reason="max_tokens"))

    assert [call["function"]["name"] for call in talk.last["metadata"]["tool_calls"]] == ["look_up"]
    [cut] = talk.last["metadata"]["incomplete_tool_calls"]
    assert cut["function"] == {"name": "write", "arguments": '{"text":"Once upon"}'}
    assert [block["type"] for block in talk.native[-1]["content"]] == ["text", "tool_use"]


@pytest.mark.parametrize(("signature", "kept"), [("c2ln", ["thinking"]), ("", [])])
def test_thinking_that_the_length_limit_cut_off_goes_back_only_if_it_is_signed(
    talk: Talk, signature: str, kept: list[str]
) -> None:
    talk.add("user", "Hi").stream(
        anthropic_reply(reasoning="Hm", signature=signature, stop_reason="max_tokens")
    )

    assert [block["type"] for block in talk.native[-1]["content"]] == kept
    assert talk.last["metadata"]["reasoning"] == "Hm"


def test_a_servers_call_that_the_length_limit_cut_off_is_not_sent_back(talk: Talk) -> None:
    talk.add("user", "Hi").stream(anthropic_reply(blocks=[SEARCH_CALL], stop_reason="max_tokens"))

    assert talk.native[-1]["content"] == []
    assert talk.native[-1]["_metadata"]["incomplete_blocks"] == [SEARCH_CALL]


def test_text_that_comes_with_something_unknown_is_shown(talk: Talk) -> None:
    delta = {"type": "text_delta", "text": "Tea", "confidence": 0.9}
    talk.add("user", "Hi").stream(events(*block(0, {"type": "text", "text": ""}, delta)))

    assert talk.partials == [{"role": "assistant", "content": "Tea"}]
    assert talk.native[-1]["content"] == [{"type": "text", "text": "Tea"}]


def test_a_server_that_does_not_stream_is_understood(talk: Talk) -> None:
    reply = anthropic_reply("Hello")
    talk.add("user", "Hi").stream(ServerReply(body=reply.body))

    assert talk.last["content"] == "Hello" and talk.last["metadata"]["ending"] == "complete"


def test_a_paused_turn_goes_on_with_the_next_request(talk: Talk) -> None:
    talk.add("user", "Search").stream(anthropic_reply(blocks=[SEARCH_CALL], stop_reason="pause_turn"))
    assert talk.last["metadata"]["ending"] == "paused"

    talk.stream(anthropic_reply("Found it.", blocks=[SEARCH_RESULT]))
    assert talk.sent["messages"][-1] == {"role": "assistant", "content": [SEARCH_CALL]}

    talk.add("user", "Thanks").stream(anthropic_reply("Welcome."))
    assert talk.sent["messages"][1]["content"] == [
        SEARCH_CALL,
        SEARCH_RESULT,
        {"type": "text", "text": "Found it."},
    ]


def test_a_refusal_keeps_what_was_said_and_why(talk: Talk) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    delta = {"stop_reason": "refusal", "stop_details": details}
    every: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Well"}},
        {"type": "message_delta", "delta": delta},
        {"type": "message_stop"},
    ]
    talk.add("user", "Hi").stream(ServerReply(stream=b"".join(sse_event(each) for each in every)))

    assert talk.last["content"] == "Well"
    assert talk.last["metadata"]["ending"] == "refusal"
    assert talk.last["metadata"]["response"]["stop_details"] == details


def test_an_answer_without_words_is_an_answer_and_is_not_sent_back(talk: Talk) -> None:
    talk.add("user", "Hi").stream(anthropic_reply(""))
    assert talk.last["content"] == "" and talk.last["metadata"]["ending"] == "complete"

    talk.add("user", "Please go on").stream(anthropic_reply("Yes."))
    assert [message["role"] for message in talk.sent["messages"]] == ["user"]


def test_a_server_that_sends_no_stop_reason_but_an_end_is_believed(talk: Talk) -> None:
    every: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "content": []}},
        *block(0, {"type": "tool_use", "id": "toolu_1", "name": "count", "input": {"to": 3}}),
        {"type": "message_stop"},
    ]
    talk.add("user", "Hi").stream(ServerReply(stream=b"".join(sse_event(each) for each in every)))

    assert talk.last["metadata"]["ending"] == "tool_calls"


def test_a_server_without_event_names_and_with_a_done_mark_is_understood(talk: Talk) -> None:
    every = [
        sse_event({"type": "message_start", "message": {"id": "msg_1", "content": []}}),
        *(
            sse_event(event)
            for event in block(0, {"type": "text", "text": "Hel"}, {"type": "text_delta", "text": "lo"})
        ),
        sse_event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        sse_event("[DONE]"),
    ]
    talk.add("user", "Hi").stream(ServerReply(stream=b"".join(every)))

    assert talk.last["content"] == "Hello"
    assert [partial["content"] for partial in talk.partials] == ["Hel", "lo"]
