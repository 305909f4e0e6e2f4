"""What provider plugins share: transport, event streams, failures, usage, keys, redaction."""

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
from agent_provider_kit.keys import ApiKey, find_key, redact, redact_headers
from agent_provider_kit.sse import SseDecoder, SseError, SseEvent
from agent_provider_kit.transport import HttpRequest, HttpResponse, Timeouts, Transport, default_transport
from agent_provider_kit.wire import Config, Dicts, Ending, JsonObject, State, Usage, decode_object, make_usage

__all__ = [
    "COMMON_SETTINGS",
    "ApiKey",
    "Config",
    "ContextTooLong",
    "Dicts",
    "Ending",
    "Exchange",
    "HttpProvider",
    "HttpRequest",
    "HttpResponse",
    "JsonObject",
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
    "State",
    "StreamCutOff",
    "StreamMalformed",
    "Timeouts",
    "Transport",
    "Unreachable",
    "Usage",
    "decode_object",
    "default_transport",
    "failure_in_reply",
    "failure_of_reply",
    "find_key",
    "make_usage",
    "redact",
    "redact_headers",
]
