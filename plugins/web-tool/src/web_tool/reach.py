"""Where a request may go, decided before anything is sent.

A name is looked up once. All of its addresses must be allowed, and whoever connects takes one of those very
addresses: a name server that answers differently the next time gains nothing by it.

Addresses that are not public are listed, from the registries of special addresses (RFC 6890 and what came
after it), so that the answer does not depend on the version of Python. Of IPv6 only 2000::/3 is in public
use. An IPv4 address inside an IPv6 one is judged for itself where packets to it go there (mapped addresses,
NAT64); 6to4 and Teredo are history, and what still uses them is refused.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING

from web_tool.settings import Settings, fits
from web_tool.urls import FetchError, PlaceRefusedError

if TYPE_CHECKING:
    from web_tool.urls import Address, Url


LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""Finds the addresses of a host, as text; raises OSError if the name is not known."""

_IPV4 = {
    "0.0.0.0/8": "unspecified",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "carrier's shared",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "6to4",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_IPV6 = {
    "::/128": "unspecified",
    "::1/128": "loopback",
    "64:ff9b:1::/48": "private",
    "2001::/32": "Teredo",
    "2001::/23": "reserved",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "3fff::/20": "documentation",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local",
    "ff00::/8": "multicast",
}
_NOT_PUBLIC_IPV4 = [(IPv4Network(network), kind) for network, kind in _IPV4.items()]
_NOT_PUBLIC_IPV6 = [(IPv6Network(network), kind) for network, kind in _IPV6.items()]
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: a gateway carries packets to the IPv4 address at its end


def why_not_public(address: Address) -> str | None:
    """Return what kind of address this is, if it is no public one."""
    meant = meant_address(address)
    if isinstance(meant, IPv4Address):
        return next((kind for network, kind in _NOT_PUBLIC_IPV4 if meant in network), None)
    kinds = (kind for network, kind in _NOT_PUBLIC_IPV6 if meant in network)
    return next(kinds, None if meant in _PUBLIC_IPV6 else "reserved")


def meant_address(address: Address) -> Address:
    """Return the address that packets to *address* reach in the end."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else address


def read_address(text: str) -> Address:
    """Return an address as a name server gives it; the interface that a link-local one names is left out.

    Raises:
        ValueError: If it is none.
    """
    return ip_address(text.partition("%")[0])


async def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as the system finds them.

    Raises:
        OSError: If the name is not known.
    """
    import asyncio

    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@dataclass(frozen=True, slots=True)
class Reach:
    """The places that the settings allow."""

    settings: Settings
    look_up: LookUp

    async def approve(self, url: Url, *, proxied: bool = False) -> tuple[str, ...]:
        """Return the addresses that a request for *url* may be sent to.

        Args:
            url: What is wanted.
            proxied: Whether a proxy will look the name up, so that it is not done here and there are no
                addresses to judge or to return.

        Raises:
            PlaceRefusedError: If the settings do not allow to go there.
            FetchError: If the name has no address.
        """
        if not self.settings.allows_host(url.host):
            hint = "web_allow_hosts and web_deny_hosts say which hosts it may be"
            raise PlaceRefusedError(f"the settings do not allow to read from {url.host}: {hint}")
        addresses = await self._addresses(url, proxied=proxied)
        if not self._is_chosen_place(url, addresses):
            for address in addresses:
                self._check_address(url, address)
            self._check_port(url)
        return tuple(dict.fromkeys(map(str, addresses)))

    async def _addresses(self, url: Url, *, proxied: bool) -> Sequence[Address]:
        if url.address is not None:
            return [url.address]
        if proxied:
            return []
        try:
            found = [read_address(text) for text in await self.look_up(url.host, url.port)]
        except (OSError, ValueError) as error:
            raise FetchError(f"the address of {url.host} is not known: {error}") from error
        if not found:
            raise FetchError(f"{url.host} has no address")
        return found

    def _is_chosen_place(self, url: Url, addresses: Sequence[Address]) -> bool:
        """Say whether somebody listed this very host, or the networks in which all of it is."""
        if fits(url.host, self.settings.private.hosts):
            return True
        return bool(addresses) and all(map(self._is_chosen, addresses))

    def _is_chosen(self, address: Address) -> bool:
        both = (address, meant_address(address))
        return any(one in network for network in self.settings.private.networks for one in both)

    def _check_port(self, url: Url) -> None:
        allowed = self.settings.ports
        if allowed and url.port not in allowed:
            listed = ", ".join(map(str, sorted(allowed)))
            raise PlaceRefusedError(f"port {url.port} of {url.host} is not allowed, only {listed}")

    def _check_address(self, url: Url, address: Address) -> None:
        kind = why_not_public(address)
        if kind is None or self._is_chosen(address):
            return
        place = f"{url.host} is" if str(address) == url.host else f"{url.host} leads to {address},"
        problem = f"{place} a {kind} address and not on the public internet; nothing was sent"
        raise PlaceRefusedError(f"{problem}. web_allow_private in the settings would have to list it")
