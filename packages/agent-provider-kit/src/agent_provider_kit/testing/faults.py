"""Everything that goes wrong on the way, by name, with the failure that it has to become."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_provider_kit.failures import (
    KeyRefused,
    LimitReached,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    StreamCutOff,
    StreamMalformed,
    Unreachable,
)
from agent_provider_kit.testing.replies import ServerReply, captive_portal, error_reply, redirect

if TYPE_CHECKING:
    from collections.abc import Callable


class Fault(NamedTuple):
    """One thing that goes wrong.

    Attributes:
        apply: Returns the reply with the fault in it.
        failure: What a provider has to raise.
        streams_only: Whether an answer in one piece cannot have it.
    """

    apply: Callable[[ServerReply], ServerReply]
    failure: type[ProviderFailure]
    streams_only: bool = False


def _status(status: int, code: str, retry_after: float | None = None) -> Callable[[ServerReply], ServerReply]:
    return lambda _reply: error_reply(status, f"this is a {status}", code=code, retry_after=retry_after)


FAULTS: dict[str, Fault] = {
    "reset before the reply": Fault(ServerReply.refuse, Unreachable),
    "cut in the middle": Fault(ServerReply.cut, StreamCutOff),
    "reset in the middle": Fault(ServerReply.reset, StreamCutOff),
    "ended in the middle": Fault(ServerReply.end, StreamCutOff, streams_only=True),
    "no end event": Fault(ServerReply.without_end, StreamCutOff, streams_only=True),
    "nothing at all": Fault(lambda _reply: ServerReply(stream=b""), StreamCutOff, streams_only=True),
    "half a JSON object": Fault(ServerReply.garbled, StreamMalformed),
    "401": Fault(_status(401, "invalid_api_key"), KeyRefused),
    "402": Fault(_status(402, "insufficient_quota"), LimitReached),
    "429": Fault(_status(429, "rate_limit_exceeded"), Overloaded),
    "429 with Retry-After": Fault(_status(429, "rate_limit_exceeded", 7.0), Overloaded),
    "500": Fault(_status(500, "server_error"), Overloaded),
    "502": Fault(_status(502, "bad_gateway"), Overloaded),
    "503": Fault(_status(503, "unavailable"), Overloaded),
    "504": Fault(_status(504, "timeout"), Overloaded),
    "529": Fault(_status(529, "overloaded_error"), Overloaded),
    "captive portal": Fault(lambda _reply: captive_portal(), NotTheProvider),
    "redirect": Fault(lambda _reply: redirect(), NotTheProvider),
}
"""Faults after which a request must not succeed. A stall is not among them: it ends when time or
patience does."""
