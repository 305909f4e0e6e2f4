"""The transport of providers: HTTP/1.1 on asyncio and llhttp, one pool of connections per event loop.

A request to a model is JSON in one piece, and its reply is JSON or a stream of events. So there are no
cookies, redirects, uploads or HTTP/2 here, and what is left costs a third of a complete client.
"""

from __future__ import annotations

import asyncio
import math
import socket
from typing import TYPE_CHECKING

from aiohappyeyeballs import start_connection

from agent_provider_kit.http_connection import HttpConnection
from agent_provider_kit.http_head import find_target, write_head
from agent_provider_kit.http_reply import DISCONNECTED, Disconnected
from agent_provider_kit.network import KEPT_ALIVE, plain_words, proxy_for, shared_tls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from aiohappyeyeballs import AddrInfoType

    from agent_provider_kit.http_head import Origin
    from agent_provider_kit.transport import HttpRequest, HttpResponse, Timeouts

_REPEATABLE = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"))  # RFC 9110, 9.2.2
_NEXT_ADDRESS = 0.25  # seconds after which another address of the host is tried beside the first (RFC 8305)


class HttpTransport:
    """Keeps connections open between requests, as many as are needed at once.

    Where the environment names a proxy (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY), the request goes
    through the transport on aiohttp, which is imported then.
    """

    def __init__(self) -> None:
        self._pools: dict[asyncio.AbstractEventLoop, HttpPool] = {}
        self._lifetimes: dict[asyncio.AbstractEventLoop, AsyncIterator[HttpPool]] = {}

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send the request and return when the reply's headers are here."""
        method, url, headers, body, timeouts = request
        if proxy_for(url) is not None:
            from agent_provider_kit.aiohttp_transport import shared_transport

            return await shared_transport().send(request)
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop) or await self._open_pool(loop)
        target = find_target(url)
        head = write_head(target, method, headers, body)
        now = loop.time()
        deadline = None if timeouts.first_byte is None else now + timeouts.first_byte
        connection = pool.take(target.origin, now)
        if connection is not None:
            try:
                return await connection.send(method, head, body, timeouts, deadline)
            except Disconnected:
                # The server may close a connection at the moment in which it is used again. Whether it has
                # read the request nobody knows, so only what does no harm when it is done twice is repeated.
                if method not in _REPEATABLE:
                    raise
        connection = await pool.connect(target.origin, timeouts, deadline)
        return await connection.send(method, head, body, timeouts, deadline)

    async def _open_pool(self, loop: asyncio.AbstractEventLoop) -> HttpPool:
        for closed in [other for other in list(self._pools) if other.is_closed()]:
            self._forget(closed)  # it ended without telling anyone
        lifetime = self._lifetimes[loop] = self._live(loop)
        return await anext(lifetime)

    async def _live(self, loop: asyncio.AbstractEventLoop) -> AsyncIterator[HttpPool]:
        """Keep a pool open until its loop ends.

        A loop announces its end to nobody, but before it ends it closes every async generator that is
        still suspended. So the pool lives in one.
        """
        pool = self._pools[loop] = HttpPool(loop)
        try:
            yield pool
        finally:
            self._forget(loop)
            await pool.close()

    def _forget(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pools.pop(loop, None)
        self._lifetimes.pop(loop, None)


class HttpPool:
    """The connections of one event loop."""

    __slots__ = ("_closed", "_empty", "_idle", "_loop", "_open", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._closed = False
        self._empty: asyncio.Future[None] | None = None
        self._idle: dict[Origin, list[HttpConnection]] = {}  # the one used last is at the end
        self._loop = loop
        self._open: set[HttpConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, origin: Origin, now: float) -> HttpConnection | None:
        """Return a connection that waits for a request, if there is one in good order."""
        waiting = self._idle.get(origin)
        while waiting:
            connection = waiting.pop()
            if connection.is_fit(now):
                return connection
            connection.drop()
        return None

    async def connect(self, origin: Origin, timeouts: Timeouts, deadline: float | None) -> HttpConnection:
        """Open a connection.

        Raises:
            ConnectionError: If nobody is there, or it is not who it should be.
            TimeoutError: If it takes too long.
        """
        now = self._loop.time()
        connect = math.inf if timeouts.connect is None else now + timeouts.connect
        limit = min(connect, math.inf if deadline is None else deadline)
        connection = HttpConnection(self, origin, self._loop)
        try:
            async with asyncio.timeout_at(None if limit == math.inf else limit):
                await self._reach(connection)
        except OSError as error:
            if not isinstance(error, TimeoutError) or error.errno is not None:  # the system's own has one
                raise ConnectionError(plain_words(error)) from error
            if limit == connect:
                raise TimeoutError(f"no connection within {timeouts.connect:g} seconds") from None
            raise TimeoutError(f"no reply within {timeouts.first_byte:g} seconds") from None
        if connection.is_lost:
            raise ConnectionError(DISCONNECTED)
        # Only now: of a connection that is given up before, uvloop does not say that it is closed.
        self._open.add(connection)
        if self._closed:
            connection.drop()
        return connection

    async def _reach(self, connection: HttpConnection) -> None:
        secure, host, port = connection.origin
        # Not the race inside create_connection: it loses a socket when it is cancelled at the wrong moment,
        # and uvloop has none. So every socket is made, and closed, here.
        made: list[socket.socket] = []

        def make(found: AddrInfoType) -> socket.socket:
            made.append(socket.socket(*found[:3]))
            return made[-1]

        try:
            chosen = await start_connection(
                await self._addresses(host, port), happy_eyeballs_delay=_NEXT_ADDRESS, socket_factory=make
            )
            await self._loop.create_connection(
                lambda: connection,
                sock=chosen,
                ssl=shared_tls() if secure else None,
                server_hostname=host.rstrip(".") if secure else None,
            )
        except BaseException:
            connection.drop()
            for each in made:
                each.close()
            raise

    async def _addresses(self, host: str, port: int) -> Sequence[AddrInfoType]:
        try:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:  # it is a name, so somebody is asked, in another thread
            return await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def close(self) -> None:
        """Close every connection, and return when they are."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._idle.clear()
        for connection in list(self._open):
            connection.drop()
        while self._open:
            self._empty = self._loop.create_future()
            await self._empty

    # What connections tell

    def idle(self, connection: HttpConnection) -> None:
        """Keep a connection for the next request to the same server."""
        if self._closed:
            connection.drop()
            return
        connection.idle_since = now = self._loop.time()
        waiting = self._idle.get(connection.origin)
        if waiting is None:
            self._idle[connection.origin] = [connection]
        else:
            waiting.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_at(now + KEPT_ALIVE, self._sweep)

    def lost(self, connection: HttpConnection) -> None:
        """Forget a connection that is closed."""
        self._open.discard(connection)
        waiting = self._idle.get(connection.origin, [])
        if connection in waiting:
            waiting.remove(connection)
        if self._empty is not None and not self._open and not self._empty.done():
            self._empty.set_result(None)

    def _sweep(self) -> None:
        """Close what has been idle for long; one timer does it for all connections."""
        now = self._loop.time()
        for origin, waiting in list(self._idle.items()):
            while waiting and now - waiting[0].idle_since >= KEPT_ALIVE:
                waiting.pop(0).drop()
            if not waiting:
                del self._idle[origin]
        oldest = min((waiting[0].idle_since for waiting in self._idle.values()), default=None)
        self._timer = None if oldest is None else self._loop.call_at(oldest + KEPT_ALIVE, self._sweep)


_shared = HttpTransport()  # made here, since threads may come for it at the same time


def shared_transport() -> HttpTransport:
    """Return the one transport of this process."""
    return _shared
