"""Python values as JSON data, and what a function returned as the result of a tool call."""

from __future__ import annotations

import dataclasses
import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Collection, Generator, Mapping, Set as AbstractSet
from contextlib import aclosing, closing
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agent_core import lazy
from agent_core.encoding import canonical

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from os import PathLike

    from agent_core.frozen import JsonObject

    Event = JsonObject


STATE_UPDATE = "state_update"
"""Where a result has the values that its tool wants kept."""

_BINARY = (bytes, bytearray, memoryview)
R_co = TypeVar("R_co", covariant=True)


@dataclasses.dataclass(frozen=True, slots=True)
class ToolReturn(Generic[R_co]):
    """A tool's result that says more than what the model reads.

    Attributes:
        value: What the model reads.
        display: What a person sees in its place, a display payload (see docs/reference/display.md).
        state: Values to keep in the session, by name; a `RunContext` has them as `state`.
    """

    value: R_co
    display: Mapping[str, object] | None = None
    state: Mapping[str, object] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file as a tool's result: the model sees an image, reads a text, and learns of anything else.

    Attributes:
        data: What is in it.
        mime_type: What it is, such as "image/png"; `from_path` finds it by the name.
        name: What it is called.
    """

    data: bytes
    mime_type: str
    name: str = "file"

    @classmethod
    def from_path(cls, path: str | PathLike[str]) -> File:
        """Read a file."""
        from pathlib import Path

        found = Path(path)
        kind = lazy.mimetypes.guess_type(found.name)[0] or "application/octet-stream"
        return cls(found.read_bytes(), kind, found.name)

    def to_dict(self) -> JsonObject:
        """Return the file as a part of a message."""
        if self.mime_type.startswith("image/"):
            return {"type": "image", "mime_type": self.mime_type, "data": b64encode(self.data).decode()}
        try:
            return {"type": "text", "text": self.data.decode()}
        except UnicodeDecodeError:
            about = f"{self.mime_type}, {len(self.data)} bytes"
            return {"type": "text", "text": f"({self.name}: {about}; it can be neither shown nor read here)"}


class NotJsonError(TypeError):
    """A value has no JSON form of its own."""


def to_json(value: object, unknown: Callable[[object], object] | None = None) -> Any:
    """Return *value* as JSON data; *unknown* is asked about what JSON cannot say (else: its text)."""
    unknown = unknown or _describe
    if isinstance(value, Enum):  # first, since a StrEnum member is a str, too
        return to_json(value.value, unknown)
    if value is None or isinstance(value, (str, int, float)):
        return _plain(value, unknown)
    if (fields := _fields(value)) is not None:
        return to_json(fields, unknown)
    if isinstance(value, Collection) and not isinstance(value, _BINARY):
        return _collection(value, unknown)
    return _text(value, unknown)


def encode(value: object) -> object:
    """Return *value* as JSON data that says the same.

    Raises:
        NotJsonError: If something in it could only be described.
    """
    return to_json(value, _refuse)


def _plain(value: Any, unknown: Callable[[object], object]) -> object:
    """Return *value* as exactly str, int, float, bool or None, which every JSON encoder knows."""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isfinite(value) else unknown(value)


def _fields(value: Any) -> object:
    """Return an object's own idea of its contents, if its class has one."""
    kind = type(value)
    for method in ("to_dict", "model_dump", "_asdict"):
        if callable(getattr(kind, method, None)):
            return getattr(value, method)()
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _collection(value: Collection[object], unknown: Callable[[object], object]) -> object:
    if isinstance(value, Mapping):
        return {_key(key): to_json(item, unknown) for key, item in value.items()}
    items = [to_json(item, unknown) for item in value]
    return _in_order(items) if isinstance(value, AbstractSet) else items


def _key(key: object) -> str:
    key = to_json(key)
    return key if isinstance(key, str) else str(key)


def _in_order(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=canonical)  # no natural order, but the same one every time


def _text(value: Any, unknown: Callable[[object], object]) -> object:
    kind = type(value)
    if callable(getattr(kind, "isoformat", None)):  # dates and times
        return value.isoformat()
    if kind.__module__ in {"uuid", "decimal"} or hasattr(kind, "__fspath__"):
        return str(value)
    return unknown(value)


