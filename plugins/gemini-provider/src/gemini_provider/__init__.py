"""A provider for the Gemini API."""

from gemini_provider.failures import PromptBlocked
from gemini_provider.provider import GeminiProvider

__all__ = ["GeminiProvider", "PromptBlocked"]
