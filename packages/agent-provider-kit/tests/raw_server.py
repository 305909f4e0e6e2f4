"""A server that sends bytes as they are, to see what a client makes of them."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

CLOSE = b"(close)"
"""As a piece of a reply: the connection is closed."""

WAIT = b"(wait)"
"""As a piece of a reply: nothing happens until the test sets `go_on`, or the client hangs up."""


class RawServer:
    """Sends a reply in pieces for each request; an async context manager on the loop of the test.

    Attributes:
        requests: What arrived, as bytes.
        connections: How many were accepted.
        open: How many of them are open.
        go_on: Lets replies go on that wait.
        changed: Is notified when any of that changes.
    """

    def __init__(self, *replies: Sequence[bytes], tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.connections = self.open = self.waiting = 0
        self.go_on = asyncio.Event()
        self.changed = asyncio.Condition()
        self.protocols: list[str | None] = []
        self._replies = list(replies)
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"
        return self

    def stop(self) -> None:
        """Accept no more connections."""
        self._server.close()

    async def __aexit__(self, *_error: object) -> None:
        self.stop()
        self.go_on.set()

    async def wait_until_closed(self) -> None:
        """Wait until no connection is open."""
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(lambda: self.open == 0), 60)

    async def wait_until_waiting(self) -> None:
        """Wait until a reply waits."""
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(lambda: self.waiting > 0), 60)

    async def _note(self, opened: int = 0, waiting: int = 0) -> None:
        async with self.changed:
            self.open += opened
            self.waiting += waiting
            self.changed.notify_all()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await self._note(opened=1)
        tls = writer.get_extra_info("ssl_object")
        self.protocols.append(tls and tls.selected_alpn_protocol())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                self.requests.append(head + await reader.readexactly(int(length[1]) if length else 0))
                for piece in self._replies.pop(0):
                    await self._send(piece, reader, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, IndexError):
            pass
        finally:
            writer.close()
            await self._note(opened=-1)

    async def _send(self, piece: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if piece is CLOSE:
            raise ConnectionError
        if piece is WAIT:
            await self._note(waiting=1)
            gone = asyncio.ensure_future(reader.read(1))
            released = asyncio.ensure_future(self.go_on.wait())
            await asyncio.wait((gone, released), return_when=asyncio.FIRST_COMPLETED)
            for each in (gone, released):
                each.cancel()
            await asyncio.gather(gone, released, return_exceptions=True)
            await self._note(waiting=-1)
            return
        writer.write(piece)
        await writer.drain()
