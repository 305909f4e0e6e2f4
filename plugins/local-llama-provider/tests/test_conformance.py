"""The embedded model passes the checks for every provider, with its real answers."""

from __future__ import annotations

from agent_testing.conformance import Exchange, ProviderConformance
from local_llama_provider import LocalLlamaProvider


class TestLocalLlama(ProviderConformance):
    plugin = LocalLlamaProvider

    def exchange(self) -> Exchange:
        # Without its cache of earlier prompts the engine gives the same answer each time.
        return Exchange(config={"max_tokens": 4, "cache_prompt": False})
