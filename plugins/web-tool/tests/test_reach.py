"""Which addresses are public, and which only look like it."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, strategies as st

from agent_plugin_kit.addresses import meant_address, read_address, why_not_public
from web_tool.reach import look_up

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.215.14",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80e::200e",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]

NOT_PUBLIC = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.0": "private",
    "10.255.255.255": "private",
    "100.64.0.0": "carrier's shared",
    "100.127.255.255": "carrier's shared",
    "127.0.0.0": "loopback",
    "127.0.0.1": "loopback",
    "127.255.255.255": "loopback",
    "169.254.0.0": "link-local",
    "169.254.169.254": "link-local",
    "172.16.0.0": "private",
    "172.31.255.255": "private",
    "192.0.0.1": "reserved",
    "192.0.0.170": "reserved",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4",
    "192.168.0.0": "private",
    "192.168.255.255": "private",
    "198.18.0.0": "benchmarking",
    "198.19.255.255": "benchmarking",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.0": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::2": "reserved",
    "::127.0.0.1": "reserved",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:10.0.0.1": "private",
    "::ffff:169.254.169.254": "link-local",
    "::ffff:0:127.0.0.1": "reserved",
    "64:ff9b::127.0.0.1": "loopback",
    "64:ff9b::10.0.0.1": "private",
    "64:ff9b::169.254.169.254": "link-local",
    "64:ff9b:1::8.8.8.8": "private",
    "100::1": "reserved",
    "2001::1": "Teredo",
    "2001:0:7f00:1::": "Teredo",
    "2001:2::1": "reserved",
    "2001:10::1": "reserved",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "2002:808:808::1": "6to4",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "5f00::1": "reserved",
    "fc00::1": "private",
    "fd00:ec2::254": "private",
    "fe80::1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public(address: str) -> None:
    assert why_not_public(ip_address(address)) is None


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_called_by_its_kind(address: str) -> None:
    assert why_not_public(ip_address(address)) == NOT_PUBLIC[address]


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_dress(address: IPv4Address) -> None:
    for dressed in (IPv6Address(f"::ffff:{address}"), IPv6Address(f"64:ff9b::{address}")):
        assert meant_address(dressed) == address
        assert why_not_public(dressed) == why_not_public(address)


@given(st.ip_addresses())
def test_nothing_is_public_that_python_knows_to_be_local(address: IPv4Address | IPv6Address) -> None:
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        assert why_not_public(address) is not None


def test_the_interface_of_a_link_local_address_does_not_hide_it() -> None:
    assert why_not_public(read_address("fe80::1%eth0")) == "link-local"


def test_the_system_is_asked_for_names() -> None:
    assert set(asyncio.run(look_up("localhost", 80))) <= {"127.0.0.1", "::1"}

    with pytest.raises(OSError, match=r"\S"):
        asyncio.run(look_up("no-such-host.invalid", 80))
