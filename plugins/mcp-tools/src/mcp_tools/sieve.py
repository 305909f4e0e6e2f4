"""Lists of a server without the entries that the SDK cannot read.

The SDK reads a list as a whole: one entry that breaks the protocol costs all others. So lists are looked at
on their way in, between the transport and the SDK, and what is not an entry is taken out and remembered.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mcp_types.methods import parse_server_result
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

_LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
_BRIEF: Final = 80
_MOST: Final = 20


class Sieve:
    """What was asked of a server, and which entries of its lists were taken out.

    Attributes:
        version: The version of the protocol that is spoken; set once that is known.
    """

    def __init__(self) -> None:
        self.version: str | None = None
        self._asked: dict[Any, str] = {}
        self._dropped: dict[str, str] = {}

    def take_dropped(self) -> dict[str, str]:
        """Return why entries were taken out, by what they call themselves, since the last time."""
        dropped, self._dropped = self._dropped, {}
        return dropped

    def note_request(self, message: Any) -> None:
        """Remember a request for a list."""
        method = getattr(message, "method", None)
        if method in _LISTS and getattr(message, "id", None) is not None:
            self._asked[message.id] = method

    def pass_on(self, item: Any) -> Any:
        """Return a message of the server; the answer to a request for a list has its entries alone."""
        answer: Any = getattr(item, "message", None)
        if hasattr(answer, "method"):  # the server asks us, by numbers of its own
            return item
        method = self._asked.pop(getattr(answer, "id", None), None)
        result = getattr(answer, "result", None)
        if method is None or self.version is None or not isinstance(result, dict):
            return item
        field = _LISTS[method]
        problems = _problems(method, self.version, field, result)
        if not problems:
            return item
        for place, why in list(problems.items())[:_MOST]:
            self._dropped[_called(result[field][place], place)] = f"it breaks the protocol: {why}"
        kept = [entry for place, entry in enumerate(result[field]) if place not in problems]
        return replace(item, message=answer.model_copy(update={"result": {**result, field: kept}}))


@asynccontextmanager
async def sieved(transport: AbstractAsyncContextManager[Any], sieve: Sieve) -> AsyncIterator[Any]:
    """Yield the streams of a transport, with a sieve in between."""
    async with transport as (incoming, outgoing):
        yield _Incoming(incoming, sieve), _Outgoing(outgoing, sieve)


def _problems(method: str, version: str, field: str, result: dict[str, Any]) -> dict[int, str]:
    """Return what is wrong with entries of a list, by place; nothing if it is the list that is wrong."""
    try:
        parse_server_result(method, version, result)
    except ValidationError as error:
        found: dict[int, str] = {}
        for one in error.errors(include_url=False, include_context=False, include_input=False):
            inside = one["loc"][one["loc"].index(field) + 1 :] if field in one["loc"] else ()
            if inside and isinstance(inside[0], int):
                found.setdefault(inside[0], f"{'.'.join(map(str, inside[1:]))}: {one['msg']}")
        return found
    except (KeyError, ValueError):
        pass
    return {}


def _called(entry: Any, place: int) -> str:
    name = entry.get("name") or entry.get("uri") if isinstance(entry, dict) else None
    return name[:_BRIEF] if isinstance(name, str) else f"entry {place + 1}"


class _Stream:
    """A stream of the SDK's own, with everything that it has."""

    def __init__(self, inner: Any, sieve: Sieve) -> None:
        self._inner = inner
        self._sieve = sieve

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._inner.__aexit__(*error)


class _Incoming(_Stream):
    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return self._sieve.pass_on(await self._inner.__anext__())

    async def receive(self) -> Any:
        return self._sieve.pass_on(await self._inner.receive())


class _Outgoing(_Stream):
    async def send(self, item: Any) -> None:
        self._sieve.note_request(item.message)
        await self._inner.send(item)
