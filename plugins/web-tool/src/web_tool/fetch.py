"""From a URL to a page: every hop approved anew, every limit kept.

A redirect within a server is followed. One to another server is not: whoever allowed this URL has not seen
that one. It is returned, and the model may ask for it in a call of its own, which is gated like any other.

The proxy is the one that the environment names, for settings that ask for it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import zlib
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib import request

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from web_tool.media import media_type
from web_tool.settings import IMAGE_TYPES
from web_tool.urls import FetchError, join_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from web_tool.reach import Reach
    from web_tool.settings import Settings
    from web_tool.urls import Url


_urllib: Any = request  # the functions are documented, and their types are not there


def proxy_for(url: Url) -> str | None:
    """Return the proxy for *url*, or None to go there directly.

    Raises:
        FetchError: If the environment names one that is not an HTTP proxy.
    """
    proxies: dict[str, str] = _urllib.getproxies_environment()
    chosen = proxies.get(url.scheme) or proxies.get("all")
    if not chosen or _urllib.proxy_bypass_environment(f"{url.host}:{url.port}", proxies):
        return None
    proxy = chosen if "://" in chosen else f"http://{chosen}"
    if not proxy.startswith(("http://", "https://")):
        raise FetchError("the proxy of the environment is not an HTTP proxy: name one in HTTPS_PROXY")
    return proxy


# Unpacking what a server compressed, a little at a time.
#
# A kilobyte can unfold into a megabyte, and that again. So nothing is unpacked before somebody asks for it:
# each piece is small, and whoever has enough stops asking.


ACCEPTED = "gzip, deflate"
_PIECE = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_BEGINS = b"\x1f\x8b"
_DEFLATE = 8  # the method, in the low bits of the first byte of a zlib stream (RFC 1950)


class Unpacker(Protocol):
    """Takes a body as it comes and gives it as it was."""

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """Yield what *packed* unfolds to, in pieces of bounded size.

        Raises:
            FetchError: If it is damaged.
        """

    def finish(self) -> None:
        """Say that nothing more will come.

        Raises:
            FetchError: If something is missing.
        """


def unpacker_for(encoding: str) -> Unpacker:
    """Return what unpacks a body with that Content-Encoding.

    Raises:
        FetchError: If it is packed in a way that nobody asked for.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return _AsItIs()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Deflated(is_gzip=encoding != "deflate")
    raise FetchError(f"the server packed the page as {encoding[:40]!r}, which was not asked for")


class _AsItIs:
    def unpack(self, packed: bytes) -> Iterator[bytes]:
        yield packed

    def finish(self) -> None:
        """Nothing can be missing that the connection would not have missed."""