def _describe(value: object) -> object:
    if not isinstance(value, _BINARY):
        return str(value)
    return {"encoding": "base64", "data": b64encode(value).decode()}


def _refuse(value: object) -> object:
    raise NotJsonError(f"{value!r} has no JSON form")


def finish(answer: object) -> Event | Awaitable[Event]:
    """Return what a call gave as a result dict, or as an awaitable of one."""
    if isinstance(answer, Generator):
        return _last(list(_events(answer)))
    if isinstance(answer, AsyncGenerator):
        return _drained(answer)
    if isinstance(answer, Awaitable):
        return _awaited(answer)
    return _result(answer)


def stream(answer: object) -> Iterator[Event] | AsyncIterator[Event]:
    """Return what a call gave as an iterator of parts with a result at the end."""
    if isinstance(answer, Generator):
        return _events(answer)
    if isinstance(answer, AsyncGenerator):
        return _events_async(answer)
    if isinstance(answer, Awaitable):
        return _awaited_event(answer)
    return iter([_result(answer)])


def _result(returned: object) -> Event:
    """Return what a function returned as the result of its call."""
    try:
        return _written(returned)
    except RecursionError:
        return {"success": False, "error": "its result is nested too deeply to be sent"}


def _written(returned: object) -> Event:
    if not isinstance(returned, ToolReturn):
        return {"success": True, "result": _content(returned)}
    result: Event = {"success": True, "result": _content(returned.value)}
    if returned.display is not None:
        result["display"] = to_json(returned.display)
    if returned.state is not None:
        result[STATE_UPDATE] = encode(returned.state)
    return result


def _content(value: object) -> object:
    """Return a value as JSON; files, alone or in a list with texts, as parts of a message."""
    items = value if isinstance(value, (list, tuple)) else [value]
    if not any(isinstance(item, File) for item in items):
        return to_json(value)
    return [_part(item) for item in items]


def _part(item: object) -> object:
    if isinstance(item, File):
        return item.to_dict()
    read = to_json(item)
    return {"type": "text", "text": read if isinstance(read, str) else json.dumps(read, ensure_ascii=False)}


class _Spoken:
    """What a streaming function has said so far; it ends with one result, said or made of its text."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._has_result = False

    def add(self, item: object) -> Event:
        is_event = isinstance(item, Mapping) and ("success" in item or "part" in item)
        event: Event = to_json(item) if is_event else _text_part(item)
        self._has_result = self._has_result or "success" in event
        self._texts.append(_spoken(event.get("part")))
        return event

    def conclude(self, returned: object) -> Iterator[Event]:
        if returned is not None:
            yield _result(returned)
        elif not self._has_result:
            yield {"success": True, "result": "".join(self._texts)}


def _events(parts: Generator[Any, Any, Any]) -> Iterator[Event]:
    spoken = _Spoken()
    with closing(parts):
        while True:
            try:
                item = next(parts)
            except StopIteration as done:
                yield from spoken.conclude(done.value)
                return
            yield spoken.add(item)


async def _events_async(parts: AsyncGenerator[Any, Any]) -> AsyncGenerator[Event, None]:
    spoken = _Spoken()
    async with aclosing(parts):
        async for item in parts:
            yield spoken.add(item)
    for event in spoken.conclude(None):
        yield event


async def _drained(parts: AsyncGenerator[Any, Any]) -> Event:
    async with aclosing(_events_async(parts)) as events:
        return _last([event async for event in events])


async def _awaited(answer: Awaitable[object]) -> Event:
    return _result(await answer)


async def _awaited_event(answer: Awaitable[object]) -> AsyncIterator[Event]:
    yield await _awaited(answer)


def _last(events: list[Event]) -> Event:
    return next(event for event in reversed(events) if "success" in event)


def _text_part(item: object) -> Event:
    value = to_json(item)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"part": {"type": "text", "content": text}}


def _spoken(part: object) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        return ""
    content = part.get("content")
    return content if isinstance(content, str) else ""
