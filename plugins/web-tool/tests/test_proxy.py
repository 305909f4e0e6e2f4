"""Proxies of the environment: not used by itself, and what still holds when they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from web_tool import WebTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Reading, Site, Sites

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nby a proxy"


@pytest.fixture
def proxy(serve: Sites, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = serve({"*": PAGE})
    monkeypatch.setenv("HTTP_PROXY", site.url)
    monkeypatch.setenv("ALL_PROXY", site.url)
    return site


async def never(host: str, port: int) -> Sequence[str]:
    raise AssertionError(host, port)


async def nowhere(host: str, port: int) -> Sequence[str]:
    raise OSError("no such name")


def test_a_proxy_is_not_used_by_itself(proxy: Site, read: Reading) -> None:
    result = read("http://a.example/", tool=WebTool(nowhere))

    assert "the address of a.example is not known" in result["error"]
    assert proxy.connections == 0


def test_a_proxy_is_used_if_the_settings_say_so_and_looks_up_names_itself(proxy: Site, read: Reading) -> None:
    result = read("http://a.example/x", tool=WebTool(never), web_use_proxy=True)

    assert "\nby a proxy\n" in result["result"]
    assert proxy.requests[0].target == "http://a.example/x"


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "http://a.example:22/"]
)
def test_what_can_be_judged_here_is_judged_here(url: str, proxy: Site, read: Reading) -> None:
    result = read(url, tool=WebTool(never), web_use_proxy=True)

    assert result["success"] is False
    assert proxy.connections == 0


def test_hosts_without_a_proxy_are_reached_directly(
    proxy: Site, serve: Sites, read: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = serve({"*": PAGE.replace(b"by a proxy", b"directly!!")})
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    result = read(f"{direct.url}/", web_use_proxy=True)

    assert "\ndirectly!!\n" in result["result"]
    assert proxy.connections == 0


def test_a_proxy_that_is_none_is_told(read: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:1080")

    assert "not an HTTP proxy" in read("http://a.example/", web_use_proxy=True)["error"]
