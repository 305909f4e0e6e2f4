"""Listens at an address and answers requests; readers and runs are looked after when it stops."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agent_server.event_stream import SlowReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_server.application import Server

HEADER_SECONDS = 60.0
"""How long a client may take to begin a request, and then to send its headers."""
MOST_HEADERS = 100_000
"""How many bytes the headers of a request may have; the packet that ends them is not counted."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_COLLECT_AFTER = (10_000, 20, 20)


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 means any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host.strip("[]"), port))
        opened.listen(2048)
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)  # noqa: FBT003 - its name says what is meant
    return opened


def _is_failure(record: logging.LogRecord) -> bool:
    """Say whether uvicorn reports a failure, and not that a slow reader was cut off."""
    return not (record.exc_info and isinstance(record.exc_info[1], SlowReader))


class _Connection(HttpToolsProtocol):
    """A connection that ends if a request does not begin, or its headers are not there, within some seconds.

    Uvicorn waits for both for ever and keeps all headers that come, so that silent connections would add up
    until no more can be opened, and endless headers until the memory is full. How long and how large the body
    may be is looked after where it is read.
    """

    _waiting: asyncio.TimerHandle | None = None
    _size = 0  # of the headers that are not complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as there
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waiting is not None:
            if self._size > MOST_HEADERS:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
            self._size += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._size = 0
        super().on_headers_complete()

    def _wait(self) -> None:
        self._stop_waiting()
        self._waiting = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Uvicorn(uvicorn.Server):
    """Uvicorn, whose end begins with ours: readers are sent away before it waits for their connections."""

    def __init__(self, server: Server, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                server,
                http=_Connection,
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                lifespan="off",
                ws="none",
                timeout_keep_alive=75,
                timeout_graceful_shutdown=30,
            )
        )
        # It would write addresses with their queries, and `access_log` alone does not stop it.
        logging.getLogger("uvicorn.access").disabled = True
        logging.getLogger("uvicorn.error").addFilter(_is_failure)
        self._server = server
        self._ready = ready

    def answer(self, listening: socket.socket) -> None:
        """Answer requests until it should exit."""
        with asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            runner.run(self.serve(sockets=[listening]))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
        await self._server.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop for signals, which is not a failure: uvicorn would raise them again in the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def serve(server: Server, listening: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Answer requests until SIGINT or SIGTERM.

    Args:
        ready: Called when requests are answered.
    """
    # Requests make many values that live until their end, and few circles: Python's own thresholds have
    # everything looked through too often.
    gc.set_threshold(*_COLLECT_AFTER)
    _Uvicorn(server, ready).answer(listening)


@contextmanager
def background(server: Server, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Answer requests in a thread while the block lasts, and give the address: for tests and notebooks."""
    begun = threading.Event()
    listening = open_socket(host, port)
    running = _Uvicorn(server, begun.set)
    thread = threading.Thread(target=running.answer, args=(listening,), name="server", daemon=True)
    thread.start()
    begun.wait()
    try:
        yield f"http://{host}:{listening.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
