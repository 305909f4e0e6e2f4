"""What of a result fits a budget, and what is left out. Nothing is kept or read here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_runtime.context.tokens import TokenCounter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COUNTER = TokenCounter()
_MEDIA_SHARE = 0.5
_HEAD_SHARE = 0.7
_LINE = 200  # how far a cut moves to fall between two lines


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a result: all its text, and its parts that are none, such as images."""

    text: str
    media: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, text: str, parts: Sequence[Mapping[str, Any]]) -> Content:
        """Return the content of a result that consists of these parts, or of the text alone."""
        return cls(text, tuple(part for part in parts if part.get("type") != "text"))

    @property
    def tokens(self) -> int:
        """About how many tokens a model reads in it."""
        return _COUNTER.text(self.text) + len(self.media) * _COUNTER.media_tokens


@dataclass(frozen=True, slots=True)
class Cut:
    """A content that was too large.

    Attributes:
        head: The beginning of the text.
        tail: The end of the text; empty if all of the text fits.
        left_out: How many characters stand between the two.
        media: The parts that fit.
        media_left_out: Those that do not.
    """

    head: str
    tail: str
    left_out: int
    media: tuple[Mapping[str, Any], ...]
    media_left_out: tuple[Mapping[str, Any], ...]


def cut(content: Content, budget: int) -> Cut:
    """Return as much of a content as *budget* tokens hold: some media first, then text from both ends."""
    room = max(budget - _COUNTER.text(content.text), int(budget * _MEDIA_SHARE))
    fitting = room // _COUNTER.media_tokens
    media = content.media[:fitting]
    head, tail = _ends(content.text, budget - len(media) * _COUNTER.media_tokens)
    left_out = len(content.text) - len(head) - len(tail)
    return Cut(head, tail, left_out, media, content.media[fitting:])


def _ends(text: str, tokens: int) -> tuple[str, str]:
    """Return the beginning and the end of a text that together have about so many tokens."""
    needed = _COUNTER.text(text)
    if needed <= tokens:
        return text, ""
    kept = int(len(text) * tokens / needed)
    head = _before_line_end(text[: int(kept * _HEAD_SHARE)])
    tail = text[len(text) - (kept - int(kept * _HEAD_SHARE)) :]
    return head, _after_line_end(tail)


def _before_line_end(text: str) -> str:
    place = text.rfind("\n", max(0, len(text) - _LINE))
    return text if place < 0 else text[: place + 1]


def _after_line_end(text: str) -> str:
    place = text.find("\n", 0, _LINE)
    return text if place < 0 else text[place + 1 :]