class _Deflated:
    """A deflated stream; one of gzip may consist of several members, one behind the other."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._member: zlib._Decompress | None = None

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        is_full = False  # then there may be more to come of what was taken in already
        while packed or is_full:
            member = self._member_for(packed)
            if member is None:
                return  # some servers fill up the end with something
            try:
                piece = member.decompress(packed, _PIECE)
            except zlib.error as error:
                raise FetchError(f"the page cannot be unpacked: {error}") from error
            packed = member.unused_data if member.eof else member.unconsumed_tail
            is_full = len(piece) == _PIECE and not member.eof
            if piece:
                yield piece

    def finish(self) -> None:
        if self._member is not None and not self._member.eof:
            raise FetchError("the page broke off while it was being unpacked")

    def _member_for(self, packed: bytes) -> zlib._Decompress | None:
        if self._member is None:
            self._member = zlib.decompressobj(self._window(packed))
        elif self._member.eof:
            if not self._is_gzip or not _GZIP_BEGINS.startswith(packed[:2]):
                return None
            self._member = zlib.decompressobj(_GZIP)
        return self._member

    def _window(self, packed: bytes) -> int:
        if self._is_gzip:
            return _GZIP
        # "deflate" means a zlib stream; some servers send one without its frame.
        return zlib.MAX_WBITS if packed[0] & 0x0F == _DEFLATE else -zlib.MAX_WBITS


# One request, to an address that was approved before.
#
# Each request has a connection of its own. Nothing is kept between two of them: no cookies, no open sockets,
# no answers of name servers. TLS still checks the certificate against the name in the URL.


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
        """Nothing has to be released."""


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
        return "its answer is not HTTP"
    code: Any = getattr(cause, "errno", None)
    said = os.strerror(code) if code in errno.errorcode else str(cause) or type(cause).__name__
    return " ".join(said.split())[:_LONGEST]


_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a server answered.

    Attributes:
        url: Where it was found in the end.
        content_type: As the server said it.
        body: Unpacked; None if it is of a type that is not read.
        is_whole: False if there was more of the body than is read.
        length: How large the server says that it is.
        retry_after: How long the server asks to be left alone, in its own words.
    """

    url: Url
    status: int
    content_type: str
    body: bytes | None
    is_whole: bool
    length: str
    retry_after: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A redirect to another server, which was not followed."""

    source: Url
    url: Url
    status: int


async def fetch(url: Url, reach: Reach) -> Page | Moved:
    """Return the page at *url*, or where it is now.

    Raises:
        FetchError: If it cannot be read; the message says why.
    """
    seconds = reach.settings.timeout
    try:
        async with asyncio.timeout(seconds):
            return await _follow(url, reach)
    except TimeoutError:
        raise FetchError(f"{url} was not read within {seconds:g} seconds and was given up") from None


async def _follow(url: Url, reach: Reach) -> Page | Moved:
    seen = {url}
    while True:
        answer = await _ask(url, reach)
        if isinstance(answer, Page):
            return answer
        if not url.is_same_place(answer.url):
            await _check_move(answer, reach)
            return answer
        url = answer.url
        if url in seen:
            raise FetchError(f"{url} redirects in a circle: it may want cookies, which are not kept")
        if len(seen) > reach.settings.max_redirects:
            raise FetchError(f"{url.host} redirects more than {reach.settings.max_redirects} times")
        seen.add(url)


async def _ask(url: Url, reach: Reach) -> Page | Moved:
    proxy = _proxy(url, reach.settings)
    addresses = await reach.approve(url, proxied=proxy is not None)
    async with open_reply(url, addresses, reach.settings, proxy) as reply:
        if reply.status in _REDIRECTS and "Location" in reply.headers:
            return Moved(url, _target(url, reply.headers["Location"]), reply.status)
        return await _read(url, reply, reach.settings)


def _proxy(url: Url, settings: Settings) -> str | None:
    return proxy_for(url) if settings.use_proxy else None


def _target(url: Url, location: str) -> Url:
    try:
        return join_url(url, location)
    except FetchError as error:
        raise FetchError(f"{url} redirects to something that cannot be followed: {error}") from error


async def _check_move(moved: Moved, reach: Reach) -> None:
    """Refuse at once what would be refused in the next call, so that nobody is asked about it for nothing."""
    try:
        await reach.approve(moved.url, proxied=_proxy(moved.url, reach.settings) is not None)
    except FetchError as error:
        raise FetchError(f"{moved.source} redirects to {moved.url}: {error}") from error


async def _read(url: Url, reply: Reply, settings: Settings) -> Page:
    content_type = reply.headers.get("Content-Type", "")
    said = media_type(content_type)
    body: bytes | None = None
    is_whole = True
    if not said or settings.reads(said):
        limit = settings.max_image_bytes if said in IMAGE_TYPES else settings.max_bytes
        body, is_whole = await reply.read(limit)
    return Page(
        url=url,
        status=reply.status,
        content_type=content_type,
        body=body,
        is_whole=is_whole,
        length=reply.headers.get("Content-Length", ""),
        retry_after=reply.headers.get("Retry-After", ""),
    )
