"""Replies that say no: which failure a status, a body and headers stand for, and how long to wait."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from agent_provider_kit.failures import (
    ContextTooLong,
    KeyRefused,
    LimitReached,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    RequestRefused,
)
from agent_provider_kit.wordings import meaning_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit.failures import Exchange

_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_ERROR_STATUSES = range(400, 600)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ELSEWHERE = _REDIRECTS | {407, 511}
_LONGEST_PLACE = 200
_REFUSED_KEYS = frozenset({401, 403})


class ErrorBody(NamedTuple):
    """What an error says, in whichever of the usual forms it came.

    Attributes:
        message: For people.
        code: For programs, or "".
        headers: What came in the body in place of headers, those of a server behind a router for example.
    """

    message: str
    code: str = ""
    headers: Mapping[str, str] = {}

    @property
    def words(self) -> str:
        """Code and message together."""
        return f"{self.code} {self.message}"


def failure_of_reply(
    exchange: Exchange, status: int, headers: Mapping[str, str], body: bytes
) -> ProviderFailure:
    """Return the failure that a reply with an error status means."""
    html = _is_html(headers, body)
    error = ErrorBody("") if html else read_error(body)
    code = _lowered(headers).get("x-amzn-errortype", "")
    return _kind(status, f"{code} {error.words}", html=html)(
        exchange,
        f"{exchange.host} answered {status}{_sent_on(status, headers)}",
        status=status,
        provider_message=error.message,
        request_id=request_id(headers),
        retry_after=retry_after(
            {**error.headers, **headers}, error.message, limited=status == HTTPStatus.TOO_MANY_REQUESTS
        ),
    )


def _sent_on(status: int, headers: Mapping[str, str]) -> str:
    """Say where a reply sends us. We do not go there: the key is for the host that was configured."""
    place = _lowered(headers).get("location", "") if status in _REDIRECTS else ""
    return f" and sends us to {place.partition('?')[0][:_LONGEST_PLACE]!r}" if place else ""


def failure_in_reply(exchange: Exchange, error: Any, *, request_id: str | None = None) -> ProviderFailure:
    """Return the failure that an error inside a reply means, which began as if all were well."""
    found = _error(error)
    status = int(found.code) if found.code.isdigit() and int(found.code) in _ERROR_STATUSES else None
    if status is None:
        kind = meaning_of(found.words) or RequestRefused
    else:
        kind = _kind(status, found.words, html=False)
    return kind(
        exchange,
        f"{exchange.host} broke its reply off with {found.code or 'an error'}",
        status=status,
        provider_message=found.message,
        request_id=request_id,
        retry_after=retry_after(found.headers, found.message, limited=kind is Overloaded),
    )


def read_error(body: bytes) -> ErrorBody:
    """Return the error out of any of the usual bodies."""
    try:
        parsed: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ErrorBody(body.decode("utf-8", "replace").strip())
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    return _error(parsed.get("error", parsed) if isinstance(parsed, dict) else parsed)


def _error(error: Any) -> ErrorBody:
    if not isinstance(error, dict):
        return ErrorBody("" if error is None else str(error))
    code = error.get("code") or error.get("type") or error.get("__type") or error.get("status") or ""
    message = str(error.get("message") or error.get("Message") or error.get("detail") or error)
    metadata = error.get("metadata")
    if not isinstance(metadata, dict):
        return ErrorBody(message, str(code), _retry_info(error.get("details")))
    if metadata.get("raw"):  # a router quotes the server behind it
        message += f" ({metadata['raw']})"
    headers = metadata.get("headers")
    return ErrorBody(message, str(code), headers if isinstance(headers, dict) else {})


def _retry_info(details: Any) -> dict[str, str]:
    """Return as a header when to try again, which Google says in the details of an error."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (seconds := _seconds(delay)) is not None:
            return {"retry-after": str(seconds)}
    return {}


def _kind(status: int, words: str, *, html: bool) -> type[ProviderFailure]:
    """Decide by the status, and by the words where providers use one status for many things."""
    busy = status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ContextTooLong  # gateways say so with a web page
    if status in _ELSEWHERE or (html and not busy):  # gateways say that they are busy with a web page
        return NotTheProvider
    if status == HTTPStatus.PAYMENT_REQUIRED:
        return LimitReached
    meaning = meaning_of(words)
    if meaning in (ContextTooLong, LimitReached):
        return meaning
    if status in _REFUSED_KEYS or (meaning is KeyRefused and not busy):
        return KeyRefused
    return Overloaded if busy else RequestRefused


