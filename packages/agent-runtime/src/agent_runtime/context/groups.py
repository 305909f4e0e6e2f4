"""Which messages belong together, so that none of them is sent without the others.

A provider refuses a tool's result without the call, and a call without its result. So a message that
calls tools and everything up to the last of the results is one group, whatever was said in between. A
tool message whose call is nowhere to be found stays with what stands before it. All other messages
are groups of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_core import Message


def prefix_length(messages: Sequence[Message]) -> int:
    """Return how many system messages the conversation begins with."""
    for place, message in enumerate(messages):
        if message.role != "system":
            return place
    return len(messages)


def groups(messages: Sequence[Message], start: int) -> list[range]:
    """Return the places of each group from *start* on, in order and without gaps."""
    starts: list[int] = []
    calls: dict[str, int] = {}
    for place in range(start, len(messages)):
        message = messages[place]
        if message.role == "tool":
            _join(starts, calls.get(str(message.metadata.get("tool_call_id"))), place)
            continue
        starts.append(place)
        calls.update((call_id, place) for call_id in _call_ids(message))
    return [range(*ends) for ends in pairwise([*starts, len(messages)])]


def last_user_turn(messages: Sequence[Message], stop: int | None = None) -> range:
    """Return the places of the last user message before *stop* and those directly in front of it."""
    end = len(messages) if stop is None else stop
    while end and messages[end - 1].role != "user":
        end -= 1
    start = end
    while start and messages[start - 1].role == "user":
        start -= 1
    return range(start, end)


def recent_start(messages: Sequence[Message], found: Sequence[range], keep_recent: int) -> int:
    """Return where the groups begin that hold the last *keep_recent* messages."""
    wanted = len(messages) - keep_recent
    return next((group.start for group in found if group.stop > wanted), len(messages))


def _join(starts: list[int], caller: int | None, place: int) -> None:
    """Let a tool message belong to the group of its caller, and all that begins in between too."""
    if not starts:
        starts.append(place)
    while caller is not None and starts[-1] > caller:
        starts.pop()


def _call_ids(message: Message) -> Iterator[str]:
    calls: Any = message.metadata.get("tool_calls") if message.role == "assistant" else None
    for call in calls or ():
        if isinstance(call, Mapping) and isinstance(call.get("id"), str):
            yield call["id"]
