from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_provider_kit import RequestRefused, StreamCutOff
from agent_testing import ServerReply, ToolCall, anthropic_reply, error_reply
from anthropic_provider.refusals import is_about_thinking, refused_blocks, without_blocks

if TYPE_CHECKING:
    from agent_testing import Talk

BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
    "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
    '"drop_block".'
)


def refused(message: str = BOUND) -> ServerReply:
    return error_reply(400, message, code="invalid_request_error", wire="anthropic")


def thinking(thought: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": thought, "signature": thought[::-1]}


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def conversation(talk: Talk) -> Talk:
    """Two turns with thinking, and a third question."""
    talk.add("user", "One").call(anthropic_reply("Two", reasoning="First thought"))
    talk.add("user", "Three").call(anthropic_reply("Four", reasoning="Second thought", redacted="eHl6"))
    return talk.add("user", "Five")


@pytest.mark.parametrize("way", ["call", "stream"])
def test_bound_thinking_is_left_out_and_the_request_made_once_more(talk: Talk, way: str) -> None:
    getattr(conversation(talk), way)(refused(), anthropic_reply("Six", reasoning="Third thought"))

    first, second = talk.server.requests[-2:]
    assert kinds(first.json["messages"][1]) == ["thinking", "text"]
    assert kinds(second.json["messages"][1]) == kinds(second.json["messages"][3]) == ["text"]
    assert talk.last["content"] == "Six"


@pytest.mark.parametrize("way", ["call", "stream"])
def test_what_was_left_out_is_kept_aside_and_reported(talk: Talk, way: str) -> None:
    before = conversation(talk).native
    getattr(talk, way)(refused(), anthropic_reply("Six", reasoning="Third thought"))

    dropped = talk.native[3]["_metadata"]["dropped_blocks"]
    assert [entry["block"] for entry in dropped] == before[3]["content"][:2]
    assert all("different conversation" in entry["reason"] for entry in dropped)
    report = talk.session.metadata["dropped_thinking"]
    assert report["blocks"] == 3 and list(report["native_indices"]) == [1, 3]
    assert "different conversation" in report["reason"]


def test_what_was_left_out_stays_out_and_new_thinking_goes_back(talk: Talk) -> None:
    conversation(talk).call(refused(), anthropic_reply("Six", reasoning="Third thought"))
    count = len(talk.server.requests)
    talk.add("user", "Seven").call(anthropic_reply("Eight"))

    assert len(talk.server.requests) == count + 1
    assert [kinds(message) for message in talk.sent["messages"][1::2]] == [
        ["text"],
        ["text"],
        ["thinking", "text"],
    ]


def test_the_transcript_still_shows_what_was_thought(talk: Talk) -> None:
    conversation(talk).call(refused(), anthropic_reply("Six"))

    assert [message.content for message in talk.session.messages] == [
        "One",
        "Two",
        "Three",
        "Four",
        "Five",
        "Six",
    ]
    assert talk.session.messages[1].metadata["reasoning"] == "First thought"
    assert [list(message.native_indices or ()) for message in talk.session.messages] == [
        [n] for n in range(6)
    ]


def test_an_edit_of_an_earlier_message_is_survived(talk: Talk) -> None:
    conversation(talk)
    talk.session = talk.core.modify_message(talk.session, 0, "Eins", talk.config)
    talk.call(refused(), anthropic_reply("Six"))

    assert talk.sent["messages"][0]["content"] == "Eins"
    assert talk.last["content"] == "Six"


def test_thinking_before_the_named_block_is_kept(talk: Talk) -> None:
    conversation(talk).call(refused(BOUND.replace("messages.1", "messages.3")), anthropic_reply("Six"))

    assert kinds(talk.sent["messages"][1]) == ["thinking", "text"]
    assert kinds(talk.sent["messages"][3]) == ["text"]


def test_a_second_refusal_is_raised_and_nothing_is_dropped_for_good(talk: Talk) -> None:
    before = conversation(talk).session

    with pytest.raises(RequestRefused, match="something else"):
        talk.call(refused(), refused("something else"))
    assert talk.session == before and len(talk.server.requests) == 4


def test_a_refusal_about_something_else_is_not_retried(talk: Talk) -> None:
    with pytest.raises(RequestRefused, match="max_tokens"):
        conversation(talk).call(refused("max_tokens: must be positive"))
    assert len(talk.server.requests) == 3


def test_a_refusal_is_not_retried_where_there_is_no_thinking_to_leave_out(talk: Talk) -> None:
    with pytest.raises(RequestRefused):
        talk.add("user", "Hi").call(refused())
    assert len(talk.server.requests) == 1


def test_whoever_asks_for_the_error_gets_it(talk: Talk) -> None:
    strict = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}

    with pytest.raises(RequestRefused, match="different conversation"):
        conversation(talk).call(refused(), thinking=strict)
    assert len(talk.server.requests) == 3


