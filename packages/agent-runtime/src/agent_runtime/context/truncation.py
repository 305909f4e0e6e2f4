"""Leaving the oldest messages out of a request that would not fit.

What is never left out: the system messages at the front, the last messages, and the last thing that
the user said, even where a long series of tool calls lies between that and the end. Everything else
goes group by group, the oldest first, until the rest fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_runtime.context.groups import groups, last_user_turn, prefix_length, recent_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core import Message
    from agent_runtime.context.tokens import TokenCounter


class Truncated(NamedTuple):
    """What is left of a conversation.

    Attributes:
        kept: The messages to send, each the same object as before.
        dropped: Those that were left out.
        tokens: The estimate for the kept ones; above the budget if even the least does not fit.
    """

    kept: tuple[Message, ...]
    dropped: tuple[Message, ...]
    tokens: int


def truncate(
    messages: Sequence[Message], budget: int, counter: TokenCounter, keep_recent: int, *, pinned: int = 0
) -> Truncated:
    """Leave out the oldest groups until the rest fits into *budget* tokens.

    Args:
        messages: The conversation.
        budget: How many tokens the messages may have.
        counter: Estimates them.
        keep_recent: How many of the last messages stay in any case, with their whole groups.
        pinned: How many of the first messages stay as well, beside leading system messages.
    """
    costs = [counter.message(message) for message in messages]
    total, dropped = sum(costs), set[int]()
    if total > budget:
        for group in _droppable(messages, keep_recent, pinned):
            dropped.update(group)
            total -= sum(costs[place] for place in group)
            if total <= budget:
                break
    return Truncated(
        kept=tuple(message for place, message in enumerate(messages) if place not in dropped),
        dropped=tuple(message for place, message in enumerate(messages) if place in dropped),
        tokens=total,
    )


def _droppable(messages: Sequence[Message], keep_recent: int, pinned: int) -> list[range]:
    """Return the groups that may be left out, the oldest first."""
    found = groups(messages, max(pinned, prefix_length(messages)))
    recent = recent_start(messages, found, keep_recent)
    turn = last_user_turn(messages)
    return [
        group
        for group in found
        if group.stop <= recent and (group.stop <= turn.start or group.start >= turn.stop)
    ]
