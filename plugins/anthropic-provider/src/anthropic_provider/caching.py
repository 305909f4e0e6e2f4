"""Marking what the provider shall remember between requests: `cache_control`.

A mark covers everything before it. The end of the last user turn is marked, so that the next request
finds the conversation so far; the system prompt and the tools too, for when the conversation changes.
The API takes four marks, and those that parts bring themselves come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anthropic_provider.kinds import is_thinking

if TYPE_CHECKING:
    from collections.abc import Iterator

Body = dict[str, Any]
Blocks = list[dict[str, Any]]

_MOST = 4
_MARK = "cache_control"


def with_marks(body: Body, cache: Any) -> Body:
    """Return the body with marks where they help; *cache* is True or how long to remember ("5m", "1h")."""
    mark = {"type": "ephemeral", **({"ttl": cache} if isinstance(cache, str) else {})}
    free = _MOST - sum(_MARK in block for block in _all_blocks(body))
    for place in (_mark_turn, _mark_system, _mark_tools):
        marked = place(body, mark) if free > 0 else body
        free -= marked is not body
        body = marked
    return body


def _mark_turn(body: Body, mark: dict[str, Any]) -> Body:
    messages = body["messages"]
    last = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=None)
    if last is None:
        return body
    content = _marked(messages[last]["content"], mark)
    if content is None:
        return body
    turn = {**messages[last], "content": content}
    return {**body, "messages": [*messages[:last], turn, *messages[last + 1 :]]}


def _mark_system(body: Body, mark: dict[str, Any]) -> Body:
    content = _marked(body.get("system"), mark)
    return body if content is None else {**body, "system": content}


def _mark_tools(body: Body, mark: dict[str, Any]) -> Body:
    content = _marked(body.get("tools"), mark)
    return body if content is None else {**body, "tools": content}


def _marked(content: Any, mark: dict[str, Any]) -> Blocks | None:
    """Return the content with a mark on its end, or None if there is nothing to mark or it is marked."""
    if isinstance(content, str) and content:
        content = [{"type": "text", "text": content}]
    if not content or _MARK in content[-1] or is_thinking(content[-1]):
        return None
    return [*content[:-1], {**content[-1], _MARK: mark}]


def _all_blocks(body: Body) -> Iterator[dict[str, Any]]:
    for content in (
        body.get("tools"),
        body.get("system"),
        *(message["content"] for message in body["messages"]),
    ):
        for block in content if isinstance(content, list) else ():
            yield block
            inner = block.get("content")
            yield from (part for part in inner if isinstance(part, dict)) if isinstance(inner, list) else ()
