"""Estimates of how many tokens a prompt has, without knowing any model's vocabulary.

A token of English text or code is about four characters long. Other scripts take more: a character of
Chinese is about a token, and one of Cyrillic about half of one. Both follow from counting three bytes
of UTF-8 to a token for everything beyond ASCII. What remains wrong, for a model and the kind of text
that a session holds, is a factor, and that is learnt: providers say how many tokens they counted.

A message costs about a microsecond whatever its length, since a Python string knows whether it is ASCII and
how long it is. Of a conversation the sum is remembered in the session's `memory`, so that only what is new
is weighed. Sums are exact, and so they do not depend on what was remembered: weights are whole numbers, in
units of a twelfth of a token.

What a session has learnt about each model's way of counting is kept in its state, under `CALIBRATION`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical
from agent_core.history import History, same_beginning
from agent_runtime.state import StateKey

if TYPE_CHECKING:
    from agent_core import Message, Session, ToolDescriptor
    from agent_core.frozen import State
    from agent_runtime.state import State as RunState


LEAST_RATIO = 0.25
MOST_RATIO = 4.0

_TOKEN = 12  # units
_ASCII_CHARACTER = _TOKEN // 4
_OTHER_BYTE = _TOKEN // 3
_PER_MESSAGE = 4 * _TOKEN  # the marks between messages
_PER_TOOL = 8 * _TOKEN
_FRONT = 8  # how many messages may be sent in front of a conversation that is remembered
_WEIGHED = "runtime.weighed"
_WEIGHT = 0.5
_FULL_WEIGHT_AT = 1000
_MEDIA = ("image", "audio", "video", "file", "document")


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Estimates tokens. Several messages are estimated together, and rounded up once.

    Attributes:
        ratio: How many tokens the model counts where the plain estimate has one.
        media_tokens: What an image, or another part that is not text, counts.
        memory: Of the session whose messages are counted; see `Session.memory`.
    """

    ratio: float = 1.0
    media_tokens: int = 1200
    memory: State | None = field(default=None, compare=False, repr=False)

    def text(self, text: str) -> int:
        return self.tokens(_of_text(text))

    def message(self, message: Message) -> int:
        return self.tokens(self.weight(message))

    def messages(self, messages: Sequence[Message]) -> int:
        return self.tokens(self._weight_of_all(messages))

    def tools(self, tools: Iterable[ToolDescriptor]) -> int:
        """Return the tokens of the tools' schemas, which every request carries."""
        return self.tokens(sum(_of_text(canonical(tool.schema).decode()) + _PER_TOOL for tool in tools))

    def tokens(self, weight: int) -> int:
        """Return the tokens of a weight; weights can be added up before."""
        return ceil(weight * self.ratio / _TOKEN)

    def weight(self, message: Message) -> int:
        """Return the weight of a message: what is said, thought and called, with its parts."""
        content = self._of_value(message.content)
        if message.multipart_content:
            content = max(content, self._of_value(message.multipart_content))
        if message.tool_result:
            content = max(content, self._of_value(message.tool_result))
        metadata = message.metadata
        for name in ("tool_calls", "reasoning"):
            if metadata.get(name):
                content += self._of_value(metadata[name])
        return content + _PER_MESSAGE

    def _weight_of_all(self, messages: Sequence[Message]) -> int:
        """Add up the weights; of a conversation that was weighed before, only of what is new.

        What is sent in front of a conversation, a system prompt or a summary, changes from one time to the
        next. So the conversation is looked for among the first messages.
        """
        if self.memory is None:
            return sum(map(self.weight, messages))
        listed = messages.to_list() if isinstance(messages, History) else list(messages)
        start = next((place for place, one in enumerate(listed) if one.role != "system"), len(listed))
        before: list[Message]
        known: list[int]  # the sum before each message, and behind the last
        before, known = self.memory.get(_WEIGHED, ([], [0]))
        for place in range(start, min(start + _FRONT, len(listed)) if before else start):
            if listed[place] == before[0]:
                start = place
                break
        same = same_beginning(before, listed[start:])
        sums = [*accumulate(map(self.weight, listed[start + same :]), initial=known[same])]
        self.memory[_WEIGHED] = listed[start:], [*known[:same], *sums]
        return sums[-1] + sum(map(self.weight, listed[:start]))

    def calibrated(self, estimated: int, actual: int) -> TokenCounter:
        """Return a counter that has learnt from one request: what it had estimated, and what was counted.

        Short prompts teach little, since what a provider adds to every prompt weighs much in them.
        """
        if estimated <= 0 or actual <= 0:
            return self
        exact = _bounded(self.ratio * actual / estimated)
        weight = _WEIGHT * min(1.0, estimated / _FULL_WEIGHT_AT)
        return replace(self, ratio=_bounded(self.ratio + weight * (exact - self.ratio)))

    def _of_value(self, value: Any) -> int:
        if isinstance(value, str):
            return _of_text(value)
        if isinstance(value, Mapping):
            if _is_media(value):
                return self.media_tokens * _TOKEN
            return sum(_of_text(str(key)) + self._of_value(item) for key, item in value.items())
        if isinstance(value, (list, tuple)):
            return sum(self._of_value(item) for item in value)
        return 0 if value is None else _TOKEN


def _of_text(text: str) -> int:
    if text.isascii():
        return len(text) * _ASCII_CHARACTER
    plain = len(text.encode("ascii", "ignore"))
    beyond = len(text.encode("utf-8", "surrogatepass")) - plain
    return plain * _ASCII_CHARACTER + beyond * _OTHER_BYTE


def _is_media(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and any(word in kind for word in _MEDIA)


def _bounded(ratio: float) -> float:
    return min(MOST_RATIO, max(LEAST_RATIO, ratio))


CALIBRATION: StateKey[dict[str, float]] = StateKey(
    "context.calibration", {}, scope="session", reduce=lambda known, more: {**known, **more}
)
"""The ratio of a `TokenCounter` for each model, by the model's id."""


def counter_for(state: RunState, model_id: str, session: Session | None = None) -> TokenCounter:
    """Return a counter for that model, with what the session has learnt about it.

    Args:
        session: Whose messages are counted, to remember their weight.
    """
    memory = None if session is None else session.memory
    known = state.read(CALIBRATION)
    ratio = known.get(model_id) if isinstance(known, Mapping) else None
    # The session may come from a file that somebody edited.
    if isinstance(ratio, (int, float)) and LEAST_RATIO <= ratio <= MOST_RATIO:
        return TokenCounter(ratio=ratio, memory=memory)
    return TokenCounter(memory=memory)
