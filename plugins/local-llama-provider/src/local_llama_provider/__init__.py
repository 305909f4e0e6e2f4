"""The provider that needs no key: a model in this process."""

from local_llama_provider.provider import LocalLlamaProvider

__all__ = ["LocalLlamaProvider"]
