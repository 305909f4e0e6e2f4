"""The provider for the Messages API."""

from anthropic_provider.provider import AnthropicProvider

__all__ = ["AnthropicProvider"]
