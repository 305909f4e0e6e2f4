"""Prompt cache keys for sessions."""

from prompt_cache_extension.extension import PromptCacheExtension

__all__ = ["PromptCacheExtension"]
