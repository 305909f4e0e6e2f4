"""Habits of the servers that imitate Chat Completions, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_provider_kit import Overloaded, StreamCutOff
from agent_testing import ServerReply, chat_chunk, json_reply, sse_event, sse_reply

if TYPE_CHECKING:
    from agent_testing import Talk

END = chat_chunk({}, "stop")
CALL = {"name": "look_up", "arguments": '{"word":"tea"}'}


@pytest.fixture
def asked(talk: Talk) -> Talk:
    return talk.add("user", "What is tea?")


def calls(talk: Talk) -> list[tuple[str, str]]:
    made = talk.about["tool_calls"]
    return [(call["function"]["name"], call["function"]["arguments"]) for call in made]


def test_the_last_event_may_be_missing(asked: Talk) -> None:
    asked.stream(sse_reply(chat_chunk({"content": "Tea"}), END))

    assert (asked.last["content"], asked.about["ending"]) == ("Tea", "complete")


def test_the_last_event_may_be_all_there_is_of_an_end(asked: Talk) -> None:
    asked.stream(sse_reply(chat_chunk({"content": "Tea"}), "[DONE]"))

    assert (asked.last["content"], asked.about["ending"]) == ("Tea", "complete")


def test_the_first_piece_may_be_null(asked: Talk) -> None:
    asked.stream(
        sse_reply(chat_chunk({"role": "assistant", "content": None}), chat_chunk({"content": "Tea"}), END)
    )

    assert asked.last["content"] == "Tea"


def test_comments_keep_the_connection_alive(asked: Talk) -> None:
    keep = b": OPENROUTER PROCESSING\n\n"
    told = keep + sse_event(chat_chunk({"content": "Tea"})) + keep + sse_event(END) + keep

    asked.stream(ServerReply(stream=told))

    assert asked.last["content"] == "Tea"


def test_lines_may_end_in_crlf(asked: Talk) -> None:
    asked.stream(sse_reply(chat_chunk({"content": "Tea"}), END, "[DONE]", newline=b"\r\n"))

    assert asked.last["content"] == "Tea"


def test_events_may_be_written_without_spaces(asked: Talk) -> None:
    told = b"".join(
        sse_event(each).replace(b"data: ", b"data:") for each in (chat_chunk({"content": "Tea"}), END)
    )

    asked.stream(ServerReply(stream=told))

    assert asked.last["content"] == "Tea"


def test_whole_calls_without_an_index(asked: Talk) -> None:
    first = {"id": "c1", "type": "function", "function": CALL}
    second = {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    asked.stream(sse_reply(chat_chunk({"tool_calls": [first, second]}), chat_chunk({}, "tool_calls")))

    assert calls(asked) == [("look_up", '{"word":"tea"}'), ("now", "{}")]


def test_one_index_for_all_calls(asked: Talk) -> None:
    pieces = [{"index": 0, "id": f"c{n}", "function": CALL} for n in range(3)]
    asked.stream(sse_reply(*(chat_chunk({"tool_calls": [piece]}) for piece in pieces), END))

    assert calls(asked) == [("look_up", '{"word":"tea"}')] * 3
    assert [call["id"] for call in asked.about["tool_calls"]] == ["c0", "c1", "c2"]


@pytest.mark.parametrize("call_id", [None, "", "same"])
def test_calls_without_ids_of_their_own_get_them_and_results_find_them(
    asked: Talk, call_id: str | None
) -> None:
    pieces = [{"index": n, "id": call_id, "type": "function", "function": CALL} for n in range(2)]
    asked.stream(sse_reply(chat_chunk({"tool_calls": pieces}), chat_chunk({}, "tool_calls")))
    ids = [call["id"] for call in asked.about["tool_calls"]]
    assert len(set(ids)) == 2 and all(ids)

    for each in ids:
        asked.add("tool", "a drink", {"tool_call_id": each})
    asked.ask(json_reply({"choices": [{"message": {"content": "A drink."}, "finish_reason": "stop"}]}))

    assert [call["id"] for call in asked.sent["messages"][1]["tool_calls"]] == ids
    assert [message["tool_call_id"] for message in asked.sent["messages"][2:]] == ids


def test_arguments_may_be_an_object(asked: Talk) -> None:
    call = {"function": {"name": "look_up", "arguments": {"word": "tea"}}}
    message = {"content": "", "tool_calls": [call]}
    asked.ask(json_reply({"choices": [{"message": message, "finish_reason": "stop"}]}))

    assert calls(asked) == [("look_up", '{"word":"tea"}')]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thoughts_have_two_names(asked: Talk, field: str) -> None:
    asked.stream(
        sse_reply(chat_chunk({field: "hm "}), chat_chunk({field: "hm"}), chat_chunk({"content": "Tea"}), END)
    )

    assert [partial.get("reasoning") for partial in asked.partials] == ["hm ", "hm", None]
    assert asked.about["reasoning"] == "hm hm"
    assert asked.native[-1][field] == "hm hm"


def test_thoughts_may_be_parts_of_the_content(asked: Talk) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    asked.stream(sse_reply(chat_chunk({"content": [thinking]}), chat_chunk({"content": "Tea"}), END))

    assert (asked.last["content"], asked.about["reasoning"]) == ("Tea", "hm")
    asked.add("user", "And?").ask(json_reply({"choices": [{"message": {"content": "x"}}]}))
    assert asked.sent["messages"][1]["content"] == [thinking, {"type": "text", "text": "Tea"}]


def test_counts_may_come_with_the_end_or_in_a_place_of_their_own(asked: Talk) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    begun = asked.session
    for last in ({**END, "usage": usage}, {**END, "x_groq": {"id": "r", "usage": usage}}):
        asked.session = begun
        asked.stream(sse_reply(chat_chunk({"content": "Tea"}), last))

        assert asked.about["usage"] == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def test_what_a_router_adds_is_kept(asked: Talk) -> None:
    asked.stream(
        sse_reply(
            {**chat_chunk({"content": "Tea", "native_finish_reason": None}), "provider": "Acme"},
            {**chat_chunk({}, "stop"), "citations": ["https://tea.test"], "provider": "Acme"},
        )
    )

    assert asked.about["response_fields"] == {"provider": "Acme", "citations": ["https://tea.test"]}


def test_an_error_in_the_middle_keeps_what_came_before(asked: Talk) -> None:
    gone = {"error": {"code": 502, "message": "Upstream went away"}, "choices": [{"finish_reason": "error"}]}

    with pytest.raises(Overloaded, match="Upstream went away") as failed:
        asked.stream(sse_reply(chat_chunk({"content": "Tea is"}), gone))

    assert failed.value.partial is not None
    assert failed.value.partial["messages"][0]["content"] == "Tea is"


def test_an_error_with_a_good_status_is_an_error(asked: Talk) -> None:
    busy: dict[str, Any] = {"error": {"message": "busy", "type": "overloaded_error"}}

    with pytest.raises(Overloaded, match="busy"):
        asked.ask(json_reply(busy))
    with pytest.raises(Overloaded, match="busy"):
        asked.stream(json_reply(busy))


def test_a_server_that_gives_up_is_not_believed_to_have_ended(asked: Talk) -> None:
    with pytest.raises(StreamCutOff, match="broke the answer off: abort"):
        asked.stream(sse_reply(chat_chunk({"content": "Tea"}), chat_chunk({}, "abort"), "[DONE]"))


def test_a_second_answer_is_not_mixed_into_the_first(asked: Talk) -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "Coffee"}, "finish_reason": None}]}

    asked.stream(sse_reply(chat_chunk({"content": "Tea"}), other, END), extra_body={"n": 2})

    assert asked.last["content"] == "Tea"
