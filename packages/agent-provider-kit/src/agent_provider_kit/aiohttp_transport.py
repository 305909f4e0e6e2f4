"""The transport on aiohttp: one pool of connections per event loop, one TLS context per process."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp

from agent_provider_kit.proxies import proxy_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from agent_provider_kit.transport import HttpRequest, Timeouts

_READ_BUFFER = 256 * 1024


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
        client = self._clients.get(asyncio.get_running_loop()) or await self._open_client()
        pending = client.request(
            request.method,
            request.url,
            headers=dict(request.headers),
            data=request.body,
            timeout=aiohttp.ClientTimeout(total=None, connect=timeouts.connect),
            allow_redirects=False,
            proxy=proxy_for(request.url),
            skip_auto_headers=("User-Agent",) if "User-Agent" in request.headers else (),
        )
        try:
            async with asyncio.timeout(timeouts.first_byte):
                response = await pending
        except TimeoutError as error:
            raise _too_slow(error, timeouts) from error
        except aiohttp.ClientError as error:
            raise ConnectionError(_plain(error)) from error
        return AiohttpResponse(response, timeouts.idle)

    async def _open_client(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        for closed in [other for other in self._clients if other.is_closed()]:
            self._forget(closed)  # it ended without telling anyone
        lifetime = self._lifetimes[loop] = self._live(loop)
        return await anext(lifetime)

    async def _live(self, loop: asyncio.AbstractEventLoop) -> AsyncIterator[aiohttp.ClientSession]:
        """Keep a client open until its loop ends.

        Loops tell nobody that they end, but before they do they close every async generator that is
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
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=0, ssl=_tls(), keepalive_timeout=60),
        read_bufsize=_READ_BUFFER,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


class AiohttpResponse:
    """A reply whose body is still to come."""

    __slots__ = ("_idle", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, idle: float | None) -> None:
        self._response = response
        self._idle = idle
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, one piece per read of the socket."""
        content = self._response.content
        watch = _IdleWatch(self._response, self._idle)
        now = asyncio.get_running_loop().time
        try:
            while True:
                watch.waiting_since = now()
                piece = await content.readany()
                watch.waiting_since = None
                if not piece:
                    break
                yield piece
        except aiohttp.ClientError as error:
            if watch.expired:
                raise TimeoutError(f"nothing arrived for {self._idle:g} seconds") from None
            if unread := _unread(content):
                yield unread
            raise ConnectionError(_plain(error)) from error
        finally:
            watch.stop()
            self.close()

    def close(self) -> None:
        """Give the connection back if the body was read, close it at once otherwise."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


class _IdleWatch:
    """Closes a response that somebody has waited for in vain for too long.

    One timer for a whole reply: one for each read costs more than the read.
    """

    __slots__ = ("_idle", "_loop", "_response", "_timer", "expired", "waiting_since")

    def __init__(self, response: aiohttp.ClientResponse, idle: float | None) -> None:
        self.waiting_since: float | None = None
        self.expired = False
        self._response = response
        self._idle = idle or 0.0
        self._loop = asyncio.get_running_loop()
        self._timer = None if idle is None else self._loop.call_later(idle, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        due = (now if self.waiting_since is None else self.waiting_since) + self._idle
        if due > now:
            self._timer = self._loop.call_at(due, self._look)
        else:
            self.expired = True
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
        return "the connection was closed before the reply was complete"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    code: Any = None if isinstance(cause, ssl.SSLError) else getattr(cause, "errno", None)
    return os.strerror(code) if code in errno.errorcode else str(cause) or type(cause).__name__


@cache
def _tls() -> ssl.SSLContext:
    """One context for all connections: making one costs more than a request."""
    return ssl.create_default_context()


_shared = AiohttpTransport()  # made here, since threads may come for it at the same time


def shared_transport() -> AiohttpTransport:
    """Return the one transport of this process."""
    return _shared
