"""Azure OpenAI: the API of OpenAI at an address of one's own, with a key in another header."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_core import ConfigError
from agent_provider_kit.clouds.cloud import Cloud

if TYPE_CHECKING:
    from agent_provider_kit.keys import ApiKey
    from agent_provider_kit.wire import Config, JsonObject

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
