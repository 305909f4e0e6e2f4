"""What provider plugins share: transport, event streams, failures, usage, keys, redaction."""

from agent_provider_kit.endings import Ending
from agent_provider_kit.failures import (
    ContextTooLong,
    Exchange,
    KeyMissing,
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
from agent_provider_kit.http_provider import COMMON_SETTINGS, HttpProvider, Reply
from agent_provider_kit.keys import ApiKey, find_key
from agent_provider_kit.redaction import redact, redact_headers
from agent_provider_kit.sse import SseDecoder, SseError, SseEvent
from agent_provider_kit.transport import HttpRequest, HttpResponse, Timeouts, Transport, default_transport
from agent_provider_kit.usage import Usage, make_usage

__all__ = [
    "COMMON_SETTINGS",
    "ApiKey",
    "ContextTooLong",
    "Ending",
    "Exchange",
    "HttpProvider",
    "HttpRequest",
    "HttpResponse",
    "KeyMissing",
    "KeyRefused",
    "LimitReached",
    "NotTheProvider",
    "Overloaded",
    "ProviderFailure",
    "Reply",
    "RequestRefused",
    "SseDecoder",
    "SseError",
    "SseEvent",
    "StreamCutOff",
    "StreamMalformed",
    "Timeouts",
    "Transport",
    "Unreachable",
    "Usage",
    "default_transport",
    "failure_in_reply",
    "failure_of_reply",
    "find_key",
    "make_usage",
    "redact",
    "redact_headers",
]
