"""Where a request may go, decided before anything is sent.

A name is looked up once. All of its addresses must be allowed, and whoever connects takes one of those very
addresses: a name server that answers differently the next time gains nothing by it.

Which addresses are public is known by `agent_plugin_kit.addresses`.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_core import lazy
from agent_plugin_kit.addresses import meant_address, read_address, why_not_public
from web_tool.settings import Settings, fits
from web_tool.urls import FetchError, PlaceRefusedError

if TYPE_CHECKING:
    from agent_plugin_kit.addresses import Address
    from web_tool.urls import Url


LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""Finds the addresses of a host, as text; raises OSError if the name is not known."""


async def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as the system finds them.

    Raises:
        OSError: If the name is not known.
    """
    found = await lazy.asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
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
        self._check_host(url)
        addresses = await self._addresses(url, proxied=proxied)
        self._check_place(url, addresses)
        return tuple(dict.fromkeys(map(str, addresses)))

    def check_known(self, url: Url) -> None:
        """Check what is known without looking a name up, so that nobody is asked about what cannot work.

        Raises:
            PlaceRefusedError: If the settings do not allow to go there.
        """
        self._check_host(url)
        is_here = url.host == "localhost" or url.host.endswith(".localhost")  # RFC 6761
        address = read_address("127.0.0.1") if is_here else url.address
        if address is not None:
            self._check_place(url, [address])

    def _check_host(self, url: Url) -> None:
        if not self.settings.allows_host(url.host):
            hint = "web_allow_hosts and web_deny_hosts say which hosts it may be"
            raise PlaceRefusedError(f"the settings do not allow to read from {url.host}: {hint}")

    def _check_place(self, url: Url, addresses: Sequence[Address]) -> None:
        if not self._is_chosen_place(url, addresses):
            for address in addresses:
                self._check_address(url, address)
            self._check_port(url)

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
