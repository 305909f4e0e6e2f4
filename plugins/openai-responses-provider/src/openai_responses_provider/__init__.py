"""The provider for OpenAI's Responses API and the servers that imitate it."""

from openai_responses_provider.provider import OpenAIResponsesProvider

__all__ = ["OpenAIResponsesProvider"]
