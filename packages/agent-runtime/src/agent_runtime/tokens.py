"""Estimates of how many tokens a prompt has, without knowing any model's vocabulary.

A token of English text or code is about four characters long. Other scripts take more: a character of
Chinese is about a token, and one of Cyrillic about half of one. Both follow from counting three bytes
of UTF-8 to a token for everything beyond ASCII. What remains wrong, for a model and the kind of text
that a session holds, is a factor, and that is learnt: providers say how many tokens they counted.

Nothing is remembered per message. A Python string knows whether it is ASCII and how long it is, so
that most messages cost about a microsecond whatever their length.

What a session has learnt about each model's way of counting is kept in its state, under `CALIBRATION`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical
from agent_runtime.state import StateKey

if TYPE_CHECKING:
    from agent_core import Message, ToolDescriptor
    from agent_runtime.state import State


LEAST_RATIO = 0.25
MOST_RATIO = 4.0

_ASCII_PER_TOKEN = 4
_BYTES_PER_TOKEN = 3
_PER_MESSAGE = 4  # the marks between messages
_PER_TOOL = 8
_WEIGHT = 0.5
_FULL_WEIGHT_AT = 1000
_MEDIA = ("image", "audio", "video", "file", "document")


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Estimates tokens; the sum over messages is the estimate for all of them.

    Attributes:
        ratio: How many tokens the model counts where the plain estimate has one.
        media_tokens: What an image, or another part that is no text, counts.
    """

    ratio: float = 1.0
    media_tokens: int = 1200

    def text(self, text: str) -> int:
        return ceil(_of_text(text) * self.ratio)

    def message(self, message: Message) -> int:
        """Return the tokens of a message: what is said, thought and called, with its parts."""
        content = self._of_value(message.content)
        if message.multipart_content:
            content = max(content, self._of_value(message.multipart_content))
        if message.tool_result:
            content = max(content, self._of_value(message.tool_result))
        metadata = message.metadata
        for name in ("tool_calls", "reasoning"):
            if metadata.get(name):
                content += self._of_value(metadata[name])
        return ceil((content + _PER_MESSAGE) * self.ratio)

    def messages(self, messages: Iterable[Message]) -> int:
        return sum(map(self.message, messages))

    def tools(self, tools: Iterable[ToolDescriptor]) -> int:
        """Return the tokens of the tools' schemas, which every request carries."""
        plain = sum(_of_text(canonical(tool.schema).decode()) + _PER_TOOL for tool in tools)
        return ceil(plain * self.ratio)

    def calibrated(self, estimated: int, actual: int) -> TokenCounter:
        """Return a counter that has learnt from one request: what it had estimated, and what was counted.

        Short prompts teach little, since what a provider adds to every prompt weighs much in them.
        """
        if estimated <= 0 or actual <= 0:
            return self
        exact = _bounded(self.ratio * actual / estimated)
        weight = _WEIGHT * min(1.0, estimated / _FULL_WEIGHT_AT)
        return replace(self, ratio=_bounded(self.ratio + weight * (exact - self.ratio)))

    def _of_value(self, value: Any) -> float:
        if isinstance(value, str):
            return _of_text(value)
        if isinstance(value, Mapping):
            if _is_media(value):
                return self.media_tokens
            return sum(_of_text(str(key)) + self._of_value(item) for key, item in value.items())
        if isinstance(value, (list, tuple)):
            return sum(self._of_value(item) for item in value)
        return 0.0 if value is None else 1.0


def _of_text(text: str) -> float:
    if text.isascii():
        return len(text) / _ASCII_PER_TOKEN
    plain = len(text.encode("ascii", "ignore"))
    beyond = len(text.encode("utf-8", "surrogatepass")) - plain
    return plain / _ASCII_PER_TOKEN + beyond / _BYTES_PER_TOKEN


def _is_media(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and any(word in kind for word in _MEDIA)


def _bounded(ratio: float) -> float:
    return min(MOST_RATIO, max(LEAST_RATIO, ratio))


CALIBRATION: StateKey[dict[str, float]] = StateKey(
    "context.calibration", {}, scope="session", reduce=lambda known, more: {**known, **more}
)
"""The ratio of a `TokenCounter` for each model, by the model's id."""


def counter_for(state: State, model_id: str) -> TokenCounter:
    """Return a counter for that model, with what the session has learnt about it."""
    known = state.read(CALIBRATION)
    ratio = known.get(model_id) if isinstance(known, Mapping) else None
    # The session may come from a file that somebody edited.
    if isinstance(ratio, (int, float)) and LEAST_RATIO <= ratio <= MOST_RATIO:
        return TokenCounter(ratio=ratio)
    return TokenCounter()
