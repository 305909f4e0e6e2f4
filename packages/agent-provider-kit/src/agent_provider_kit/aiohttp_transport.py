"""The transport on aiohttp, which knows proxies: one pool of connections per event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp

from agent_provider_kit.network import (
    CUT_SHORT,
    KEPT_ALIVE,
    READ_BUFFER,
    Patience,
    place_of,
    plain_words,
    proxy_for,
    shared_tls,
)
from agent_provider_kit.transport import read_body

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from agent_provider_kit.transport import HttpRequest, Timeouts


class AiohttpTransport:
    """Keeps connections open between requests, as many as are needed at once.

    Proxies are taken from the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY).
    """

    def __init__(self) -> None:
        self._clients: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._lifetimes: dict[asyncio.AbstractEventLoop, AsyncIterator[aiohttp.ClientSession]] = {}

    async def send(self, request: HttpRequest) -> AiohttpResponse:
        """Send the request and return when the reply's headers are here."""
        timeouts = request.timeouts
        proxy = proxy_for(request.url)
        client = self._clients.get(asyncio.get_running_loop()) or await self._open_client()
        pending = client.request(
            request.method,
            request.url,
            headers=dict(request.headers),
            data=request.body,
            timeout=aiohttp.ClientTimeout(total=None, connect=timeouts.connect),
            allow_redirects=False,
            proxy=proxy,
            skip_auto_headers=("User-Agent",) if "User-Agent" in request.headers else (),
        )
        try:
            async with asyncio.timeout(timeouts.first_byte):
                response = await pending
        except TimeoutError as error:
            raise _too_slow(error, timeouts) from error
        except aiohttp.ClientError as error:
            if proxy is None:
                raise ConnectionError(_plain(error)) from error
            raise ConnectionError(_plain_with(proxy, error)) from None  # its own words have the password
        return AiohttpResponse(response, timeouts)

    async def _open_client(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        for closed in [other for other in self._clients if other.is_closed()]:
            self._forget(closed)  # it ended without telling anyone
        lifetime = self._lifetimes[loop] = self._live(loop)
        return await anext(lifetime)

    async def _live(self, loop: asyncio.AbstractEventLoop) -> AsyncIterator[aiohttp.ClientSession]:
        """Keep a client open until its loop ends.

        A loop announces its end to nobody, but before it ends it closes every async generator that is
        still suspended. So the client lives in one.
        """
        client = self._clients[loop] = _make_client()
        try:
            yield client
        finally:
            self._forget(loop)
            await client.close()

    def _forget(self, loop: asyncio.AbstractEventLoop) -> None:
        self._clients.pop(loop, None)
        self._lifetimes.pop(loop, None)


def _make_client() -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=0, limit_per_host=0, ssl=shared_tls(), keepalive_timeout=KEPT_ALIVE
    )
    return aiohttp.ClientSession(
        connector=connector,
        read_bufsize=READ_BUFFER,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


class AiohttpResponse:
    """A reply whose body is still to come."""

    __slots__ = ("_patience", "_response", "_timeouts", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts) -> None:
        self._response = response
        self._timeouts = timeouts
        self._patience: Patience | None = None
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self, most: int | None = None) -> bytes:
        """Return the whole body, or somewhat more than *most* bytes of it."""
        return await read_body(self.chunks(), most)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, one piece per read of the socket."""
        content = self._response.content
        patience = self._patience = Patience(self._response.close, self._timeouts)
        try:
            while True:
                patience.wait()
                piece = await content.readany()
                patience.waiting_since = None
                if not piece:
                    break
                yield piece
        except aiohttp.ClientError as error:
            if patience.over is not None:
                raise TimeoutError(patience.over) from None
            if unread := _unread(content):
                yield unread
            raise ConnectionError(_plain(error)) from error
        finally:
            patience.stop()
            self.close()

    def moved_on(self) -> None:
        """Note that the last piece brought content."""
        if self._patience is not None:
            self._patience.begin_anew()

    def close(self) -> None:
        """Give the connection back if the body was read, close it at once otherwise."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


def _unread(content: aiohttp.StreamReader) -> bytes:
    """Return what had arrived before the connection broke; the reader itself would not give it out."""
    content.set_exception(None)  # type: ignore[arg-type]  # as if it had not broken yet
    return content.read_nowait()


def _too_slow(error: TimeoutError, timeouts: Timeouts) -> TimeoutError:
    if isinstance(error, aiohttp.ServerTimeoutError):
        return TimeoutError(f"no connection within {timeouts.connect:g} seconds")
    return TimeoutError(f"no reply within {timeouts.first_byte:g} seconds")


def _plain(error: aiohttp.ClientError) -> str:
    """Return what happened in words for people; the client's own are for its developers."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return CUT_SHORT
    return plain_words(error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error)


def _plain_with(proxy: str, error: aiohttp.ClientError) -> str:
    """Return what happened on the way through a proxy, which is not the fault of the host behind it."""
    name = f"the proxy {place_of(proxy)}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"{name} answered {error.status} {error.message}".rstrip()
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"{name} cannot be reached: {plain_words(error.os_error)}"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{name} sent a reply that is not HTTP"
    return f"{_plain(error)} (through {name})"


_shared = AiohttpTransport()  # made here, since threads may come for it at the same time


def shared_transport() -> AiohttpTransport:
    """Return the one transport of this process."""
    return _shared
