"""What a provider over HTTP needs to know about a cloud; Azure, which differs least, is here as well."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from agent_core import ConfigError
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


AZURE_SETTINGS: dict[str, JsonObject] = {
    "cloud": {"type": "string", "enum": ["azure"], "description": "Who runs the model, if not the provider."},
    "api_version": {
        "type": "string",
        "description": "Azure's api-version; not needed at addresses that end in /openai/v1.",
    },
}


class Azure(Cloud):
    """Azure OpenAI and Azure AI Foundry.

    `base_url` is the resource (``https://NAME.openai.azure.com``), which is asked by its current API, or a
    deployment of the older one (``https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT``).
    """

    key_variables = ("AZURE_OPENAI_API_KEY",)
    needs_key = True
    lists_models = True

    def base_url(self, config: Config) -> str:
        """Return the address that the environment has."""
        endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip()
        if not endpoint:
            raise ConfigError(
                "cloud 'azure' needs the address of your resource: set base_url, or AZURE_OPENAI_ENDPOINT "
                "(https://NAME.openai.azure.com)",
                field="base_url",
            )
        return endpoint

    def address(self, base_url: str) -> str:
        """Return where a resource has its API."""
        return base_url if "/openai" in base_url else f"{base_url}/openai/v1"

    def query(self, config: Config) -> JsonObject:
        """Return the version of the API."""
        version = config.get("api_version") or os.environ.get("OPENAI_API_VERSION")
        return {"api-version": version} if version else {}

    def auth_headers(self, key: ApiKey) -> dict[str, str]:
        """Return the key under Azure's name for it."""
        return {"api-key": key.value}
