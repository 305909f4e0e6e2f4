"""What provider plugins share: transport, event streams, failures, usage, keys, redaction."""

from agent_provider_kit.error_replies import failure_in_reply, failure_of_reply
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
)
from agent_provider_kit.http_provider import HttpProvider, Reply
from agent_provider_kit.keys import ApiKey, find_key, redact
from agent_provider_kit.memory import encoded, known_good, remember_good
from agent_provider_kit.settings import (
    ANSWER_SETTINGS,
    COMMON_SETTINGS,
    OutputSchema,
    ToolChoice,
    read_effort,
    read_output_schema,
    read_tool_choice,
    subschemas,
)
from agent_provider_kit.sse import SseDecoder, SseError, SseEvent
from agent_provider_kit.transport import HttpRequest, HttpResponse, Timeouts, Transport, default_transport
from agent_provider_kit.wire import Config, Dicts, Ending, JsonObject, State, Usage, decode_object, make_usage

__all__ = [
    "ANSWER_SETTINGS",
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
    "OutputSchema",
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
    "ToolChoice",
    "Transport",
    "Unreachable",
    "Usage",
    "decode_object",
    "default_transport",
    "encoded",
    "failure_in_reply",
    "failure_of_reply",
    "find_key",
    "known_good",
    "make_usage",
    "read_effort",
    "read_output_schema",
    "read_tool_choice",
    "redact",
    "remember_good",
    "subschemas",
]
