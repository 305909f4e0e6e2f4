"""Text of a display: cleaned for a screen, and of bounded size."""

from __future__ import annotations

from agent_core.clean_text import clean, reveal

__all__ = ["clean", "cut", "reveal", "size"]


def size(text: str) -> int:
    """Return how many bytes *text* takes as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of *text* that takes at most *limit* bytes."""
    return text[:limit].encode()[:limit].decode(errors="ignore")
