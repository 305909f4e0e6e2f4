"""Errors in the form of Google's APIs: a status word, a message, and details of several kinds.

The status of the reply alone would mislead: a wrong key comes as 400, and every 429 speaks of billing,
whether a minute's or a day's quota is used up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from agent_provider_kit import (
    ContextTooLong,
    JsonObject,
    KeyRefused,
    LimitReached,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    failure_in_reply,
    failure_of_reply,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import Exchange

Error = JsonObject

_BY_STATUS: dict[str, type[ProviderFailure]] = {
    "UNAUTHENTICATED": KeyRefused,
    "PERMISSION_DENIED": KeyRefused,
    "UNAVAILABLE": Overloaded,
    "INTERNAL": Overloaded,
    "DEADLINE_EXCEEDED": Overloaded,
    "ABORTED": Overloaded,
    "CANCELLED": Overloaded,
}
_ABOUT_THE_KEY = ("api_key_", "api key")


class PromptBlocked(RequestRefused):
    """The provider did not let the question through to the model."""

    category = "refusal"
    advice = "say it differently, take the message back, or change safety_settings"


def failure_of_status(
    exchange: Exchange, status: int, headers: Mapping[str, str], body: bytes
) -> ProviderFailure:
    """Return the failure that a reply with an error status means."""
    general = failure_of_reply(exchange, status, headers, body)
    error = read_error(body)
    if error is None or isinstance(general, NotTheProvider):
        return general
    general.status = status
    return _failure(exchange, f"{exchange.host} answered {status} {error['status']}", error, general)


def failure_in_stream(exchange: Exchange, error: Any) -> ProviderFailure:
    """Return the failure that an error in the middle of a stream means."""
    general = failure_in_reply(exchange, error)
    if not _is_googles(error):
        return general
    problem = f"{exchange.host} broke its reply off with {error['status']}"
    return _failure(exchange, problem, error, general)


def prompt_blocked(exchange: Exchange, feedback: JsonObject) -> PromptBlocked:
    """Return the failure that the feedback to a blocked prompt means."""
    return PromptBlocked(
        exchange,
        f"{exchange.host} blocked the prompt ({feedback['blockReason']})",
        provider_message=str(feedback.get("blockReasonMessage") or ""),
    )


def read_error(body: bytes) -> Error | None:
    """Return the error in a body, alone or in a list; None if it is not of Google's form."""
    try:
        parsed: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    error = parsed.get("error") if isinstance(parsed, dict) else None
    return error if _is_googles(error) else None


def _is_googles(error: Any) -> bool:
    return isinstance(error, dict) and isinstance(error.get("status"), str)


def _failure(exchange: Exchange, problem: str, error: Error, general: ProviderFailure) -> ProviderFailure:
    wait = general.retry_after
    return _kind(error, type(general))(
        exchange,
        problem,
        status=general.status,
        provider_message=str(error.get("message") or ""),
        request_id=general.request_id or _detail(error, "RequestInfo").get("requestId"),
        retry_after=_retry_delay(error) if wait is None else wait,
    )


def _kind(error: Error, general: type[ProviderFailure]) -> type[ProviderFailure]:
    status, message = error["status"], str(error.get("message")).lower()
    reason = str(_detail(error, "ErrorInfo").get("reason")).lower()
    if any(sign in f"{reason} {message}" for sign in _ABOUT_THE_KEY) and status == "INVALID_ARGUMENT":
        return KeyRefused
    if status == "RESOURCE_EXHAUSTED" and general not in (LimitReached, ContextTooLong):
        return LimitReached if _is_used_up(error) else Overloaded
    return _BY_STATUS.get(status, general)


def _is_used_up(error: Error) -> bool:
    """Whether waiting a minute does not help: the day's quota is gone, or there is none."""
    violations = _detail(error, "QuotaFailure").get("violations")
    quotas = [each for each in violations if isinstance(each, dict)] if isinstance(violations, list) else []
    return any("PerDay" in str(quota.get("quotaId")) or quota.get("quotaValue") == "0" for quota in quotas)


def _retry_delay(error: Error) -> float | None:
    delay = _detail(error, "RetryInfo").get("retryDelay")
    try:
        return max(0.0, float(str(delay).removesuffix("s")))
    except ValueError:
        return None


def _detail(error: Error, kind: str) -> JsonObject:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and str(detail.get("@type")).endswith(f".{kind}"):
            return detail
    return {}
