"""A real HTTP server on a port of its own, which plays a script and keeps what it was asked.

It runs on an event loop in a thread. A reply that stalls waits until the test lets it go on or the client
hangs up, and a test waits for what it wants to have happened. Only a reply that drips sleeps, between two
drops, so that it does not fill the client's buffers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import parse_qsl, urlsplit

import orjson

from agent_testing.replies import ServerReply, json_reply

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

_PATIENCE = 60.0
_BETWEEN_DROPS = 0.002
_LARGEST_HEAD = 1024 * 1024
_RESET = struct.pack("ii", 1, 0)  # linger for no time at all: closing sends a reset


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """A request as it arrived.

    Attributes:
        target: What stood in the request line; a proxy gets whole addresses there.
        path: Its path alone.
        query: Its query.
        headers: By lower-case name.
        body: As bytes.
        json: The body decoded, or None if it is not JSON.
        connection: The number of the connection it came on, from 1.
    """

    method: str
    target: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    json: Any
    connection: int

    @property
    def wants_stream(self) -> bool:
        """Whether the answer should come as events, in any of the formats."""
        asked = isinstance(self.json, dict) and self.json.get("stream") is True
        return asked or self.path.endswith((":streamGenerateContent", "/invoke-with-response-stream"))


Line = ServerReply | Callable[[ReceivedRequest], ServerReply]
"""A line of the script: a reply, or a function that makes one of the request."""


class ScriptedServer:
    """Plays replies in order; a context manager.

    Args:
        replies: The script.
        otherwise: What is answered when the script has ended; an error 599 by default.
        tls: The certificate with which it speaks HTTPS.

    Attributes:
        requests: All requests so far.
        connections: How many connections were accepted so far.
        open_connections: How many of them are open.
        stalled: How many replies wait to be released.
        hang_ups: How many clients went away before their reply was complete.
    """

    def __init__(
        self, *replies: Line, otherwise: Line | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self.open_connections = 0
        self.stalled = 0
        self.hang_ups = 0
        self._script: deque[Line] = deque(replies)
        self._otherwise: Line = otherwise or _script_ended
        self._tls = tls
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="scripted-server", daemon=True)
        self._ready = threading.Event()
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(_PATIENCE)
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, closing every connection; nobody is there then. Doing it again does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_PATIENCE)

    @property
    def url(self) -> str:
        """The server's address, without a path."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self._port}"

    @property
    def request(self) -> ReceivedRequest:
        """The last request."""
        return self.requests[-1]

    def play(self, *replies: Line) -> None:
        """Add replies to the script."""
        self._script.extend(replies)

    def release(self) -> None:
        """Let all replies go on that stall now."""
        self._loop.call_soon_threadsafe(self._release)

    def wait_until(self, condition: Callable[[], bool], what: str = "the condition") -> None:
        """Wait for something that the server sees; the condition looks at the server's attributes."""
        with self._changed:
            if not self._changed.wait_for(condition, _PATIENCE):
                raise TimeoutError(f"waited {_PATIENCE:g} seconds for {what}")

    def wait_until_stalled(self, count: int = 1) -> None:
        """Wait until *count* replies have sent what they send before they stall."""
        self.wait_until(lambda: self.stalled >= count, f"{count} replies to stall")

    def wait_until_hung_up(self, count: int = 1) -> None:
        """Wait until *count* clients have closed their connection before their reply was complete."""
        self.wait_until(lambda: self.hang_ups >= count, f"{count} clients to hang up")

    def wait_until_closed(self) -> None:
        """Wait until no connection is open."""
        self.wait_until(lambda: self.open_connections == 0, "all connections to be closed")

    # In the server's thread

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._go_on = asyncio.Event()
        server = await asyncio.start_server(
            self._converse, "127.0.0.1", 0, limit=_LARGEST_HEAD, ssl=self._tls
        )
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    def _release(self) -> None:
        self._go_on.set()
        self._go_on = asyncio.Event()

    def _note(self, **counts: int) -> None:
        with self._changed:
            for name, change in counts.items():
                setattr(self, name, getattr(self, name) + change)
            self._changed.notify_all()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._note(connections=1, open_connections=1)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = self.connections
        try:
            while (request := await _read_request(reader, number)) is not None:
                await self._answer(request, reader, writer)
        except (ConnectionError, _HungUp):
            self._note(hang_ups=1)
        except (_Finished, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._note(open_connections=-1)

    async def _answer(
        self, request: ReceivedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            line = self._script.popleft() if self._script else self._otherwise
        reply = line if isinstance(line, ServerReply) else line(request)
        await _Sending(self, reply, reader, writer).send(streamed=request.wants_stream)

    async def stalling(self, reader: asyncio.StreamReader) -> None:
        """Wait until the test releases the reply; a client that hangs up ends it, too."""
        self._note(stalled=1)
        released = asyncio.ensure_future(self._go_on.wait())
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((released, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                gone.result()
                raise _HungUp
        finally:
            self._note(stalled=-1)
            for waiting in (released, gone):
                waiting.cancel()
            await asyncio.gather(released, gone, return_exceptions=True)


class _HungUp(Exception):
    """The client went away."""


class _Finished(Exception):
    """The reply is over, and the connection with it."""


class _Sending:
    """One reply on its way."""

    def __init__(
        self,
        server: ScriptedServer,
        reply: ServerReply,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._server = server
        self._reply = reply
        self._reader = reader
        self._writer = writer

    async def send(self, *, streamed: bool) -> None:
        reply = self._reply
        payload, content_type = reply.payload(streamed=streamed)
        drips = reply.broken is not None and reply.broken.kind == "drip"
        chunked = drips or (streamed and payload is reply.stream)
        if reply.beginning == "never":
            await self._server.stalling(self._reader)
        elif reply.beginning == "reset":
            self._drop(reset=True)
        elif reply.beginning == "drip":
            await self._write(b"HTTP/1.1 200 Scripted\r\n")
            await self._drip(lambda number: b"x-%d: still there\r\n" % number, chunked=False)
        before, after = self._halves(payload)
        await self._write(_head(reply, content_type, None if chunked else self._length(payload, before)))
        await self._write_body(before, chunked=chunked)
        await self._break(after, chunked=chunked)
        if chunked:
            await self._write(b"0\r\n\r\n")

    def _halves(self, payload: bytes) -> tuple[bytes, bytes]:
        broken = self._reply.broken
        if broken is None:
            return payload, b""
        at = len(payload) // 2 if broken.at is None else broken.at
        return payload[:at], payload[at:]

    def _length(self, payload: bytes, before: bytes) -> int:
        broken = self._reply.broken
        return len(before) if broken is not None and broken.kind == "end" else len(payload)

    async def _break(self, after: bytes, *, chunked: bool) -> None:
        kind = None if self._reply.broken is None else self._reply.broken.kind
        if kind == "stall":
            await self._server.stalling(self._reader)
            await self._write_body(after, chunked=chunked)
        elif kind in ("cut", "reset"):
            self._drop(reset=kind == "reset")
        elif self._reply.broken is not None and kind == "drip":
            await self._drip(self._reply.broken.filler, chunked=chunked)

    async def _drip(self, filler: bytes | Callable[[int], bytes], *, chunked: bool) -> NoReturn:
        for number in count():
            drop = filler if isinstance(filler, bytes) else filler(number)
            await self._write(b"%x\r\n%b\r\n" % (len(drop), drop) if chunked else drop)
            await asyncio.sleep(_BETWEEN_DROPS)
        raise _Finished  # it never comes to that

    def _drop(self, *, reset: bool) -> None:
        if reset:
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._writer.transport.abort()
        raise _Finished

    async def _write_body(self, data: bytes, *, chunked: bool) -> None:
        size = self._reply.piece or len(data) or 1
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            await self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if self._reply.piece:
                await asyncio.sleep(0)

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


def _head(reply: ServerReply, content_type: str, length: int | None) -> bytes:
    framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    lines = [f"HTTP/1.1 {reply.status} Scripted", f"content-type: {content_type}", framing]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _read_request(reader: asyncio.StreamReader, connection: int) -> ReceivedRequest | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None  # before its request is complete, a client may go as it likes
    method, target, _version = first.split(" ", 2)
    parts = urlsplit(target)
    return ReceivedRequest(
        method=method,
        target=target,
        path=parts.path,
        query=dict(parse_qsl(parts.query)),
        headers=headers,
        body=body,
        json=_decoded(body),
        connection=connection,
    )


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _script_ended(request: ReceivedRequest) -> ServerReply:
    return json_reply({"error": {"message": f"no reply is left for {request.method} {request.path}"}}, 599)
