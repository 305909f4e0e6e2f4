"""One request, to an address that was approved before.

Each request has a connection of its own. Nothing is kept between two of them: no cookies, no open sockets, no
answers of name servers. TLS still checks the certificate against the name in the URL.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from web_tool.errors import FetchError
from web_tool.unpacking import ACCEPTED, unpacker_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from web_tool.settings import Settings
    from web_tool.urls import Url

_ACCEPT = "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, */*;q=0.5"
_LONGEST = 200
_PACKING = 64 * 1024
"""So much more than its content may a packed page be; nobody packs to make things larger."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer whose headers are here and whose body is still to come."""

    status: int
    headers: Mapping[str, str]
    _response: aiohttp.ClientResponse

    async def read(self, limit: int) -> tuple[bytes, bool]:
        """Return the unpacked body, or its first *limit* bytes, and whether that is all of it.

        Raises:
            FetchError: If it cannot be unpacked.
        """
        unpacker = unpacker_for(self.headers.get("Content-Encoding", ""))
        body, came = bytearray(), 0
        async for packed in self._response.content.iter_any():
            for piece in unpacker.unpack(packed):
                body += piece
                if len(body) > limit:
                    return bytes(body[:limit]), False
            came += len(packed)
            if came > limit + _PACKING:  # packed, and larger than what comes out of it
                return bytes(body), False
        unpacker.finish()
        return bytes(body), True


@asynccontextmanager
async def open_reply(
    url: Url, addresses: Sequence[str], settings: Settings, proxy: str | None = None
) -> AsyncIterator[Reply]:
    """Send a request to one of *addresses* (or to a proxy), yield the answer, and close the connection.

    Raises:
        FetchError: If nobody answers, or not in HTTP, or not in time, or breaks off.
    """
    try:
        async with (
            _client(addresses, settings, proxy) as client,
            client.get(URL(str(url), encoded=True), allow_redirects=False, proxy=proxy) as response,
        ):
            yield Reply(response.status, response.headers, response)
    except TimeoutError as error:
        waited = f"nothing came from {url.host} for {settings.idle_timeout:g} seconds"
        raise FetchError(f"{waited}: try again later, or another page") from error
    except aiohttp.ClientPayloadError as error:
        raise FetchError(f"{url.host} closed the connection before the page was complete") from error
    except (aiohttp.ClientError, OSError) as error:
        raise FetchError(f"{url.host} cannot be read: {_plain(error)}") from error


def _client(addresses: Sequence[str], settings: Settings, proxy: str | None) -> aiohttp.ClientSession:
    resolver = None if proxy else _Pinned(addresses)
    idle = settings.idle_timeout
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            resolver=resolver, use_dns_cache=False, force_close=True, ssl=_tls(), limit=1
        ),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=idle, sock_read=idle),
        headers={"User-Agent": settings.user_agent, "Accept": _ACCEPT, "Accept-Encoding": ACCEPTED},
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


class _Pinned(AbstractResolver):
    """Answers with the addresses that were approved, whatever a name server would say by now."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the approved addresses; aiohttp asks, whichever family it would like."""
        del family
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


@cache
def _tls() -> ssl.SSLContext:
    """One context for all connections: making one costs more than a request."""
    return ssl.create_default_context()


def _plain(error: Exception) -> str:
    """Return what happened in words for people; the client's own are for its developers."""
    cause: Any = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ssl.SSLError | ssl.CertificateError):
        return f"its certificate is not good ({getattr(cause, 'verify_message', None) or cause.reason})"
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return "it closed the connection without an answer"
    if isinstance(cause, aiohttp.ClientResponseError):
        return "what it answers is no HTTP"
    code: Any = getattr(cause, "errno", None)
    said = os.strerror(code) if code in errno.errorcode else str(cause) or type(cause).__name__
    return " ".join(said.split())[:_LONGEST]
