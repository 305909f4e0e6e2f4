"""The provider for Chat Completions and the servers that imitate it."""

from openai_compatible_provider.provider import OpenAICompatibleProvider

__all__ = ["OpenAICompatibleProvider"]
