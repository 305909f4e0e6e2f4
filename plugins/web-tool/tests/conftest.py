"""Real servers on 127.0.0.1, and a way to ask the tool for their pages."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import pytest

from web_tool import WebTool

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

PATIENCE = 60.0
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
Play = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived: what stood in the request line, and the headers by lower-case name."""

    target: str
    headers: Mapping[str, str]


class Site:
    """A server that answers each path with bytes, as they are, or plays something on the connection.

    Attributes:
        pages: What is answered, by path; "*" for all others.
        requests: All requests so far.
        sent: How many bytes were handed to the system.
        connections: How many were accepted so far.
    """

    def __init__(
        self, pages: Mapping[str, bytes | Play], *, address: str, port: int, tls: ssl.SSLContext | None
    ) -> None:
        self.pages: dict[str, bytes | Play] = dict(pages)
        self.requests: list[Received] = []
        self.sent = 0
        self.connections = 0
        self._address, self._port, self._tls = address, port, tls
        self._open = 0
        self._changed = threading.Condition()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(PATIENCE)

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self._address}:{self._port}"

    def wait_for(self, condition: Callable[[Site], bool]) -> None:
        """Wait until something has happened here."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), PATIENCE)

    def wait_until_left(self) -> None:
        """Wait until no client is connected."""
        self.wait_for(lambda site: site._open == 0)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, self._address, self._port, ssl=self._tls)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._note(connections=1, open=1)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client has left
        finally:
            self._note(open=-1)
            writer.close()
            with suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in fields)}
        target = line.split(" ")[1]
        self.requests.append(Received(target, headers))
        self._note()
        page = self.pages.get(target.partition("?")[0], self.pages.get("*", NOT_FOUND))
        if isinstance(page, bytes):
            writer.write(page)
            await writer.drain()
            self.sent += len(page)
        else:
            playing = asyncio.ensure_future(page(writer))
            left = asyncio.ensure_future(reader.read())
            await asyncio.wait([playing, left], return_when=asyncio.FIRST_COMPLETED)
            for task in (playing, left):
                task.cancel()
            await asyncio.gather(playing, left, return_exceptions=True)

    def _note(self, *, connections: int = 0, open: int = 0) -> None:  # noqa: A002 - what is counted
        with self._changed:
            self.connections += connections
            self._open += open
            self._changed.notify_all()


class Sites(Protocol):
    """Starts servers."""

    def __call__(
        self,
        pages: Mapping[str, bytes | Play],
        *,
        address: str = ...,
        port: int = ...,
        tls: ssl.SSLContext | None = ...,
    ) -> Site: ...


@pytest.fixture
def serve() -> Iterator[Sites]:
    """Start servers that are stopped after the test."""
    started: list[Site] = []

    def start(
        pages: Mapping[str, bytes | Play],
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> Site:
        site = Site(pages, address=address, port=port, tls=tls)
        site.__enter__()
        started.append(site)
        return site

    yield start
    for site in started:
        site.__exit__()


LOCAL = {"web_allow_private": ["127.0.0.1"]}


class Reading(Protocol):
    """Calls the tool."""

    def __call__(self, url: str, start: int = ..., *, tool: WebTool | None = ..., **settings: Any) -> Any: ...


@pytest.fixture
def read() -> Reading:
    """Call the tool on an event loop of its own; by default it may reach 127.0.0.1."""

    def call(url: str, start: int = 0, *, tool: WebTool | None = None, **settings: Any) -> dict[str, Any]:
        plugin = tool or WebTool()
        state = plugin.init({**LOCAL, **settings})
        return asyncio.run(plugin.execute_tool("fetch_url", {"url": url, "start": start}, state))

    return call


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxies of whoever runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
