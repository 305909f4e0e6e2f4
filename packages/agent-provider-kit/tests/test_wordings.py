"""How providers say no, in their own words: each row of the table, and the words that mislead."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from agent_provider_kit import (
    ContextTooLong,
    Exchange,
    KeyRefused,
    LimitReached,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    failure_in_reply,
    failure_of_reply,
)
from agent_provider_kit.wordings import WORDINGS, Wording, meaning_of

HTML_413 = b"<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>"


def error(message: str, code: str | None = None) -> bytes:
    return orjson.dumps({"error": {"message": message, "code": code}})


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.pattern[:40])
def test_every_row_understands_its_example_and_names_its_source(wording: Wording) -> None:
    assert meaning_of(wording.example) is wording.means
    assert meaning_of(wording.example.upper()) is wording.means
    provider, colon, place = wording.source.partition(": ")
    assert provider and colon and "." in place


@pytest.mark.parametrize(
    ("status", "message", "code", "expected"),
    [
        # Mentions a page about billing, and is a rate limit.
        (
            429,
            "Rate limit reached. Visit https://platform.openai.com/account/billing to add a payment method.",
            None,
            Overloaded,
        ),
        (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            None,
            Overloaded,
        ),
        (429, "You exceeded your current quota.", "insufficient_quota", LimitReached),
        (429, "Request too large for gpt-4o on tokens per min (TPM)", "rate_limit_exceeded", ContextTooLong),
        (429, "Too many tokens, please wait before trying again.", "ThrottlingException", Overloaded),
        (400, "You have reached your specified API usage limits.", "invalid_request_error", LimitReached),
        (403, "Insufficient balance, please recharge", None, LimitReached),
        (400, "Invalid prompt: flagged. Please try again", "invalid_prompt", RequestRefused),
        # Too long is a call's id here, and no compaction makes it shorter.
        (400, "Invalid 'input[95].call_id': string too long.", "string_above_max_length", RequestRefused),
        (
            400,
            "Invalid 'tools[1].function.name': string too long.",
            "string_above_max_length",
            RequestRefused,
        ),
        (400, "Invalid 'input[3].output': string too long.", "string_above_max_length", ContextTooLong),
        (400, "The request timed out in validation of rate_limit", None, RequestRefused),
        (400, "API key expired. Please renew the API key.", "INVALID_ARGUMENT", KeyRefused),
        # The free tier has no such model, whatever the message says about trying again.
        (429, "* Quota exceeded for metric: x, limit: 0\nPlease retry in 41.9s.", None, LimitReached),
        (429, "* Quota exceeded for metric: x, limit: 0.5\nPlease retry in 41.9s.", None, Overloaded),
        (403, "Your newly created team doesn't have any credits or licenses yet.", None, LimitReached),
        (403, "You have no access to this team.", None, KeyRefused),
        # Servers for local models report an overflow as their own failure.
        (
            500,
            "The decoder prompt (length 9) is longer than the maximum model length of 8.",
            None,
            ContextTooLong,
        ),
        (500, "Requested input length 99009 exceeds maximum input length 8192", None, ContextTooLong),
        # The answer is too long here, not the conversation.
        (400, "max_tokens: 64001 > 64000, which is the maximum allowed", None, RequestRefused),
        (400, "The maximum tokens you requested exceeds the model limit of 32768", None, RequestRefused),
    ],
)
def test_words_that_mislead_are_understood(
    exchange: Exchange, status: int, message: str, code: str | None, expected: type[ProviderFailure]
) -> None:
    assert type(failure_of_reply(exchange, status, {}, error(message, code))) is expected


def test_a_gateway_that_finds_a_request_too_large_may_say_so_with_a_web_page(exchange: Exchange) -> None:
    failure = failure_of_reply(exchange, 413, {"Content-Type": "text/html"}, HTML_413)

    assert type(failure) is ContextTooLong and failure.provider_message == ""


def test_an_invalid_prompt_in_the_middle_of_a_reply_is_not_tried_again(exchange: Exchange) -> None:
    said = {"code": "invalid_prompt", "message": "Please try again with a different prompt"}

    assert not failure_in_reply(exchange, said).retryable


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 11s. Visit https://x.test/limits", 11.0),
        ("Please try again in 6m0.5s.", 360.5),
        ("Please try again in 20ms.", 0.02),
        ("Please retry in 42.25s.", 42.25),
        ("Try again after 30 seconds", 30.0),
        ("Please wait 2 minutes and try", 120.0),
        ("Please try again with a different prompt", None),
        ("Retry 3 times", None),
    ],
)
def test_words_that_say_when_to_try_again_are_read(
    exchange: Exchange, message: str, seconds: float | None
) -> None:
    assert failure_of_reply(exchange, 429, {}, error(message)).retry_after == seconds
    in_reply = {"code": "rate_limit_exceeded", "message": message}
    assert failure_in_reply(exchange, in_reply).retry_after == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset": "17"}, 17),
        ({"X-RateLimit-Reset-Requests": "1m2s", "X-RateLimit-Reset-Tokens": "6ms"}, 62),
        (
            {
                "x-ratelimit-reset-requests": "8.64s",
                "x-ratelimit-remaining-requests": "9999",
                "x-ratelimit-reset-tokens": "1.5s",
                "x-ratelimit-remaining-tokens": "0",
            },
            1.5,
        ),
        ({"x-ratelimit-reset": "17", "retry-after": "3"}, 3),
        ({"x-ratelimit-reset": "whenever"}, None),
    ],
)
def test_headers_that_say_when_a_limit_is_reset_are_read(
    exchange: Exchange, headers: dict[str, str], seconds: float | None
) -> None:
    assert failure_of_reply(exchange, 429, headers, b"").retry_after == seconds


def test_a_limit_is_reset_at_a_moment_that_is_written_in_three_ways(exchange: Exchange) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    headers = [
        {"x-ratelimit-reset": str(int(time.time()) + 3600)},
        {"x-ratelimit-reset": str(int((time.time() + 3600) * 1000))},
        {"anthropic-ratelimit-requests-reset": soon.isoformat()},
    ]

    waits = [failure_of_reply(exchange, 429, each, b"").retry_after or 0.0 for each in headers]

    assert all(3000 < wait <= 3600 for wait in waits)


def test_google_says_in_the_details_when_to_try_again(exchange: Exchange) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5.5s"}
    said = {"code": 429, "message": "Resource has been exhausted.", "details": [{"links": []}, info]}

    assert failure_of_reply(exchange, 429, {}, orjson.dumps({"error": said})).retry_after == 5.5
    assert (
        failure_of_reply(exchange, 429, {"retry-after": "2"}, orjson.dumps([{"error": said}])).retry_after
        == 2
    )
    assert failure_in_reply(exchange, said).retry_after == 5.5
    for junk in ("5", [5], [{"retryDelay": 5}], [{"retryDelay": "soon"}]):
        assert failure_in_reply(exchange, {**said, "details": junk}).retry_after is None


def test_a_router_may_pass_the_headers_on_in_its_body(exchange: Exchange) -> None:
    inner = {"headers": {"X-RateLimit-Reset": "25"}}
    body = orjson.dumps({"error": {"message": "slow", "code": 429, "metadata": inner}})

    assert failure_of_reply(exchange, 429, {}, body).retry_after == 25


def test_limits_have_no_say_where_the_server_broke(exchange: Exchange) -> None:
    assert failure_of_reply(exchange, 500, {"x-ratelimit-reset-requests": "8m"}, b"").retry_after is None
