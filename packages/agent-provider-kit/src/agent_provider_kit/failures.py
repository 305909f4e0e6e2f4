"""What can go wrong between us and a provider: one class per way to react to it.

::

    ProviderError                  of agent_core
    └── ProviderFailure            has status, request id, key origin, next step
        ├── Unreachable            no connection: try again soon            retry
        ├── Overloaded             408 409 429 5xx 529: try again later     retry, honours Retry-After
        ├── StreamCutOff           the stream ended without saying how      retry, the partial is kept
        ├── StreamMalformed        it said something that is not an event   retry, the partial is kept
        ├── KeyRefused             401 403                                  no retry
        │   └── KeyMissing         there is no key: nothing was sent        no retry
        ├── LimitReached           402, spend limit, quota                  no retry
        ├── ContextTooLong         the conversation does not fit            compact, then once more
        ├── RequestRefused         any other 4xx: ours or a plugin's fault  no retry
        └── NotTheProvider         a portal, a proxy or another server      no retry
"""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from agent_core import ProviderError
from agent_provider_kit.keys import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit.keys import ApiKey

_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_LONGEST_QUOTE = 2000


class Exchange(NamedTuple):
    """With whom we were talking, for error messages."""

    plugin: str
    hook: str
    url: str
    key: ApiKey
    other_secrets: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """The host, and the port where it is not the usual one."""
        return urlsplit(self.url).netloc.rpartition("@")[2] or self.url

    def redact(self, text: str) -> str:
        """Return *text* with everything masked that is secret in this exchange."""
        return redact(text, [self.key.value, *self.other_secrets])


class ProviderFailure(ProviderError):
    """A provider could not answer.

    Attributes:
        category: One word for the class, which a retry policy looks at.
        retryable: Whether the same request may succeed later.
        status: The HTTP status, if there was a reply.
        provider_message: What the provider said, secrets masked.
        request_id: The provider's id of the request, for its support.
        key_origin: Where the key that was used came from; never the key.
        retry_after: After how many seconds the provider wants to be asked again.
        next_step: What a person can do about it.
    """

    category = "unknown"
    retryable = False
    advice = "look at the provider's message"

    def __init__(
        self,
        exchange: Exchange,
        problem: str,
        *,
        status: int | None = None,
        provider_message: str = "",
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.provider_message = exchange.redact(provider_message)[:_LONGEST_QUOTE]
        self.request_id = request_id
        self.key_origin = exchange.key.origin
        self.retry_after = retry_after
        self.next_step = self._advise(exchange)
        super().__init__(exchange.plugin, exchange.hook, self._sentence(exchange, problem))

    def __str__(self) -> str:
        # Whom it is about is the host, which the sentence names: plugin and hook are fields for programs.
        return self.problem

    def _advise(self, exchange: Exchange) -> str:
        return self.advice.format(host=exchange.host, origin=exchange.key.origin)

    def _sentence(self, exchange: Exchange, problem: str) -> str:
        quote = f": {self.provider_message}" if self.provider_message else ""
        request = f" [request {self.request_id}]" if self.request_id else ""
        return exchange.redact(f"{problem}{quote}{request}; {self.next_step}")


class Unreachable(ProviderFailure):
    """No connection, or it broke before the reply began."""

    category = "transport"
    retryable = True
    advice = "check the network and that {host} is the right address"


class Overloaded(ProviderFailure):
    """The provider has too much to do, or broke; later it may work."""

    category = "transient"
    retryable = True
    advice = "wait a little and try again"

    def _advise(self, exchange: Exchange) -> str:
        if self.retry_after is None:
            return super()._advise(exchange)
        return f"wait {self.retry_after:g} seconds and try again"


class StreamCutOff(ProviderFailure):
    """The stream ended without its end event; what had arrived is in `partial`."""

    category = "stream_broken"
    retryable = True
    advice = "try again; what had arrived is kept"


class StreamMalformed(ProviderFailure):
    """The stream brought something that is not what the provider's documentation says."""

    category = "stream_broken"
    retryable = True
    advice = "try again; if it happens each time, {host} does not speak this protocol"


class KeyRefused(ProviderFailure):
    """The key is missing, wrong, or may not do this."""

    category = "auth"
    advice = "check the API key, which came from {origin}"

    def _advise(self, exchange: Exchange) -> str:
        if exchange.key.value:
            return super()._advise(exchange)
        return f"no API key was sent: {exchange.key.reason or 'give one in the setting api_key'}"


class KeyMissing(KeyRefused):
    """There is no key, and without one there would be no answer; nothing was sent."""

    def __init__(self, exchange: Exchange, variables: tuple[str, ...]) -> None:
        self._variables = variables
        super().__init__(exchange, f"{exchange.host} needs an API key, and there is none")

    def _advise(self, exchange: Exchange) -> str:
        usual = f"set {' or '.join(self._variables)}, or the provider's setting api_key"
        return exchange.key.reason or usual


class LimitReached(ProviderFailure):
    """Money or quota is used up; trying again does not help."""

    category = "limit"
    advice = "check the plan and the billing of the account whose key came from {origin}"


class ContextTooLong(ProviderFailure):
    """The conversation is longer than the model takes."""

    category = "window"
    advice = "shorten or compact the conversation, or take a model with a larger window"


class RequestRefused(ProviderFailure):
    """The provider did not like the request; it would not like it the next time either."""

    category = "rejected"
    advice = "check the model's name and the settings"


class NotTheProvider(ProviderFailure):
    """Something else answered: a login page, a proxy, another server."""

    category = "not_the_provider"
    advice = "open {host} in a browser, a network login or a proxy may be in the way; check base_url"


def failure_of_reply(
    exchange: Exchange, status: int, headers: Mapping[str, str], body: bytes
) -> ProviderFailure:
    """Return the failure that a reply with an error status means."""
    html = _is_html(headers, body)
    message, code = ("", "") if html else read_error(body)
    kind = _kind(status, f"{code} {message}".lower(), html=html)
    return kind(
        exchange,
        f"{exchange.host} answered {status}",
        status=status,
        provider_message=message,
        request_id=request_id(headers),
        retry_after=retry_after(headers),
    )


def failure_in_reply(exchange: Exchange, error: Any) -> ProviderFailure:
    """Return the failure that an error inside a reply means, which began as if all were well."""
    message, code = _message_and_code(error)
    words = f"{code} {message}".lower()
    status = int(code) if code.isdigit() and int(code) in _ERROR_STATUSES else None
    if status is None:
        kind: type[ProviderFailure] = Overloaded if any(x in words for x in _BUSY) else _kind_by_words(words)
    else:
        kind = _kind(status, words, html=False)
    problem = f"{exchange.host} sent an error in the middle of the reply"
    return kind(exchange, problem, status=status, provider_message=message)


def read_error(body: bytes) -> tuple[str, str]:
    """Return the message and the code out of any of the usual error bodies."""
    try:
        parsed: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace").strip(), ""
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    return _message_and_code(parsed.get("error", parsed) if isinstance(parsed, dict) else parsed)


def _message_and_code(error: Any) -> tuple[str, str]:
    if not isinstance(error, dict):
        return "" if error is None else str(error), ""
    code = error.get("code") or error.get("type") or error.get("status") or ""
    message = str(error.get("message") or error.get("detail") or error)
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):  # a router quotes the server behind it
        message += f" ({metadata['raw']})"
    return message, str(code)


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request, whatever it calls it."""
    lowered = {name.lower(): value for name, value in headers.items()}
    names = ("x-request-id", "request-id", "x-goog-request-id", "cf-ray")
    return next((lowered[name] for name in names if name in lowered), None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return after how many seconds to try again, if a header says so."""
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(lowered[name]) * scale
        except (KeyError, ValueError):
            continue
        return max(0.0, seconds) if isfinite(seconds) else None
    return _until(lowered.get("retry-after"))


