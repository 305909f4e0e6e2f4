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
        │       └── LoginMissing   the key is a login, and nobody did it    no retry
        ├── LimitReached           402, spend limit, quota                  no retry
        ├── ContextTooLong         the conversation does not fit            compact, then once more
        ├── RequestRefused         any other 4xx: ours or a plugin's fault  no retry
        └── NotTheProvider         a portal, a proxy or another server      no retry
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from agent_core import ProviderError
from agent_provider_kit.keys import redact, secrets_in

if TYPE_CHECKING:
    from agent_provider_kit.keys import ApiKey
    from agent_provider_kit.wire import Config

_LONGEST_ID = 200
_LONGEST_QUOTE = 2000


class Exchange(NamedTuple):
    """With whom we were talking, for error messages.

    Attributes:
        other_secrets: What must not be shown, besides the key and what the settings hide.
        config: The request's settings, which are looked through for secrets only if something is shown.
    """

    plugin: str
    hook: str
    url: str
    key: ApiKey
    other_secrets: tuple[str, ...] = ()
    config: Config | None = None

    def __repr__(self) -> str:
        return f"Exchange({self.plugin} at {self.host}, {self.hook}, {self.key!r})"

    @property
    def host(self) -> str:
        """The host, and the port where it is not the usual one."""
        return urlsplit(self.url).netloc.rpartition("@")[2] or self.url

    @property
    def server(self) -> str:
        """The host alone: two ports of one machine count as one server."""
        return _host_name(self.url) or self.host

    def redact(self, text: str) -> str:
        """Return *text* with everything masked that is secret in this exchange."""
        return redact(text, [self.key.value, *self.other_secrets, *secrets_in(self.config or {})])


@lru_cache(maxsize=64)
def _host_name(url: str) -> str | None:
    return urlsplit(url).hostname


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
        response_id: The provider's id of an answer that it may still be working on.
    """

    category = "unknown"
    retryable = False
    advice = "look at the provider's message"
    response_id: str | None = None

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
        # A server may send the key back in any header, and this goes into logs, events and exports.
        self.request_id = None if request_id is None else exchange.redact(request_id)[:_LONGEST_ID]
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
        said = self.provider_message.rstrip(".")  # more follows in the same sentence
        quote = f": {said}" if said else ""
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


class ReplyTooLarge(ProviderFailure):
    """The reply is larger than any answer is, so it was not read to its end."""

    category = "reply_too_large"
    advice = "look at what {host} sends; no model answers with so much"


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

    missing = "an API key, and there is none"

    def __init__(self, exchange: Exchange, variables: tuple[str, ...]) -> None:
        self._variables = variables
        super().__init__(exchange, f"{exchange.host} needs {self.missing}")

    def _advise(self, exchange: Exchange) -> str:
        usual = f"set {' or '.join(self._variables)}, or the provider's setting api_key"
        return exchange.key.reason or usual


class LoginMissing(KeyMissing):
    """The setting for the key refers to a login, which has no token now; nothing was sent."""

    missing = "a login"


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