def test_an_interrupted_answer_after_a_refusal_keeps_the_report(talk: Talk) -> None:
    conversation(talk).server.play(refused(), anthropic_reply("Six and more").cut())

    with pytest.raises(StreamCutOff) as caught:
        talk.stream()
    assert caught.value.partial is not None
    assert caught.value.partial["session"].metadata["dropped_thinking"]["blocks"] == 3


@pytest.mark.parametrize(
    "complaint",
    [
        BOUND,
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.5.content.0.thinking.signature: Field required",
        "messages.3.content.1: `thinking` blocks in the latest assistant message cannot be modified.",
        "messages.1.content.0: When thinking is disabled, a final message cannot contain `thinking`.",
    ],
)
def test_the_ways_in_which_thinking_is_refused_are_known(complaint: str) -> None:
    assert is_about_thinking(complaint)


@pytest.mark.parametrize(
    "complaint",
    [
        "max_tokens must be greater than thinking.budget_tokens",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        "prompt is too long",
    ],
)
def test_other_complaints_are_not_mistaken_for_it(complaint: str) -> None:
    assert not is_about_thinking(complaint)


def test_a_complaint_that_names_nothing_means_what_was_thought_before_the_last_question() -> None:
    call = {"type": "tool_use", "id": "a", "name": "look_up", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": [thinking("1"), {"type": "text", "text": "Two"}]},
        {"role": "user", "content": "Three"},
        {"role": "assistant", "content": [thinking("2"), call]},
        {"role": "user", "content": [result]},
    ]

    assert refused_blocks(items, "The block is bound to a different conversation.") == [(1, 0)]
    assert refused_blocks(items[2:], "The block is bound to a different conversation.") == [(1, 0)]
    assert refused_blocks(items, "messages.99.content.0: Invalid `signature` in `thinking` block") == [(1, 0)]


def test_a_named_block_is_found_in_a_merged_message(talk: Talk) -> None:
    talk.add("user", "One").call(anthropic_reply("", reasoning="a", stop_reason="pause_turn"))
    talk.call(anthropic_reply("Two", reasoning="b", tool_calls=[ToolCall("look_up", {})]))
    talk.add("tool", "ok", metadata={"tool_call_id": "toolu_1"})
    talk.call(refused(BOUND.replace("content.0", "content.1")), anthropic_reply("Three"))

    assert kinds(talk.sent["messages"][1]) == ["thinking", "text", "tool_use"]
    assert talk.sent["messages"][1]["content"][0]["thinking"] == "a"


def test_putting_aside_leaves_the_given_items_alone() -> None:
    items = [{"role": "assistant", "content": [thinking("1"), {"type": "text", "text": "Two"}]}]

    [lighter] = without_blocks(items, [(0, 0)], "why")

    assert kinds(items[0]) == ["thinking", "text"] and kinds(lighter) == ["text"]
