"""What a reply with an error means: the retry table, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest

from agent_core import ProviderError
from agent_provider_kit import (
    ApiKey,
    ContextTooLong,
    Exchange,
    KeyRefused,
    LimitReached,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    StreamCutOff,
    StreamMalformed,
    Unreachable,
    failure_in_reply,
    failure_of_reply,
)

PAGE = b"<!DOCTYPE html><html><body>Sign in</body></html>"


def openai(message: str, code: str | None = None) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": "x", "param": None, "code": code}})


def anthropic(message: str, kind: str) -> bytes:
    return orjson.dumps({"type": "error", "error": {"type": kind, "message": message}})


def gemini(message: str, status: str) -> bytes:
    return orjson.dumps([{"error": {"code": 400, "message": message, "status": status}}])


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, openai("Unknown parameter: 'colour'."), RequestRefused),
        (404, openai("The model `x` does not exist", "model_not_found"), RequestRefused),
        (405, b"", RequestRefused),
        (422, b'{"detail": [{"msg": "field required"}]}', RequestRefused),
        (401, openai("Incorrect API key", "invalid_api_key"), KeyRefused),
        (403, anthropic("Your key may not", "permission_error"), KeyRefused),
        (402, openai("Payment required"), LimitReached),
        (429, openai("You exceeded your current quota", "insufficient_quota"), LimitReached),
        (400, anthropic("Your credit balance is too low", "invalid_request_error"), LimitReached),
        (413, b"", ContextTooLong),
        (400, openai("too many tokens", "context_length_exceeded"), ContextTooLong),
        (
            400,
            anthropic("prompt is too long: 210000 tokens > 200000", "invalid_request_error"),
            ContextTooLong,
        ),
        (400, gemini("The input token count (9) exceeds the maximum", "INVALID_ARGUMENT"), ContextTooLong),
        (500, openai("the request exceeds the available context size"), ContextTooLong),
        (408, b"", Overloaded),
        (409, b"", Overloaded),
        (429, openai("Rate limit reached", "rate_limit_exceeded"), Overloaded),
        (500, b"oops", Overloaded),
        (502, b"", Overloaded),
        (503, b'{"error": "Loading model"}', Overloaded),
        (504, b"", Overloaded),
        (520, b"", Overloaded),
        (529, anthropic("Overloaded", "overloaded_error"), Overloaded),
        (502, PAGE, Overloaded),
        (503, PAGE, Overloaded),
        (402, PAGE, NotTheProvider),
        (404, PAGE, NotTheProvider),
        (401, PAGE, NotTheProvider),
        (301, b"", NotTheProvider),
        (302, b"", NotTheProvider),
        (307, b"", NotTheProvider),
        (407, b"", NotTheProvider),
        (511, PAGE, NotTheProvider),
    ],
)
def test_which_failure_a_reply_means(
    exchange: Exchange, status: int, body: bytes, expected: type[ProviderFailure]
) -> None:
    failure = failure_of_reply(exchange, status, {}, body)

    assert type(failure) is expected
    assert failure.status == status


@pytest.mark.parametrize(
    ("kind", "category", "retryable"),
    [
        (Unreachable, "transport", True),
        (Overloaded, "transient", True),
        (StreamCutOff, "stream_broken", True),
        (StreamMalformed, "stream_broken", True),
        (KeyRefused, "auth", False),
        (LimitReached, "limit", False),
        (ContextTooLong, "window", False),
        (RequestRefused, "rejected", False),
        (NotTheProvider, "not_the_provider", False),
    ],
)
def test_each_failure_is_one_row_of_the_retry_table(
    exchange: Exchange, kind: type[ProviderFailure], category: str, retryable: bool
) -> None:
    failure = kind(exchange, "it did not work")

    assert isinstance(failure, ProviderError)
    assert (failure.category, failure.retryable) == (category, retryable)
    assert (failure.plugin, failure.hook) == ("acme", "stream_api")
    assert failure.next_step and failure.next_step in str(failure)


def test_a_failure_says_everything_that_helps(exchange: Exchange) -> None:
    failure = failure_of_reply(
        exchange, 401, {"X-Request-Id": "req_7"}, openai("Incorrect API key provided", "invalid_api_key")
    )

    assert str(failure) == (
        "api.acme.test answered 401: Incorrect API key provided "
        "[request req_7]; check the API key, which came from a drawer"
    )
    assert failure.request_id == "req_7"
    assert failure.key_origin == "a drawer"
    assert failure.provider_message == "Incorrect API key provided"


def test_where_no_key_was_sent_nobody_is_asked_to_check_it(exchange: Exchange) -> None:
    failure = failure_of_reply(exchange._replace(key=ApiKey("", "nowhere")), 401, {}, openai("who is it?"))

    assert isinstance(failure, KeyRefused)
    assert failure.next_step == "no API key was sent: give one in the setting api_key"


@pytest.mark.parametrize("status", [400, 401, 402, 404, 413, 429, 500, 302])
def test_a_key_that_the_provider_quotes_is_masked(exchange: Exchange, status: int) -> None:
    quoting = openai("you sent sk-very-secret, did you mean it?")
    failure = failure_of_reply(exchange, status, {}, quoting)

    assert "sk-very-secret" not in f"{failure} {failure.provider_message} {failure!r} {vars(failure)}"
    assert "api.acme.test" in str(failure)


def test_a_key_is_masked_even_where_a_long_message_is_cut(exchange: Exchange) -> None:
    failure = failure_of_reply(exchange, 500, {}, b"x" * 1995 + b"sk-very-secret" * 3)

    assert "sk-ve" not in str(failure)
    assert len(failure.provider_message) == 2000


def test_a_token_that_a_header_of_ones_own_carries_is_masked() -> None:
    exchange = Exchange("acme", "call_api", "http://x", ApiKey("", "nowhere"), ("tok-12345",))

    assert "tok-12345" not in str(RequestRefused(exchange, "no", provider_message="bad tok-12345"))


def test_a_web_page_is_not_quoted(exchange: Exchange) -> None:
    for status in (404, 503):
        assert failure_of_reply(exchange, status, {}, PAGE).provider_message == ""
    page = failure_of_reply(exchange, 404, {"Content-Type": "text/HTML"}, b"Sign in")
    assert (type(page), page.provider_message) == (NotTheProvider, "")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "one", "code": "c"}}', "one"),
        (b'{"error": "two"}', "two"),
        (b'{"message": "three"}', "three"),
        (b'{"detail": "four"}', "four"),
        (b'[{"error": {"message": "five"}}]', "five"),
        (b'{"object": "error", "message": "six", "type": "BadRequestError", "code": 400}', "six"),
        (b"seven\n", "seven"),
        (b'"eight"', "eight"),
        (b'{"error": {"message": "nine", "metadata": {"raw": "from beyond"}}}', "nine (from beyond)"),
        (b'{"error": {"code": 7}}', "{'code': 7}"),
        (b"", ""),
        (b"null", ""),
        (b"[]", "[]"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_the_message_is_found_in_every_usual_body(exchange: Exchange, body: bytes, message: str) -> None:
    assert failure_of_reply(exchange, 400, {}, body).provider_message == message


@pytest.mark.parametrize("name", ["x-request-id", "Request-Id", "X-Goog-Request-Id", "CF-Ray"])
def test_the_request_id_is_found_under_every_name(exchange: Exchange, name: str) -> None:
    assert failure_of_reply(exchange, 500, {name: "id_1"}, b"").request_id == "id_1"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"Retry-After-Ms": "1500", "Retry-After": "2"}, 1.5),
        ({"Retry-After-Ms": "x", "Retry-After": "2"}, 2.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_when_to_try_again(exchange: Exchange, headers: dict[str, str], seconds: float | None) -> None:
    assert failure_of_reply(exchange, 429, headers, b"").retry_after == seconds


def test_a_date_to_try_again_becomes_seconds(exchange: Exchange) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    seconds = failure_of_reply(exchange, 503, {"Retry-After": later}, b"").retry_after

    assert seconds is not None and 0 < seconds <= 3600


def test_the_time_to_wait_is_part_of_the_advice(exchange: Exchange) -> None:
    assert "wait 7 seconds and try again" in str(failure_of_reply(exchange, 429, {"retry-after": "7"}, b""))
    assert "wait a little and try again" in str(failure_of_reply(exchange, 429, {}, b""))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "Overloaded", "type": "overloaded_error"}, Overloaded),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, Overloaded),
        ({"message": "bad gateway", "code": 502}, Overloaded),
        ({"message": "x", "code": 429}, Overloaded),
        ({"message": "x", "type": "server_error"}, Overloaded),
        ({"message": "no such model", "code": 404}, RequestRefused),
        (
            {"message": "failed to generate, temperature 5000", "type": "invalid_request_error"},
            RequestRefused,
        ),
        ({"message": "x", "code": 401}, KeyRefused),
        ({"message": "x", "type": "authentication_error"}, KeyRefused),
        ({"message": "maximum context length is 8192"}, ContextTooLong),
        ({"message": "x", "code": "insufficient_quota"}, LimitReached),
        ("something", RequestRefused),
        (7, RequestRefused),
    ],
)
def test_which_failure_an_error_inside_a_reply_means(
    exchange: Exchange, error: object, expected: type[ProviderFailure]
) -> None:
    failure = failure_in_reply(exchange, error)

    assert type(failure) is expected
    assert "api.acme.test broke its reply off with" in str(failure)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.acme.test/v1", "api.acme.test"),
        ("http://127.0.0.1:11434/v1", "127.0.0.1:11434"),
        ("https://user:word@api.acme.test/v1", "api.acme.test"),
        ("localhost", "localhost"),
    ],
)
def test_the_host_is_named_without_what_is_secret_in_the_address(url: str, host: str) -> None:
    assert Exchange("acme", "call_api", url, ApiKey("", "nowhere")).host == host


def test_an_error_says_where_a_reply_sends_us_without_what_may_be_secret_there(exchange: Exchange) -> None:
    headers = {"LOCATION": "https://sign-in.test/start?token=abc"}

    assert "answered 302 and sends us to 'https://sign-in.test/start'; open" in str(
        failure_of_reply(exchange, 302, headers, b"")
    )
    assert "sends us" not in str(failure_of_reply(exchange, 500, headers, b""))
    assert "sends us" not in str(failure_of_reply(exchange, 302, {}, b""))
