"""Which network addresses are public.

Addresses that are not are listed, from the registries of special addresses (RFC 6890 and what came after it),
so that the answer does not depend on the version of Python. Of IPv6 only 2000::/3 is in public use. An IPv4
address inside an IPv6 one is judged for itself where packets to it go there (mapped addresses, NAT64); 6to4
and Teredo are history, and what still uses them is refused.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

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
    """Return what kind of address this is, if it is not a public one."""
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
