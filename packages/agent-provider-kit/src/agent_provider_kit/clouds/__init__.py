"""Clouds that offer the models of others: where they are, and how they want to know who asks.

A provider names its clouds in `HttpProvider.clouds`; the setting `cloud` chooses one. Tokens and signatures
come from the clouds' own libraries, which are imported at the first request that needs one.
"""

from agent_provider_kit.clouds.bedrock import BEDROCK_SETTINGS, Bedrock
from agent_provider_kit.clouds.cloud import AZURE_SETTINGS, Azure, Cloud, EventDecoder
from agent_provider_kit.clouds.vertex import VERTEX_SETTINGS, Vertex

__all__ = [
    "AZURE_SETTINGS",
    "BEDROCK_SETTINGS",
    "VERTEX_SETTINGS",
    "Azure",
    "Bedrock",
    "Cloud",
    "EventDecoder",
    "Vertex",
]
