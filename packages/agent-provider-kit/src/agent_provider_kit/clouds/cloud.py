"""What a provider over HTTP needs to know about a cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agent_provider_kit.sse import SseDecoder

if TYPE_CHECKING:
    from agent_provider_kit.failures import Exchange
    from agent_provider_kit.keys import ApiKey
    from agent_provider_kit.sse import SseEvent
    from agent_provider_kit.transport import HttpRequest
    from agent_provider_kit.wire import Config, JsonObject


class EventDecoder(Protocol):
    """Turns the pieces of a stream into events."""

    @property
    def stray(self) -> bytes:
        """The whole body, if the server sent no events at all."""
        ...

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the events that are complete with *piece*.

        Raises:
            SseError: If the stream cannot be read.
        """
        ...

    def finish(self) -> list[SseEvent]:
        """Return what is left when the stream has ended."""
        ...


class Cloud:
    """A cloud that takes a key in a header and sends usual event streams.

    Attributes:
        key_variables: Environment variables that may hold a key.
        needs_key: Whether it cannot be asked without one.
        lists_models: Whether it can be asked for its models as the provider itself can.
    """

    key_variables: tuple[str, ...] = ()
    needs_key = False
    lists_models = False

    def base_url(self, config: Config) -> str:
        """Return where the cloud is.

        Raises:
            ConfigError: If the settings do not say where.
        """
        raise NotImplementedError

    def address(self, base_url: str) -> str:
        """Return the address below which the API is."""
        return base_url

    def query(self, config: Config) -> JsonObject:
        """Return parameters of every address."""
        return {}

    def auth_headers(self, key: ApiKey) -> dict[str, str]:
        """Return the headers that carry a key."""
        return {"Authorization": f"Bearer {key.value}"}

    def decoder(self) -> EventDecoder:
        """Return what reads an event stream."""
        return SseDecoder()

    async def authorize(
        self, request: HttpRequest, config: Config, exchange: Exchange
    ) -> tuple[HttpRequest, Exchange]:
        """Return the request with what proves who asks, and an exchange that knows what of it is secret.

        Raises:
            KeyRefused: If there is nothing that proves it.
        """
        return request, exchange
