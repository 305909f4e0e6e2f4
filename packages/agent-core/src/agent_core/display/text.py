"""Text that is safe to put on a screen: no controls, no hidden direction marks, of bounded size."""

from __future__ import annotations

import re

# Controls but newline and tab; marks, embeddings, overrides and isolates of direction, with the
# deprecated ones (Unicode TR9 and TR36: text that reads other than it is stored); and halves of
# surrogate pairs, which no front end can encode.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ud800-\udfff]")


def clean(text: str) -> str:
    """Return *text* without control characters and invisible direction marks."""
    return _UNSEEN.sub("", text)


def size(text: str) -> int:
    """Return how many bytes *text* takes as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of *text* that takes at most *limit* bytes."""
    return text[:limit].encode()[:limit].decode(errors="ignore")
