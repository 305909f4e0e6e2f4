"""Answers that are not ready: queued ones, and those that the provider makes without a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_core import Cancellation
from agent_provider_kit import Overloaded, StreamCutOff
from agent_testing import error_reply, json_reply, responses_reply, sse_reply
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from agent_testing import Talk

SOON = {"poll_seconds": 0.001}


def promise(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": status, "output": [], "model": "m", **more}


def ready(text: str = "Tea.") -> dict[str, Any]:
    return {**orjson.loads(responses_reply(text).body), "id": "resp_1"}


def test_a_queued_answer_is_looked_up_until_it_is_ready(talk: Talk) -> None:
    replies = map(json_reply, (promise("queued"), promise("in_progress"), ready()))
    talk.add("user", "Tea?").call(*replies, background=True, **SOON)

    asked, *looked_up = talk.server.requests
    assert asked.json["background"] is True and asked.json["store"] is True
    assert [(each.method, each.path) for each in looked_up] == [("GET", "/v1/responses/resp_1")] * 2
    assert looked_up[0].headers["authorization"] == asked.headers["authorization"]
    assert talk.last["content"] == "Tea." and talk.about["response_id"] == "resp_1"
    assert talk.session.metadata["background_response"] == {"id": "resp_1", "status": "completed"}


def test_a_queued_answer_is_followed_whoever_asked_for_it(talk: Talk) -> None:
    talk.add("user", "Tea?").call(json_reply(promise("queued")), json_reply(ready()), **SOON)

    assert "background" not in talk.server.requests[0].json
    assert talk.last["content"] == "Tea."


@pytest.mark.parametrize("last", ["response.queued", "response.in_progress"])
def test_a_stream_that_ends_before_its_answer_is_followed(talk: Talk, last: str) -> None:
    status = last.removeprefix("response.")
    began = sse_reply(
        {"type": "response.created", "response": promise("queued", background=True)},
        {"type": last, "response": promise(status, background=True)},
    )
    talk.add("user", "Tea?").stream(
        began, json_reply(promise(status)), json_reply(ready()), background=True, **SOON
    )

    assert talk.server.requests[0].json["stream"] is True
    assert talk.last["content"] == "Tea." and len(talk.server.requests) == 3


def test_a_stream_that_is_no_stream_is_followed_too(talk: Talk) -> None:
    talk.add("user", "Tea?").stream(json_reply(promise("queued")), json_reply(ready()), **SOON)

    assert talk.last["content"] == "Tea."


def test_a_usual_stream_that_breaks_is_not_looked_up(talk: Talk) -> None:
    began = sse_reply({"type": "response.created", "response": promise("in_progress")})

    with pytest.raises(StreamCutOff):
        talk.add("user", "Tea?").stream(began)
    assert len(talk.server.requests) == 1


def test_a_server_that_is_busy_for_a_moment_does_not_end_the_wait(talk: Talk) -> None:
    busy = [error_reply(503)] * 4
    talk.add("user", "Tea?").call(json_reply(promise("queued")), *busy, json_reply(ready()), **SOON)

    assert talk.last["content"] == "Tea."


def test_the_id_is_kept_where_looking_up_fails(talk: Talk) -> None:
    with pytest.raises(Overloaded) as caught:
        talk.add("user", "Tea?").call(json_reply(promise("queued")), *[error_reply(503)] * 5, **SOON)

    assert caught.value.response_id == "resp_1"
    assert caught.value.__notes__ == ["The answer resp_1 may be ready later: it was queued."]


def test_waiting_can_be_cancelled(talk: Talk) -> None:
    talk.add("user", "Tea?")
    cancellation = Cancellation()

    def cancel_then_promise(_request: Any) -> Any:
        cancellation.cancel()
        return json_reply(promise("in_progress"))

    talk.server.play(json_reply(promise("queued")), cancel_then_promise)
    config = {**talk.config, "background": True, "poll_seconds": 0.001}
    session, messages = talk.core.send_request(
        talk.session, config, cancellation=cancellation, request_id="r"
    )

    assert messages == [] and session.metadata["background_response"]["id"] == "resp_1"


def test_a_failed_answer_is_the_failure_that_it_is(talk: Talk) -> None:
    failed = promise("failed", error={"code": "server_error", "message": "oops"})

    with pytest.raises(Overloaded, match="oops"):
        talk.add("user", "Tea?").call(json_reply(promise("queued")), json_reply(failed), **SOON)


@pytest.mark.parametrize("streamed", [False, True])
def test_complete_means_completed(talk: Talk, streamed: bool) -> None:
    whole = {**ready(), "status": "complete"}
    reply = sse_reply({"type": "response.complete", "response": whole}) if streamed else json_reply(whole)
    talk.add("user", "Tea?")
    talk.stream(reply) if streamed else talk.call(reply)

    assert talk.last["content"] == "Tea." and talk.about["ending"] == "complete"


TOOLS: dict[str, Any] = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [{"type": "function", "name": "brew"}],
}


@pytest.mark.parametrize("system_role", ["system", "developer", "instructions"])
def test_additional_tools_stay_where_they_are(system_role: str) -> None:
    provider = OpenAIResponsesProvider()
    message = {"type": "message", "role": "system", "content": "Be brief."}
    items: list[dict[str, Any]] = [message, TOOLS, {"type": "message", "role": "user", "content": "Tea?"}]
    state = provider.init({"model": "m", "system_role": system_role})

    body = provider.request_body(items, state, stream=False)

    assert TOOLS in body["input"]
    assert body.get("instructions") == ("Be brief." if system_role == "instructions" else None)
    assert provider.validate_native(items) == []
    again = provider.to_native_messages(provider.from_native_messages(items))
    assert again[1] == TOOLS
