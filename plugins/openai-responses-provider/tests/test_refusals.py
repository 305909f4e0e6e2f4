"""Reasoning is bound to a model and an account: what the API refuses is left out, once, and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_provider_kit import RequestRefused
from agent_testing import ToolCall, error_reply, responses_reply

if TYPE_CHECKING:
    from agent_testing import Talk

UNREADABLE = error_reply(
    400, "The encrypted content ZW5j...aXB0 could not be verified.", code="invalid_encrypted_content"
)


def begin(talk: Talk) -> Talk:
    reply = responses_reply("Hello", reasoning="Greet", tool_calls=[ToolCall("brew")])
    talk.add("user", "Hi").stream(reply)
    return talk.add("tool", "ok", metadata={"tool_call_id": "call_1"})


def kinds(talk: Talk) -> list[str]:
    return [item["type"] for item in talk.sent["input"]]


def test_foreign_reasoning_is_sent_until_it_is_refused(talk: Talk) -> None:
    begin(talk).call(responses_reply("Fine"), model="other-model")

    assert "reasoning" in kinds(talk)
    assert "dropped_reasoning" not in talk.session.metadata


@pytest.mark.parametrize("streamed", [True, False])
def test_refused_reasoning_is_left_out_reported_and_not_sent_to_that_model_again(
    talk: Talk, *, streamed: bool
) -> None:
    begin(talk)
    ask = talk.stream if streamed else talk.call
    ask(UNREADABLE, responses_reply("Fine"), model="other-model")

    assert "reasoning" not in kinds(talk)
    assert not any("id" in item for item in talk.sent["input"] if item["type"] == "message")
    dropped = talk.session.metadata["dropped_reasoning"]
    assert (dropped["items"], list(dropped["native_indices"])) == (1, [1])
    assert "could not be verified" in dropped["reason"]
    assert talk.session.messages[1].to_dict()["metadata"]["reasoning"] == "Greet"

    talk.add("user", "More").call(responses_reply("Fine"), model="other-model")
    assert kinds(talk).count("reasoning") == 0
    assert len(talk.server.requests) == 4


def test_the_model_that_thought_it_gets_it_back(talk: Talk) -> None:
    begin(talk).call(UNREADABLE, responses_reply("Fine"), model="other-model")
    talk.add("user", "More").call(responses_reply("Fine"))

    assert kinds(talk).count("reasoning") == 1


def test_only_what_the_complaint_names_is_left_out(talk: Talk) -> None:
    begin(talk).call(responses_reply("More", reasoning="Again")).add("user", "And?")
    native = talk.native
    assert [item.get("id") for item in native if item["type"] == "reasoning"] == [
        "rs_scripted",
        "rs_scripted",
    ]
    complaint = error_reply(
        400, "Item 'rs_scripted' of type 'reasoning' was provided without its required following item."
    )
    talk.call(complaint, responses_reply("Fine"))

    assert kinds(talk).count("reasoning") == 0


def test_reasoning_of_the_same_model_is_left_out_when_nothing_else_can_be_meant(talk: Talk) -> None:
    begin(talk).call(UNREADABLE, responses_reply("Fine"))

    assert "reasoning" not in kinds(talk)


def test_ids_that_the_server_does_not_know_are_left_out(talk: Talk) -> None:
    complaint = error_reply(
        404, "Item with id 'rs_scripted' not found. Items are not persisted when `store` is false."
    )
    begin(talk).call(complaint, responses_reply("Fine"))

    assert "reasoning" in kinds(talk)
    assert not any("id" in item for item in talk.sent["input"])


def test_a_model_that_has_no_encrypted_reasoning_is_asked_without(talk: Talk) -> None:
    complaint = error_reply(400, "Encrypted content is not supported with this model.")
    talk.add("user", "Hi").call(complaint, responses_reply("Hello"))

    assert "include" not in talk.sent


def test_a_refusal_for_another_reason_is_not_tried_again(talk: Talk) -> None:
    with pytest.raises(RequestRefused, match="temperature"):
        begin(talk).call(error_reply(400, "temperature must be at most 2"))
    assert len(talk.server.requests) == 2


def test_a_server_that_goes_on_refusing_is_believed(talk: Talk) -> None:
    with pytest.raises(RequestRefused, match="could not be verified"):
        begin(talk).call(UNREADABLE, UNREADABLE, UNREADABLE)
    assert len(talk.server.requests) == 3
