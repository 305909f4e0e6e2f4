"""What is sent of the items: the system prompt apart, roles in turns, results first, cache marks.

Items stay as they are, one per message, so that edits of messages find theirs. Only here, on the way out,
consecutive items of one role become one message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_provider_kit import Dicts, JsonObject
from anthropic_provider.messages import (
    METADATA,
    Block,
    Blocks,
    blocks_of,
    is_blank,
    is_result,
    is_text,
    is_thinking,
    says_something,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[int, int]
"""A block's place: the number of its item, and its own number in that item."""

_OPENING = {"role": "user", "content": "(The conversation continues here.)"}


Run = list[int]
"""The numbers of consecutive items of one role, which together are one message."""
Body = JsonObject
_MOST_MARKS = 4
_MARK = "cache_control"


class Outgoing(NamedTuple):
    """What is sent of a history; `system` is None where there is no system prompt."""

    system: str | Blocks | None
    messages: Dicts


def compose(items: Dicts) -> Outgoing:
    """Return the items as the API takes them."""
    runs = gather(items)
    messages = [_message(items, run) for run in runs]
    return Outgoing(_system(items), [_OPENING, *messages] if _needs_opening(items, runs) else messages)


def places(items: Dicts) -> list[list[Place]]:
    """Return for each message that is sent, and each of its blocks, where the block stands in the items."""
    runs = gather(items)
    located = [[place for place, _block in _blocks(items, run)] for run in runs]
    return [[], *located] if _needs_opening(items, runs) else located


def gather(items: Dicts) -> list[Run]:
    """Return the items that are sent, those of one role together."""
    runs: list[Run] = []
    current = None
    for index, item in enumerate(items):
        role = item.get("role")
        if role == "system" or not says_something(item):
            continue
        if role == current:
            runs[-1].append(index)
        else:
            runs.append([index])
            current = role
    return runs


def _needs_opening(items: Dicts, runs: list[Run]) -> bool:
    return bool(runs) and items[runs[0][0]].get("role") == "assistant"


def _message(items: Dicts, run: Run) -> JsonObject:
    first = items[run[0]]
    message = {key: first[key] for key in first if key != METADATA} if METADATA in first else first
    content = first["content"]
    if len(run) == 1 and (isinstance(content, str) or _is_sendable(content)):
        return message
    return {**message, "content": [block for _place, block in _blocks(items, run)]}


def _is_sendable(blocks: Blocks) -> bool:
    """Whether blocks can be sent as they are: no blank text, and no result behind something else."""
    others = False
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and is_blank(block["text"]):
            return False
        if kind != "tool_result":
            others = True
        elif others:
            return False
    return True


def _blocks(items: Dicts, run: Run) -> list[tuple[Place, Block]]:
    found = [
        ((index, number), block) for index in run for number, block in _sendable(blocks_of(items[index]))
    ]
    return sorted(found, key=lambda pair: not is_result(pair[1]))


def _sendable(blocks: Blocks) -> list[tuple[int, Block]]:
    """Leave empty text out, and blank text where there is no other; between words it may stand."""
    words = any(is_text(block) and not is_blank(block["text"]) for block in blocks)
    return [
        (number, block)
        for number, block in enumerate(blocks)
        if not is_text(block) or not is_blank(block["text"]) or (words and block["text"])
    ]


def _system(items: Dicts) -> str | Blocks | None:
    system = [item for item in items if item.get("role") == "system" and says_something(item)]
    if len(system) == 1 and isinstance(system[0]["content"], str):
        return str(system[0]["content"])
    return [block for item in system for _number, block in _sendable(blocks_of(item))] or None


# Marks that tell the provider what to remember between requests: `cache_control`. A mark covers
# everything before it. The end of the last user turn is marked, so that the next request finds the
# conversation so far; the system prompt and the tools too, for when the conversation changes. The API
# takes four marks, and those that parts bring themselves come first.


def with_marks(body: Body, cache: Any) -> Body:
    """Return the body with marks where they help; *cache* is True or how long to remember ("5m", "1h")."""
    mark = {"type": "ephemeral", **({"ttl": cache} if isinstance(cache, str) else {})}
    free = _MOST_MARKS - sum(_MARK in block for block in _all_blocks(body))
    for place in (_mark_turn, _mark_system, _mark_tools):
        marked = place(body, mark) if free > 0 else body
        free -= marked is not body
        body = marked
    return body


def _mark_turn(body: Body, mark: JsonObject) -> Body:
    messages = body["messages"]
    last = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=None)
    if last is None:
        return body
    content = _marked(messages[last]["content"], mark)
    if content is None:
        return body
    turn = {**messages[last], "content": content}
    return {**body, "messages": [*messages[:last], turn, *messages[last + 1 :]]}


def _mark_system(body: Body, mark: JsonObject) -> Body:
    content = _marked(body.get("system"), mark)
    return body if content is None else {**body, "system": content}


def _mark_tools(body: Body, mark: JsonObject) -> Body:
    content = _marked(body.get("tools"), mark)
    return body if content is None else {**body, "tools": content}


def _marked(content: Any, mark: JsonObject) -> Blocks | None:
    """Return the content with a mark on its end, or None if there is nothing to mark or it is marked."""
    if isinstance(content, str) and content:
        content = [{"type": "text", "text": content}]
    if not content or _MARK in content[-1] or is_thinking(content[-1]):
        return None
    return [*content[:-1], {**content[-1], _MARK: mark}]


def _all_blocks(body: Body) -> Iterator[JsonObject]:
    for content in (
        body.get("tools"),
        body.get("system"),
        *(message["content"] for message in body["messages"]),
    ):
        for block in content if isinstance(content, list) else ():
            yield block
            inner = block.get("content")
            yield from (part for part in inner if isinstance(part, dict)) if isinstance(inner, list) else ()
