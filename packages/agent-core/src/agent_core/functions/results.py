"""What a call gave back, as the platform reads it: a result dict, or parts with a result at the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

from agent_core.functions.values import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    Event = dict[str, Any]


def finish(answer: Any) -> Event | Awaitable[Event]:
    """Return what a call gave as a result dict, or as an awaitable of one."""
    if isinstance(answer, Generator):
        return _last(list(_events(answer)))
    if isinstance(answer, AsyncGenerator):
        return _drained(answer)
    if isinstance(answer, Awaitable):
        return _awaited(answer)
    return {"success": True, "result": to_json(answer)}


def stream(answer: Any) -> Iterator[Event] | AsyncIterator[Event]:
    """Return what a call gave as an iterator of parts with a result at the end."""
    if isinstance(answer, Generator):
        return _events(answer)
    if isinstance(answer, AsyncGenerator):
        return _events_async(answer)
    if isinstance(answer, Awaitable):
        return _awaited_event(answer)
    return iter([{"success": True, "result": to_json(answer)}])


class _Told:
    """What a streaming function has said so far; it ends with one result, said or made of its text."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._has_result = False

    def hear(self, item: Any) -> Event:
        is_event = isinstance(item, Mapping) and ("success" in item or "part" in item)
        event: Event = to_json(item) if is_event else _text_part(item)
        self._has_result = self._has_result or "success" in event
        self._texts.append(_spoken(event.get("part")))
        return event

    def conclude(self, returned: Any) -> Iterator[Event]:
        if returned is not None:
            yield {"success": True, "result": to_json(returned)}
        elif not self._has_result:
            yield {"success": True, "result": "".join(self._texts)}


def _events(parts: Generator[Any, Any, Any]) -> Iterator[Event]:
    told = _Told()
    with closing(parts):
        while True:
            try:
                item = next(parts)
            except StopIteration as done:
                yield from told.conclude(done.value)
                return
            yield told.hear(item)


async def _events_async(parts: AsyncGenerator[Any, Any]) -> AsyncGenerator[Event, None]:
    told = _Told()
    async with aclosing(parts):
        async for item in parts:
            yield told.hear(item)
    for event in told.conclude(None):
        yield event


async def _drained(parts: AsyncGenerator[Any, Any]) -> Event:
    async with aclosing(_events_async(parts)) as events:
        return _last([event async for event in events])


async def _awaited(answer: Awaitable[Any]) -> Event:
    return {"success": True, "result": to_json(await answer)}


async def _awaited_event(answer: Awaitable[Any]) -> AsyncIterator[Event]:
    yield await _awaited(answer)


def _last(events: list[Event]) -> Event:
    return next(event for event in reversed(events) if "success" in event)


def _text_part(item: Any) -> Event:
    import json

    value = to_json(item)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"part": {"type": "text", "content": text}}


def _spoken(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        return ""
    content = part.get("content")
    return content if isinstance(content, str) else ""
