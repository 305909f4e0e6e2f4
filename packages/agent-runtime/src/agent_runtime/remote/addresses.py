"""Which addresses may be called.

A name is looked up once and all of its addresses are judged; whoever connects uses those very addresses,
so a name server that answers differently the second time gains nothing. An IPv4 address can hide inside
an IPv6 one, or be written as one number, in octal or in hexadecimal; all of these are unwrapped first.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    import asyncio

    literal = read_address(host)
    if literal is not None:
        return [literal]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(address[0]) for *_, address in found]
