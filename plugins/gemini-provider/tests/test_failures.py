from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_provider_kit import (
    ContextTooLong,
    KeyRefused,
    LimitReached,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    StreamCutOff,
)
from agent_testing import (
    ServerReply,
    ToolCall,
    error_reply,
    gemini_reply,
    json_reply,
    sse_reply,
)
from gemini_provider import PromptBlocked

if TYPE_CHECKING:
    from agent_testing import Talk

ANSWER = gemini_reply("A long answer with many words.", tool_calls=[ToolCall("look_up", {"word": "tea"})])
QUOTA = "You exceeded your current quota, please check your plan and billing details."


def google(
    status: int, code: str, message: str, *details: dict[str, Any], listed: bool = False
) -> ServerReply:
    error = {"error": {"code": status, "message": message, "status": code, "details": list(details)}}
    return json_reply([error] if listed else error, status)


def detail(kind: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def quota(quota_id: str) -> dict[str, Any]:
    return detail("QuotaFailure", violations=[{"quotaId": quota_id, "quotaValue": "15"}])


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("status", "code", "message", "failure"),
    [
        (400, "INVALID_ARGUMENT", "Invalid JSON payload received", RequestRefused),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", KeyRefused),
        (400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum", ContextTooLong),
        (400, "FAILED_PRECONDITION", "User location is not supported", RequestRefused),
        (401, "UNAUTHENTICATED", "Request had invalid credentials", KeyRefused),
        (403, "PERMISSION_DENIED", "Your project has been denied access", KeyRefused),
        (404, "NOT_FOUND", "models/gemini-9 is not found", RequestRefused),
        (429, "RESOURCE_EXHAUSTED", QUOTA, Overloaded),
        (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted", LimitReached),
        (429, "RESOURCE_EXHAUSTED", f"{QUOTA} Quota exceeded for metric: m, limit: 0", LimitReached),
        (500, "INTERNAL", "An internal error has occurred", Overloaded),
        (503, "UNAVAILABLE", "The model is overloaded", Overloaded),
        (504, "DEADLINE_EXCEEDED", "The request timed out", Overloaded),
    ],
)
def test_every_error_of_the_api_is_a_failure_of_its_kind(
    talk: Talk, way: str, status: int, code: str, message: str, failure: type[ProviderFailure]
) -> None:
    talk.add("user", "Hi")

    with pytest.raises(failure) as caught:
        getattr(talk, way)(error_reply(status, message, code=code, wire="gemini"))
    assert type(caught.value) is failure
    assert (caught.value.status, caught.value.provider_message) == (status, message)
    assert caught.value.key_origin == "config['api_key']" and caught.value.next_step
    assert code in str(caught.value)


def test_an_error_in_a_list_is_read_like_any_other(talk: Talk) -> None:
    with pytest.raises(KeyRefused, match="API key not valid"):
        talk.add("user", "Hi").stream(
            google(
                400,
                "INVALID_ARGUMENT",
                "API key not valid.",
                detail("ErrorInfo", reason="API_KEY_INVALID", domain="googleapis.com"),
                listed=True,
            )
        )


def test_the_time_to_wait_stands_in_the_details(talk: Talk) -> None:
    with pytest.raises(Overloaded) as caught:
        talk.add("user", "Hi").call(
            google(
                429,
                "RESOURCE_EXHAUSTED",
                QUOTA,
                quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
                detail("RetryInfo", retryDelay="43.5s"),
                detail("RequestInfo", requestId="req_7"),
            )
        )
    assert caught.value.retry_after == 43.5 and caught.value.request_id == "req_7"


def test_a_header_about_the_time_to_wait_goes_first(talk: Talk) -> None:
    with pytest.raises(Overloaded) as caught:
        talk.add("user", "Hi").call(
            error_reply(503, "busy", code="UNAVAILABLE", wire="gemini", retry_after=3.0)
        )
    assert caught.value.retry_after == 3.0


def test_a_day_without_quota_is_no_matter_of_waiting(talk: Talk) -> None:
    with pytest.raises(LimitReached) as caught:
        talk.add("user", "Hi").call(
            google(
                429,
                "RESOURCE_EXHAUSTED",
                QUOTA,
                detail("RetryInfo", retryDelay="soon"),
                quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            )
        )
    assert caught.value.retry_after is None and not caught.value.retryable


def test_an_error_in_the_middle_of_a_stream_keeps_what_came_before(talk: Talk) -> None:
    said = {"candidates": [{"content": {"parts": [{"text": "Half of"}], "role": "model"}}]}
    error = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}

    with pytest.raises(Overloaded, match="UNAVAILABLE") as caught:
        talk.add("user", "Hi").stream(sse_reply(said, error))
    [kept] = (caught.value.partial or {})["messages"]
    assert kept["content"] == "Half of"


def test_an_error_of_another_form_in_a_stream_is_raised_too(talk: Talk) -> None:
    with pytest.raises(RequestRefused, match="odd"):
        talk.add("user", "Hi").stream(sse_reply({"error": {"message": "odd"}}))
    with pytest.raises(Overloaded, match="busy"):
        talk.stream(sse_reply(b'[{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}]'))


@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_blocked_prompt_is_an_error_that_says_so(talk: Talk, way: str) -> None:
    body = orjson.dumps(
        {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "not this"},
            "usageMetadata": {"promptTokenCount": 9},
        }
    )
    with pytest.raises(PromptBlocked, match=r"PROHIBITED_CONTENT.*not this") as caught:
        getattr(talk.add("user", "Hi"), way)(ServerReply(body=body, stream=b"data: " + body + b"\r\n\r\n"))
    assert caught.value.category == "refusal" and not caught.value.retryable
    assert "safety_settings" in caught.value.next_step


def test_a_stream_of_nothing_but_counts_is_cut_off(talk: Talk) -> None:
    with pytest.raises(StreamCutOff):
        talk.add("user", "Hi").stream(sse_reply({"usageMetadata": {"promptTokenCount": 1}}))