# What headers say.

_IDS = (
    "x-request-id", "request-id", "x-goog-request-id", "x-amzn-requestid", "apim-request-id",
    "x-ms-request-id", "cf-ray",
)  # fmt: skip
_RATE_LIMIT = re.compile(r"^(?:x-|anthropic-)?ratelimit-|^x-ms-ratelimit-|^retry-after")


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request, whatever it calls it."""
    return known_as_and_limits(headers)[0]


def known_as_and_limits(headers: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    """Return the provider's id of a request, and the headers that say how much is left of a limit.

    The names of the latter are in lower case.
    """
    lowered = _lowered(headers)
    known_as = next((lowered[name] for name in _IDS if name in lowered), None)
    return known_as, {name: value for name, value in lowered.items() if _RATE_LIMIT.match(name)}


def retry_after(headers: Mapping[str, str], message: str = "", *, limited: bool = False) -> float | None:
    """Return after how many seconds to try again, if a header or the message says so.

    `Retry-After` counts most. Next come the words of the message ("try again in 11s"), which are about this
    very request, and last the headers that say when a limit is reset.

    Args:
        headers: Of the reply.
        message: The provider's words.
        limited: Whether it is about a rate limit; the headers about limits also come with other errors.
    """
    lowered = _lowered(headers)
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(lowered[name]) * scale
        except (KeyError, ValueError):
            continue
        return max(0.0, seconds) if isfinite(seconds) else None
    asked = _until(lowered.get("retry-after"))
    if asked is None:
        asked = _in_words(message)
    return _reset(lowered) if asked is None and limited else asked


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in headers.items()}


def _until(date: str | None) -> float | None:
    if date is None:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


_UNITS = {
    "ms": 0.001, "millisecond": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0,
    "minute": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86_400.0, "day": 86_400.0,
}  # fmt: skip
_SPAN = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})s?(?![a-z])")
_ASKS = re.compile(
    r"(?:try again|retry|wait)(?: your request)?(?: after| in| for|:)?\s+((?:[\d.]+\s*[a-z]+\s*){1,4})"
)
_MILLISECONDS = 10_000_000_000  # a moment that is later than this in seconds is in milliseconds
_A_MOMENT = 1_000_000_000
_REQUESTS_OR_TOKENS = re.compile(r"^(?:x-|anthropic-)?ratelimit-(?:reset(?:-[a-z-]+)?|[a-z-]+-reset)$")


def _in_words(message: str) -> float | None:
    """Read "try again in 11s", "retry in 1m30.5s", "wait 20 seconds"."""
    found = _ASKS.search(message.lower())
    return None if found is None else _seconds(found[1])


def _seconds(span: str) -> float | None:
    """Return a span of time such as "1h2m3.5s" in seconds."""
    parts = _SPAN.findall(span)
    if not parts:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _reset(lowered: Mapping[str, str]) -> float | None:
    """Return when the limit is reset that is used up; if none says so, when the last one is."""
    waits = {name: _moment(value) for name, value in lowered.items() if _REQUESTS_OR_TOKENS.match(name)}
    known = {name: wait for name, wait in waits.items() if wait is not None}
    used_up = [wait for name, wait in known.items() if lowered.get(name.replace("reset", "remaining")) == "0"]
    return max(used_up or known.values(), default=None)


def _moment(value: str) -> float | None:
    """Return how many seconds it is to a moment: a date, seconds or milliseconds since 1970, or a span."""
    try:
        number = float(value)
    except ValueError:
        span = _seconds(value.lower())
        return _until_iso(value) if span is None or ":" in value else span
    if not isfinite(number):
        return None
    if number > _MILLISECONDS:
        number /= 1000
    return max(0.0, number - time.time() if number > _A_MOMENT else number)


def _until_iso(value: str) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def looks_like_html(body: bytes) -> bool:
    """Say whether a body is a web page."""
    return body[:200].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _is_html(headers: Mapping[str, str], body: bytes) -> bool:
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    return "html" in kind.lower() or looks_like_html(body)
