"""How a request leaves the process: a small interface, so that what is behind it can be exchanged.

A transport lives on an event loop and keeps its connections for that loop. Callers without a loop of
their own are served by the core's background loop, so they share one pool too.
"""

from __future__ import annotations

from contextlib import aclosing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping


class Timeouts(NamedTuple):
    """Seconds of patience at each stage; None waits without limit.

    Attributes:
        connect: Until a connection stands.
        first_byte: Until the reply begins.
        idle: Between two pieces of the reply.
        content: Until the reply brings some of its content, however many bytes arrive: comments,
            pings and blanks only show that somebody is there. A reply in one piece must be complete by then.
    """

    connect: float | None = 15.0
    first_byte: float | None = 300.0
    idle: float | None = 120.0
    content: float | None = 900.0


class HttpRequest(NamedTuple):
    """A request, ready to be sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    timeouts: Timeouts = Timeouts()


class HttpResponse(Protocol):
    """A reply whose headers are here and whose body is still to come."""

    status: int
    headers: Mapping[str, str]

    async def read(self, most: int | None = None) -> bytes:
        """Return the whole body; of one that is longer than *most* bytes, somewhat more than that.

        Raises:
            ConnectionError: If the other side hangs up before the end.
            TimeoutError: As of `chunks`.
        """
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, one piece per read of the socket.

        Raises:
            ConnectionError: If the other side hangs up; what had arrived is yielded before.
            TimeoutError: If nothing arrives for too long, or nothing after which `moved_on` is called.
        """
        ...

    def moved_on(self) -> None:
        """Note that the last piece brought content, so that the patience for content begins anew."""
        ...

    def close(self) -> None:
        """Close the connection at once unless the body was read to its end. From the loop's thread."""
        ...


class Transport(Protocol):
    """Sends requests."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send the request and return when the reply's headers are here.

        Raises:
            ConnectionError: If the other side cannot be reached or hangs up.
            TimeoutError: If it takes too long; the message says which stage.
        """
        ...


_instead: list[Transport] = []


def default_transport() -> Transport:
    """Return the transport of this process; the HTTP client is imported now, at first use."""
    if _instead:
        return _instead[-1]
    return real_transport()


@contextmanager
def transport_in_use(transport: Transport) -> Iterator[None]:
    """Send everything through another transport in a block of code, whatever thread sends it; for tests."""
    _instead.append(transport)
    try:
        yield
    finally:
        _instead.remove(transport)


async def read_body(chunks: AsyncGenerator[bytes, None], most: int | None) -> bytes:
    """Return all pieces of a body, or those up to *most* bytes and the one after."""
    pieces, size = [], 0
    async with aclosing(chunks):
        async for piece in chunks:
            pieces.append(piece)
            size += len(piece)
            if most is not None and size > most:
                break
    return b"".join(pieces)


@cache
def real_transport() -> Transport:
    """Return the transport that reaches servers, whatever is in use in its place."""
    from agent_provider_kit.http_transport import shared_transport

    return shared_transport()
