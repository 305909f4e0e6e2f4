"""One connection to a server, on which one request after the other is sent."""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from agent_provider_kit.http_reply import MOST_HEAD, HttpReply, too_long
from agent_provider_kit.network import KEPT_ALIVE, READ_BUFFER

if TYPE_CHECKING:
    from agent_provider_kit.http_head import Origin
    from agent_provider_kit.transport import Timeouts

_LARGE = 64 * 1024  # bytes of a body above which copying it takes longer than another system call


class Pool(Protocol):
    """Where a connection is kept while nobody uses it."""

    def idle(self, connection: HttpConnection) -> None:
        """Keep it for the next request."""

    def lost(self, connection: HttpConnection) -> None:
        """Note that it is closed."""


class HttpConnection(asyncio.Protocol):
    """A connection, which feeds what arrives to llhttp and wakes the reader of the reply.

    It closes itself when something is not in order, and tells its pool.

    Attributes:
        origin: Whom it reaches.
        parser: Reads the current reply; a new one for each, which costs less than to make an old one forget.
        idle_since: When its last reply was complete.
        kept_alive: For how many seconds after that it can be used.
    """

    __slots__ = (
        "_loop",
        "_paused",
        "_poll",
        "_pool",
        "_reply",
        "_transport",
        "idle_since",
        "kept_alive",
        "origin",
        "parser",
    )

    def __init__(self, pool: Pool, origin: Origin, loop: asyncio.AbstractEventLoop) -> None:
        self.origin = origin
        self.parser: HttpResponseParser | None = None
        self.idle_since = 0.0
        self.kept_alive = KEPT_ALIVE
        self._loop = loop
        self._paused = False
        self._poll = select.poll()
        self._pool = pool
        self._reply: HttpReply | None = None
        self._transport: asyncio.Transport | None = None

    async def send(
        self, method: str, head: bytes, body: bytes | None, timeouts: Timeouts, deadline: float | None
    ) -> HttpReply:
        """Send a request, and return when the head of its reply is here.

        Raises:
            Disconnected: If the connection ends before a byte of the reply.
            ConnectionError: If the reply makes no sense or breaks off.
            TimeoutError: If it does not begin before the deadline.
        """
        transport = self._transport
        assert transport is not None
        loop = self._loop
        reply = self._reply = HttpReply(self, timeouts, loop, bodiless=method == "HEAD")
        parser = self.parser = HttpResponseParser(reply)
        # As forgiving as other clients: there are servers that end their lines with a line feed alone.
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        timer = None
        if deadline is not None:
            timer = loop.call_at(deadline, _too_slow, reply, timeouts)
        try:
            if body is not None and len(body) > _LARGE:
                transport.write(head)  # joining them would copy the body
                transport.write(body)
            else:
                transport.writelines((head, body) if body else (head,))
            await reply.begin()
        except BaseException:
            reply.close()  # whose connection may serve another request already
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return reply

    @property
    def is_lost(self) -> bool:
        """Whether it was closed, or never stood."""
        return self._transport is None

    def is_fit(self, now: float) -> bool:
        """Tell whether an idle connection can serve another request."""
        transport = self._transport
        return (
            transport is not None
            and not transport.is_closing()
            and now - self.idle_since < self.kept_alive
            # The server may have closed it while the loop was busy or stood still.
            and not self._poll.poll(0)
        )

    def drop(self) -> None:
        """Close at once. Whoever reads a reply from it gets what arrived, and then an error."""
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        """Read again after a pause, if there was one."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN | select.POLLHUP)

    def data_received(self, data: bytes) -> None:
        reply, parser = self._reply, self.parser
        if reply is None or parser is None:
            self.drop()  # nobody asked for anything
            return
        unread = reply.unread
        reply.began = True
        reply.overhead += len(data)
        try:
            parser.feed_data(data)
        except HttpParserUpgrade:
            reply.fail(ConnectionError("the server changes to another protocol, which nobody asked for"))
        except HttpParserError as error:
            if not reply.done:
                words = (
                    f"the reply is broken: {error}" if parser.get_status_code() else "the reply is not HTTP"
                )
                reply.fail(ConnectionError(words))
            reply.reusable = False
        if reply.done:
            self._finish(reply)
        elif reply.unread != unread:
            reply.overhead = 0
            if reply.unread > READ_BUFFER and not self._paused:
                self._paused = True
                cast("asyncio.Transport", self._transport).pause_reading()
            reply.wake()
        elif reply.overhead > MOST_HEAD:
            reply.fail(too_long())

    def eof_received(self) -> None:
        """Close, as the server did, even if it has not read the whole request: it has said all it will."""
        reply, self._reply, self.parser = self._reply, None, None
        if reply is not None:
            reply.end_of_connection(None)
        self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.lost(self)
        reply, self._reply, self.parser, self._transport = self._reply, None, None, None
        if reply is not None:
            reply.end_of_connection(exc)

    def _finish(self, reply: HttpReply) -> None:
        """Part with a reply to which nothing is to be added."""
        self._reply = self.parser = None
        reply.detach()
        transport = self._transport
        # A server may answer before it has read the request; the rest of that would be read as the next one.
        if transport is not None and reply.reusable and not transport.get_write_buffer_size():
            self.resume()
            self.kept_alive = reply.kept_alive
            self._pool.idle(self)
        else:
            self.drop()
        reply.wake()


def _too_slow(reply: HttpReply, timeouts: Timeouts) -> None:
    reply.fail(TimeoutError(f"no reply within {timeouts.first_byte:g} seconds"))
