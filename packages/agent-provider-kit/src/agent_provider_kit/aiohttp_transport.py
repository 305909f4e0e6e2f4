"""The transport on aiohttp: one pool of connections per event loop, one TLS context per process."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import ssl
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from agent_provider_kit.transport import HttpRequest, Timeouts

# Which proxy the environment names for an address. The client could look this up itself, but it goes to
# another thread for it, at every request.


_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_READ_BUFFER = 256 * 1024


def proxy_for(url: str) -> str | None:
    """Return the proxy for *url*, or None to go there directly.

    Raises:
        ConnectionError: If the environment names one that is not an HTTP proxy.
    """
    environment = tuple(os.environ.get(name) or os.environ.get(name.upper()) for name in _VARIABLES)
    if not any(environment):
        return None
    parts = urlsplit(url)
    return _lookup(parts.scheme, parts.netloc.rpartition("@")[2], environment)


@lru_cache(maxsize=256)
def _lookup(scheme: str, host: str, environment: tuple[str | None, ...]) -> str | None:
    # The variables are in the key, so that changing one counts.
    http, https, everything, bypass = environment
    if bypass and proxy_bypass_environment(host, {"no": bypass}):
        return None
    chosen = {"http": http, "https": https}.get(scheme) or everything
    return None if chosen is None else _check(chosen if "://" in chosen else f"http://{chosen}")


def _check(proxy: str) -> str:
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https"):
        raise ConnectionError(
            f"the proxy {parts.scheme}://{parts.netloc.rpartition('@')[2]} is not an HTTP proxy: "
            "name one in HTTPS_PROXY, or list the host in NO_PROXY"
        )
    return proxy


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
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=0, ssl=_tls(), keepalive_timeout=60),
        read_bufsize=_READ_BUFFER,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


class AiohttpResponse:
    """A reply whose body is still to come."""

    __slots__ = ("_patience", "_response", "_timeouts", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts) -> None:
        self._response = response
        self._timeouts = timeouts
        self._patience: _Patience | None = None
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, one piece per read of the socket."""
        content = self._response.content
        patience = self._patience = _Patience(self._response, self._timeouts)
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


class _Patience:
    """Closes a response whose reader has waited too long: for bytes, or for content.

    One timer for a whole reply: one for each read costs more than the read. What a reader does between two
    reads costs no patience for bytes. It does cost patience for content, since a server may send its pings
    faster than they are read; a reader who was given content begins anew when it comes for more.

    Attributes:
        waiting_since: When the reader began to wait for the next piece; None while it is busy.
        over: What there was too much waiting for, once it was too much.
    """

    __slots__ = (
        "_content", "_content_since", "_idle", "_loop", "_response", "_timer", "over", "waiting_since"
    )  # fmt: skip

    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts) -> None:
        self.waiting_since: float | None = None
        self.over: str | None = None
        self._response = response
        self._idle = math.inf if timeouts.idle is None else timeouts.idle
        self._content = math.inf if timeouts.content is None else timeouts.content
        self._loop = asyncio.get_running_loop()
        self._content_since = now = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._look_at(now + min(self._idle, self._content))

    def begin_anew(self) -> None:
        """Wait for more content from now on."""
        self._content_since = self._loop.time()

    def wait(self) -> None:
        """Begin to wait for the next piece.

        Raises:
            TimeoutError: If the pieces before brought no content for too long.
        """
        self.waiting_since = now = self._loop.time()
        if now >= self._content_since + self._content:
            self._end(self._no_content())
        if self.over is not None:
            raise TimeoutError(self.over)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, moment: float) -> None:
        if moment < math.inf:
            self._timer = self._loop.call_at(moment, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if self.waiting_since is None:
            self._look_at(now + min(self._idle, self._content))
        elif now >= self._content_since + self._content:
            self._end(self._no_content())
        elif now >= self.waiting_since + self._idle:
            self._end(f"nothing arrived for {self._idle:g} seconds")
        else:
            self._look_at(min(self.waiting_since + self._idle, self._content_since + self._content))

    def _end(self, over: str) -> None:
        self.over = over
        self._response.close()

    def _no_content(self) -> str:
        return (
            f"the connection is alive, but no content arrived for {self._content:g} seconds (content_timeout)"
        )


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
