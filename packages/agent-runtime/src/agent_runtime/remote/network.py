"""The connection to a remote agent: an httpx transport that checks, pins and counts.

Every request passes through here, whatever URL the SDK took from wherever: the address is judged and the
connection goes to the address that was judged (with the name kept for TLS and the `Host` header); the
token is added for the endpoint's own origin only; what comes back is counted while it is read. Redirects
are not followed, proxies of the environment are not used, and compressed answers are refused, since
a few bytes can unfold into very many.

A name is looked up once and all of its addresses are judged, so a name server that answers differently the
second time gains nothing. An IPv4 address can hide inside an IPv6 one, or be written as one number, in octal
or in hexadecimal; all of these are unwrapped first.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

import httpx

from agent_core.frozen import EMPTY
from agent_core.product import USER_AGENT

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator, Mapping

    from agent_runtime.remote.agent import RemoteAgent


CARD_BYTES = 256 * 1024
CONNECT_SECONDS = 10.0
_PORTS = {"http": 80, "https": 443}


def origin(url: str | httpx.URL) -> tuple[str, str, int]:
    """Return scheme, host and port of *url*.

    Raises:
        httpx.InvalidURL: If it is not a URL with http or https.
    """
    parsed = httpx.URL(url)
    if parsed.scheme not in _PORTS or not parsed.host:
        raise httpx.InvalidURL(f"{parsed.scheme!r} is not http or https, or there is not a host")
    return parsed.scheme, parsed.host, parsed.port or _PORTS[parsed.scheme]


class Allowance:
    """How many bytes may still come."""

    def __init__(self, agent: RemoteAgent, limit: int, what: str, hint: str) -> None:
        self._agent = agent
        self._limit = limit
        self._left = limit
        self._what = what
        self._hint = hint

    def take(self, size: int) -> None:
        """Count bytes.

        Raises:
            RemoteAgentError: If they are too many.
        """
        self._left -= size
        if self._left < 0:
            problem = f"{self._what} is larger than {self._limit} bytes; reading was stopped"
            raise self._agent.error("too_large", problem, self._hint)


class Wire(httpx.AsyncBaseTransport):
    """Carries the requests of one call.

    Attributes:
        allowance: What is counted now; replaced from one stage of the call to the next.
    """

    def __init__(self, agent: RemoteAgent, trace: Mapping[str, str] = EMPTY) -> None:
        self._agent = agent
        self._trace = trace
        self._origin = origin(agent.endpoint.url)
        self._inner = httpx.AsyncHTTPTransport(verify=_trusted_authorities())
        self._pinned: dict[tuple[str, int], list[str]] = {}
        self.allowance = Allowance(agent, CARD_BYTES, "its agent card", "ask its owner for a smaller one")

    def allow_answer(self) -> None:
        """Count from here on what the endpoint allows for an answer."""
        limit = self._agent.endpoint.max_bytes
        self.allowance = Allowance(
            self._agent, limit, "its answer", "ask for less, or raise endpoint.max_bytes"
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to one of the judged addresses of its host."""
        scheme, host, port = origin(request.url)
        headers = request.headers.copy()
        if self._agent.endpoint.token is not None and (scheme, host, port) == self._origin:
            headers["Authorization"] = f"Bearer {self._agent.endpoint.token}"
        if (scheme, host, port) == self._origin:
            headers.update(self._trace)
        extensions = {**request.extensions, "sni_hostname": host}
        failure: httpx.TransportError | None = None
        for address in await self._judged(host, port):
            url = request.url.copy_with(host=address)
            pinned = httpx.Request(
                request.method, url, headers=headers, stream=request.stream, extensions=extensions
            )
            try:
                return await self._counted(await self._inner.handle_async_request(pinned))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure or httpx.ConnectError(f"{host} has no address")

    async def _judged(self, host: str, port: int) -> list[str]:
        if (host, port) not in self._pinned:
            try:
                addresses = await look_up(host, port)
            except (OSError, UnicodeError) as error:
                raise httpx.ConnectError(f"the address of {host} is not known: {error}") from error
            if not self._agent.endpoint.allow_private:
                for address in addresses:
                    self._judge(host, str(address), why_refused(address))
            self._pinned[host, port] = list(dict.fromkeys(str(address) for address in addresses))
        return self._pinned[host, port]

    def _judge(self, host: str, address: str, why: str | None) -> None:
        if why is not None:
            place = f"{host} is" if host == address else f"{host} has {address},"
            raise self._agent.error(
                "refused_address",
                f"{place} a {why} address, and nothing was sent",
                "set endpoint.allow_private if you mean a machine of your own network",
            )

    async def _counted(self, response: httpx.Response) -> httpx.Response:
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            problem = f"it compressed its answer ({encoding[:20]}) though it was asked not to"
            raise self._agent.error("protocol", problem, "tell its owner")
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_CountedStream(response.stream, self.allowance),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _CountedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, allowance: Allowance) -> None:
        self._stream = stream
        self._allowance = allowance

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._allowance.take(len(chunk))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@lru_cache(maxsize=1)
def _trusted_authorities() -> ssl.SSLContext:
    """Return the TLS settings; reading the certificates takes longer than many a call."""
    return httpx.create_ssl_context()


@asynccontextmanager
async def open_client(wire: Wire) -> AsyncIterator[httpx.AsyncClient]:
    """Yield an HTTP client that uses *wire*. How long a whole call may take is the caller's to watch."""
    async with httpx.AsyncClient(
        transport=wire,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=False,
        headers={"Accept-Encoding": "identity", "User-Agent": USER_AGENT},
    ) as client:
        yield client


Address = IPv4Address | IPv6Address

# RFC 6052: the last 32 bits are an IPv4 address, and a gateway carries the packets there.
_NAT64 = IPv6Network("64:ff9b::/96")
_KINDS = ("unspecified", "loopback", "link_local", "multicast", "site_local", "reserved", "private")


def read_address(host: str) -> Address | None:
    """Return the address that *host* spells, in any of its forms; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f000001, 017700000001, 2130706433
    except (OSError, ValueError):
        return None


def why_refused(address: Address) -> str | None:
    """Return the word for what keeps an address from being called; None if it is public."""
    for one in _meant(address):
        for kind in _KINDS:
            if getattr(one, f"is_{kind}", False):
                return kind.replace("_", "-")
        if not one.is_global:
            return "non-public"
    return None


def _meant(address: Address) -> Iterator[Address]:
    """Yield the addresses that packets to *address* may reach."""
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield from (one for one in (address.sixtofour, *(address.teredo or ())) if one is not None)
        yield address


async def look_up(host: str, port: int) -> list[Address]:
    """Return the addresses of *host*.

    Raises:
        OSError: If the name is not known.
    """
    literal = read_address(host)
    if literal is not None:
        return [literal]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(address[0]) for *_, address in found]
