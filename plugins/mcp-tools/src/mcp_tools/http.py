"""How a server elsewhere is talked to; loaded with the first such server, since its libraries are heavy."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agent_plugin_kit.credentials import is_reference, look_up
from mcp_tools.transports import LARGEST_MESSAGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

_CONNECT: Final = 30.0
_SILENCE: Final = 300.0


@asynccontextmanager
async def http_transport(url: str, headers: Mapping[str, str], patience: float) -> AsyncIterator[Any]:
    """Yield the streams on which the SDK talks to a server."""
    limits = httpx2.Timeout(_CONNECT, read=max(_SILENCE, patience))
    # Unpacked, a small answer can be a large one; so none is packed.
    asked = {**headers, "Accept-Encoding": "identity"}
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [_with_tokens], "response": [_bound]}
    async with (
        httpx2.AsyncClient(headers=asked, timeout=limits, event_hooks=hooks) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as streams,
    ):
        yield streams


async def _with_tokens(request: httpx2.Request) -> None:
    """Put the token of a login where a header refers to one; it changes, so it is asked for each time."""
    for name, value in list(request.headers.items()):
        if is_reference(value):
            request.headers[name] = f"Bearer {await asyncio.to_thread(look_up, value)}"


async def _bound(response: httpx2.Response) -> None:
    """Have a response that is too long end with an error; events have a limit of their own."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.RemoteProtocolError("the server packs its answers, although it was asked not to")
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        response.stream = _bounded(response.stream)


def _bounded(stream: Any) -> Any:
    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in stream:
                size += len(piece)
                if size > LARGEST_MESSAGE:
                    text = f"it sent more than {LARGEST_MESSAGE} bytes: ask for less at a time"
                    raise httpx2.StreamError(text)
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
