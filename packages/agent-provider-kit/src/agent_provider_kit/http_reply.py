"""A reply as it arrives: what llhttp reads of it, its headers, and its body piece by piece."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from agent_provider_kit.network import CUT_SHORT, KEPT_ALIVE, READ_BUFFER, Patience, plain_words
from agent_provider_kit.transport import read_body

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, ItemsView, Iterator

    from httptools import HttpResponseParser

    from agent_provider_kit.transport import Timeouts

MOST_HEAD = 64 * 1024
_MOST_FIELDS = 200
_FIRST_FINAL = 200  # replies below this status announce another one
_ENCODING = b"content-encoding"
_KEEP_ALIVE = b"keep-alive"
_TIMEOUT = re.compile(rb"timeout=\"?(\d{1,9})", re.IGNORECASE)
_GZIP, _ZLIB, _RAW = 31, 15, -15  # how zlib is told what it unpacks
_DEFLATE = 8  # in the low bits of the first byte of a zlib stream (RFC 1950)

DISCONNECTED = "Server disconnected"

Fields = list[tuple[bytes, bytes]]


class Disconnected(ConnectionError):
    """The connection ended before a single byte of the reply."""


class ReplyHeaders(Mapping[str, str]):
    """The headers of a reply; case does not matter. Most are never read, so each is decoded when it is."""

    __slots__ = ("_fields", "_values")

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._values: dict[bytes, bytes] | None = None

    def __getitem__(self, name: str) -> str:
        values = self._values
        if values is None:
            values = self._values = _joined(self._fields)
        try:
            return values[name.lower().encode()].decode("utf-8", "surrogateescape")
        except KeyError:
            raise KeyError(name) from None

    def items(self) -> ItemsView[str, str]:
        """Return all headers; in one go, since each alone would be looked up and decoded by itself."""
        values = _joined(self._fields)
        spelled = {name.lower(): name for name, _ in reversed(self._fields)}
        decoded = {
            spelled[name].decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
            for name, value in values.items()
        }
        return decoded.items()

    def __iter__(self) -> Iterator[str]:
        spelled = {name.lower(): name for name, _ in reversed(self._fields)}
        return iter([spelled[name].decode("utf-8", "surrogateescape") for name in _joined(self._fields)])

    def __len__(self) -> int:
        return len({name.lower() for name, _ in self._fields})


def _joined(fields: Fields) -> dict[bytes, bytes]:
    values: dict[bytes, bytes] = {}
    for name, value in fields:
        lower = name.lower()
        if lower not in values:
            values[lower] = value.strip()
        elif lower != b"set-cookie":  # its values have commas of their own (RFC 9110, 5.3)
            values[lower] += b", " + value.strip()
    return values


class Connection(Protocol):
    """What a reply needs of the connection on which it arrives."""

    parser: HttpResponseParser | None

    def drop(self) -> None:
        """Close at once; the reply is of no interest any more."""

    def resume(self) -> None:
        """Read again after a pause, if there was one."""


class HttpReply:
    """A reply, which llhttp reads for it and whose reader takes the body from it.

    It has the body that nobody has read yet, so that its connection can serve another request as soon as
    the last byte was there.

    Attributes:
        status: 0 until the head is complete.
        headers: Empty until then.
        began: Whether any of it has arrived.
        done: Whether nothing more will arrive, since it is complete or has failed.
        reusable: Whether it is complete and leaves its connection in order.
        kept_alive: For how many seconds its connection can wait for another request.
        unread: How many bytes of the body wait.
        overhead: How many bytes arrived since the last of the body.
    """

    __slots__ = (
        "_bodiless", "_connection", "_decoder", "_error", "_fields", "_loop", "_parts", "_patience",
        "_timeouts", "_waiter", "began", "done", "headers", "kept_alive", "overhead", "reusable", "status",
        "unread",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        timeouts: Timeouts,
        loop: asyncio.AbstractEventLoop,
        *,
        bodiless: bool,
    ) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.began = self.done = self.reusable = False
        self.kept_alive = KEPT_ALIVE
        self.unread = self.overhead = 0
        self._bodiless = bodiless
        self._connection: Connection | None = connection
        self._decoder: _Decoder | None = None
        self._error: Exception | None = None
        self._fields: Fields = []
        self._loop = loop
        self._parts: list[bytes] = []
        self._patience: Patience | None = None
        self._timeouts = timeouts
        self._waiter: asyncio.Future[None] | None = None

    async def begin(self) -> None:
        """Wait for the head.

        Raises:
            ConnectionError: If it does not come.
            TimeoutError: If it does not come in time.
        """
        self._waiter = waiter = self._loop.create_future()
        await waiter
        if not self.status:
            raise self._error or ConnectionError(CUT_SHORT)

    async def read(self, most: int | None = None) -> bytes:
        """Return the whole body, or somewhat more than *most* bytes of it."""
        if self.done and self._error is None and self._decoder is None:
            return self._take()  # it came together with the head, as most do
        return await read_body(self.chunks(), most)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, all that is there in one piece."""
        patience = self._patience = Patience(self.close, self._timeouts)
        decoder = self._decoder
        try:
            while True:
                patience.wait()
                if not self._parts and not self.done:
                    self._waiter = waiter = self._loop.create_future()
                    await waiter
                patience.waiting_since = None
                if not self._parts:
                    break
                if decoder is None:
                    yield self._take()
                else:
                    for piece in decoder.unpack(self._take()):
                        yield piece
            if patience.over is not None:
                raise TimeoutError(patience.over)
            if self._error is not None:
                raise self._error
            if decoder is not None:
                decoder.finish()
        finally:
            patience.stop()
            self._patience = None  # they know each other, which only the garbage collector would end
            self.close()

    def moved_on(self) -> None:
        """Note that the last piece brought content."""
        if self._patience is not None:
            self._patience.begin_anew()

    def close(self) -> None:
        """Close the connection at once, unless the reply is complete and the connection serves others."""
        self.fail(ConnectionError(CUT_SHORT))

    # What the connection tells

    def fail(self, error: Exception) -> None:
        """Let the reader have what arrived and then this error; the connection is closed."""
        connection = self._connection
        if connection is not None:
            self._stop(error)
            self.detach()
            connection.drop()

    def detach(self) -> None:
        """Part with the connection; nothing more comes from it."""
        self._connection = None

    def end_of_connection(self, error: Exception | None) -> None:
        """Note that the connection is closed, which is how some replies end."""
        self.detach()
        if self.done:
            return
        if not self.began:
            words = DISCONNECTED if error is None else plain_words(error)
            self._stop(Disconnected(words))
        elif self.status and error is None and self._ends_with_connection():
            self._stop(None)
        else:
            self._stop(ConnectionError(CUT_SHORT))

    def wake(self) -> None:
        """Let the reader go on, if it waits."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def _stop(self, error: Exception | None) -> None:
        if not self.done:
            self.done = True
            self._error = error
        self.wake()

    def _take(self) -> bytes:
        parts = self._parts
        if len(parts) == 1:
            piece = parts.pop()
        else:
            piece = b"".join(parts)
            parts.clear()
        self.unread = 0
        if self._connection is not None:
            self._connection.resume()
        return piece

    def _ends_with_connection(self) -> bool:
        chunked = "chunked" in self.headers.get("Transfer-Encoding", "").lower()
        return not chunked and "Content-Length" not in self.headers

    # What llhttp tells

    def on_message_begin(self) -> None:
        if self.done:
            self.reusable = False  # nobody asked for a second reply

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # later ones are trailers, which nobody reads
            # llhttp tolerates blanks before the colon, and so must whoever asks for the header.
            self._fields.append((name.rstrip(), value))

    def on_headers_complete(self) -> None:
        connection = self._connection
        if self.done or connection is None or connection.parser is None:
            return
        status = connection.parser.get_status_code()
        if status < _FIRST_FINAL:
            self._fields = []  # 100 Continue and the like: the reply itself follows
            return
        try:
            self._check_fields()
        except ConnectionError as error:
            self._stop(error)
            return
        self.headers = ReplyHeaders(self._fields)
        self.status = status
        if self._bodiless:
            self._stop(None)  # whatever its headers say about a body
        self.wake()

    def _check_fields(self) -> None:
        fields = self._fields
        if len(fields) > _MOST_FIELDS:
            raise ConnectionError(f"the reply has more than {_MOST_FIELDS} headers")
        if self.overhead > MOST_HEAD and sum(len(one) + len(other) + 4 for one, other in fields) > MOST_HEAD:
            raise too_long()
        for name, value in fields:
            if len(name) == len(_ENCODING) and name.lower() == _ENCODING:
                self._decoder = _decoder_for(value)
            elif len(name) == len(_KEEP_ALIVE) and name.lower() == _KEEP_ALIVE:
                self.kept_alive = min(KEPT_ALIVE, _promised(value))

    def on_body(self, data: bytes) -> None:
        if not self.done:
            self._parts.append(data)
            self.unread += len(data)

    def on_message_complete(self) -> None:
        connection = self._connection
        if self.status and not self.done and connection is not None and connection.parser is not None:
            self.done = True
            self.reusable = connection.parser.should_keep_alive()


def too_long() -> ConnectionError:
    """Return what to say about a server that sends headers without end."""
    return ConnectionError(f"the headers of the reply are longer than {MOST_HEAD // 1024} KiB")


def _promised(keep_alive: bytes) -> float:
    """Return how long a server keeps a connection, less a second in which a request is on its way."""
    found = _TIMEOUT.search(keep_alive)
    return float(found[1]) - 1 if found else KEPT_ALIVE


class _Decoder:
    """Unpacks a body that came compressed although nobody asked for it, in pieces of a bounded size."""

    __slots__ = ("_begun", "_gzip", "_unpack")

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._begun = False
        self._unpack = zlib.decompressobj(_GZIP)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        if not self._gzip and not self._begun:
            # "deflate" means a zlib stream, but some servers send what is inside one (RFC 9110, 8.4.1.2).
            self._unpack = zlib.decompressobj(_ZLIB if data[0] & 15 == _DEFLATE else _RAW)
        self._begun = True
        try:
            while data or not self._unpack.eof:
                if self._unpack.eof:
                    if not self._gzip or not data.startswith(b"\x1f"):
                        return  # padding
                    self._unpack = zlib.decompressobj(_GZIP)  # a file of several members
                piece = self._unpack.decompress(data, READ_BUFFER)
                if piece:
                    yield piece
                elif not data:
                    return  # the rest is still to come
                data = self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail
        except zlib.error as error:
            raise ConnectionError(f"the compressed reply cannot be unpacked: {error}") from error

    def finish(self) -> None:
        if self._begun and not self._unpack.eof:
            raise ConnectionError("the compressed reply breaks off")


def _decoder_for(encoding: bytes) -> _Decoder | None:
    name = encoding.strip().lower()
    if name in (b"", b"identity"):
        return None
    if name in (b"gzip", b"x-gzip", b"deflate"):
        return _Decoder(gzip=name != b"deflate")
    shown = name.decode("ascii", "replace")
    raise ConnectionError(f"the reply is compressed as {shown!r}, which nobody asked for")
