"""Messages that are longer than the window itself: an excerpt is sent in their place.

Summaries and truncation keep the last messages as they are, and one of those may be longer than everything
that fits. Its beginning and its end are sent then, with a note between them that says how much is missing.
The session keeps the whole message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core import Message
    from agent_runtime.tokens import TokenCounter

LEAST_EXCERPT = 64
"""No excerpt is made shorter than this many tokens: less says nothing."""

_SHORTENED_ROLES = ("user", "tool")
_TEXT = "text"


def with_excerpts(
    messages: Sequence[Message], budget: int, counter: TokenCounter, *, start: int = 0
) -> tuple[Message, ...]:
    """Return the messages with excerpts in place of the longest ones, so that all fit into *budget* tokens.

    What the model said and the calls that it made stay as they are, so the result may still be too long.

    Args:
        start: How many of the first messages stay as they are.
    """
    costs = [counter.message(message) for message in messages]
    places = [place for place in range(start, len(messages)) if messages[place].role in _SHORTENED_ROLES]
    fixed = sum(costs) - sum(costs[place] for place in places)
    most = max(LEAST_EXCERPT, _cap([costs[place] for place in places], budget - fixed))
    shortened = list(messages)
    for place in places:
        if costs[place] > most:
            shortened[place] = excerpt(messages[place], most, counter)
    return tuple(shortened)


def _cap(costs: list[int], room: int) -> int:
    """Return how much a single one may have, of messages or texts, so that all fit into *room* together."""
    left = room
    for place, cost in enumerate(sorted(costs)):
        share = left // (len(costs) - place)
        if cost > share:
            return share
        left -= cost
    return room


def excerpt(message: Message, most: int, counter: TokenCounter) -> Message:
    """Return a message with the middle of its longest texts left out, so that it has about *most* tokens."""
    kept, cost = 1.0, counter.message(message)
    made = message
    while cost > most and kept > 0.0005:  # noqa: PLR2004 - of a text of a million characters, 500 are left
        kept *= min(0.9, most / cost)
        made = _excerpt(message, kept)
        cost = counter.message(made)
    return made


def _excerpt(message: Message, kept: float) -> Message:
    """Return a message of which a share is kept: of a question with a long file, the question stays whole."""
    parts = list(message.multipart_content or ())
    result = message.tool_result
    texts = [message.content, *(one.get(_TEXT) for one in (*parts, result or {}))]
    lengths = [len(text) for text in texts if isinstance(text, str)]
    most = _cap(lengths, int(sum(lengths) * kept))
    return replace(
        message.with_native_indices(None),
        content=_shortened(message.content, most),
        multipart_content=None if message.multipart_content is None else [_part(one, most) for one in parts],
        tool_result=None if result is None else _part(result, most),
    )


def _part(part: Any, most: int) -> dict[str, Any]:
    if not isinstance(part.get(_TEXT), str):
        return dict(part)
    return {**part, _TEXT: _shortened(part[_TEXT], most)}


def _shortened(text: Any, most: int) -> Any:
    if not isinstance(text, str) or len(text) <= most:
        return text
    head = most // 2
    left_out = len(text) - most
    note = f"\n[… {left_out:,} characters are left out here: the message is longer than the window …]\n"
    return text[:head] + note + text[len(text) - (most - head) :]