def _until(date: str | None) -> float | None:
    if date is None:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _kind(status: int, words: str, *, html: bool) -> type[ProviderFailure]:
    """Decide by the status, and by the words where providers use one status for many things."""
    busy = status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if status in _ELSEWHERE or (html and not busy):  # gateways say that they are busy with a web page
        return NotTheProvider
    if status in _REFUSED_KEYS:
        return KeyRefused
    if status == HTTPStatus.PAYMENT_REQUIRED:
        return LimitReached
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ContextTooLong
    kind = _kind_by_words(words)
    return Overloaded if busy and kind in (RequestRefused, KeyRefused) else kind


def _kind_by_words(words: str) -> type[ProviderFailure]:
    found = (kind for kind, signs in _SIGNS if any(sign in words for sign in signs))
    return next(found, RequestRefused)


_ERROR_STATUSES = range(400, 600)
_ELSEWHERE = frozenset({301, 302, 303, 307, 308, 407, 511})
_REFUSED_KEYS = frozenset({401, 403})
_BUSY = (
    "overloaded",
    "rate_limit",
    "rate limit",
    "server_error",
    "internal_error",
    "api_error",
    "unavailable",
    "timeout",
    "timed out",
)
_SIGNS: tuple[tuple[type[ProviderFailure], tuple[str, ...]], ...] = (
    (LimitReached, ("insufficient_quota", "billing", "credit balance", "spend limit")),
    (
        ContextTooLong,
        (
            "context_length_exceeded",
            "maximum context length",
            "context window",
            "prompt is too long",
            "input token count",
            "exceeds the available context size",
            "exceed_context_size",
        ),
    ),
    (KeyRefused, ("invalid_api_key", "authentication_error", "permission_error", "api key not valid")),
)


def looks_like_html(body: bytes) -> bool:
    """Say whether a body is a web page."""
    return body[:200].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _is_html(headers: Mapping[str, str], body: bytes) -> bool:
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    return "html" in kind.lower() or looks_like_html(body)
