"""Proxies that the environment names, with a small real one."""

from __future__ import annotations

import asyncio
import os
import socket
import socketserver
import threading
import traceback
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from raw_server import CLOSE, RawServer

from agent_provider_kit import HttpRequest
from agent_provider_kit.http_transport import HttpTransport
from agent_provider_kit.network import proxy_for
from agent_testing import ScriptedServer, json_reply

if TYPE_CHECKING:
    from collections.abc import Iterator


class TinyProxy(socketserver.ThreadingTCPServer):
    """Passes requests for whole addresses on, and tunnels for CONNECT."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.seen: list[str] = []
        self.address = f"127.0.0.1:{self.server_address[1]}"


class _Passing(socketserver.StreamRequestHandler):
    server: TinyProxy

    def handle(self) -> None:
        head = b"".join(iter(self.rfile.readline, b"\r\n"))
        first, _, headers = head.partition(b"\r\n")
        method, target, version = first.decode().split(" ")
        self.server.seen.append(head.decode())
        parts = urlsplit(target if "://" in target else f"//{target}")
        with socket.create_connection((parts.hostname, parts.port)) as beyond:
            if method == "CONNECT":
                self.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                path = f"{method} {parts.path or '/'} {version}\r\n".encode()
                beyond.sendall(path + headers + b"\r\n")
            there = threading.Thread(target=_pump, args=(self.connection, beyond), daemon=True)
            there.start()
            _pump(beyond, self.connection)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side has gone, so the other may


@pytest.fixture
def proxy() -> Iterator[TinyProxy]:
    with TinyProxy() as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()


def fetch(server: ScriptedServer) -> bytes:
    async def send() -> bytes:
        response = await HttpTransport().send(HttpRequest("GET", f"{server.url}/v1/models", {}))
        return await response.read()

    return asyncio.run(send())


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_gone_through(
    scripted_server: ScriptedServer, proxy: TinyProxy, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    scripted_server.play(json_reply({"ok": True}))
    monkeypatch.setenv(variable, f"http://{proxy.address}")

    assert fetch(scripted_server) == b'{"ok":true}'
    assert scripted_server.request.path == "/v1/models"
    assert [head.split(" ")[1] for head in proxy.seen] == [f"{scripted_server.url}/v1/models"]


def test_the_name_and_password_of_a_proxy_are_sent_to_it_alone(
    scripted_server: ScriptedServer, proxy: TinyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_server.play(json_reply({}))
    monkeypatch.setenv("http_proxy", f"http://user:word@{proxy.address}")

    fetch(scripted_server)

    assert "proxy-authorization: basic dxnlcjp3b3jk" in proxy.seen[0].lower()


def test_a_proxy_may_be_named_without_its_scheme(
    scripted_server: ScriptedServer, proxy: TinyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_server.play(json_reply({}))
    monkeypatch.setenv("http_proxy", proxy.address)

    fetch(scripted_server)

    assert len(proxy.seen) == 1


def test_hosts_in_no_proxy_are_reached_directly(
    scripted_server: ScriptedServer, proxy: TinyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_server.play(json_reply({}))
    monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
    monkeypatch.setenv("no_proxy", "example.test,127.0.0.1")

    fetch(scripted_server)

    assert proxy.seen == []


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("https://a.test/", {}, None),
        ("https://a.test/", {"HTTP_PROXY": "http://p.test"}, None),
        ("https://a.test/", {"HTTPS_PROXY": "http://p.test"}, "http://p.test"),
        ("https://a.test/", {"HTTPS_PROXY": "https://p.test:3128"}, "https://p.test:3128"),
        (
            "https://a.test/",
            {"https_proxy": "http://low.test", "HTTPS_PROXY": "http://up.test"},
            "http://low.test",
        ),
        ("https://a.test/", {"ALL_PROXY": "http://p.test"}, "http://p.test"),
        ("https://a.test/", {"https_proxy": "", "HTTPS_PROXY": "http://up.test"}, None),
        ("https://a.test/", {"HTTPS_PROXY": " http://p.test\n"}, "http://p.test"),
        ("https://a.test/", {"HTTPS_PROXY": "http://u:p@[::1]:3128/"}, "http://u:p@[::1]:3128/"),
        ("http://[::1/", {"ALL_PROXY": "http://p.test"}, None),
        ("https://a.test/", {"ALL_PROXY": "http://p.test", "NO_PROXY": "*"}, None),
        ("https://a.test/", {"ALL_PROXY": "http://p.test", "NO_PROXY": ".test"}, None),
        ("https://a.test:444/", {"ALL_PROXY": "http://p.test", "NO_PROXY": "a.test:443"}, "http://p.test"),
        (
            "https://a.test/",
            {"ALL_PROXY": "socks5://p.test", "HTTPS_PROXY": "http://p.test"},
            "http://p.test",
        ),
        ("https://a.test/", {"ALL_PROXY": "socks5://p.test", "NO_PROXY": "a.test"}, None),
    ],
)
def test_which_proxy_is_meant(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: dict[str, str], expected: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert proxy_for(url) == expected


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("http://a.test/", "b.test, A.Test"),
        ("http://A.Test./", "a.test"),
        ("http://u:p@x.a.test:8080/", "a.test"),
        ("http://x.a.test/", "*.a.test"),
        ("http://a.test/", "b.test *"),
        ("https://a.test/", "a.test:443"),
        ("http://a.test/", "a.test:80"),
        ("http://a.test:8080/", "a.test:8080"),
        ("http://10.1.2.3:11434/", "localhost,10.0.0.0/8"),
        ("http://10.1.2.3/", "10.1.2.3"),
        ("http://[::1]:11434/", "::1"),
        ("http://[::1]:11434/", "[::1]:11434"),
        ("http://[fd00::5]/", "fd00::/8"),
    ],
)
def test_these_hosts_are_reached_directly(monkeypatch: pytest.MonkeyPatch, url: str, listed: str) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://p.test")
    monkeypatch.setenv("NO_PROXY", listed)

    assert proxy_for(url) is None


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("http://ba.test/", "a.test"),
        ("http://a.test:8080/", "a.test:80"),
        ("http://11.1.2.3/", "10.0.0.0/8,1.2.3,10.0.0.0/99,nonsense/8"),
        ("http://[::1]:11434/", "[::1]:80,127.0.0.1"),
        ("http://a.test/", ". , :80"),
    ],
)
def test_these_hosts_are_not(monkeypatch: pytest.MonkeyPatch, url: str, listed: str) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://p.test")
    monkeypatch.setenv("NO_PROXY", listed)

    assert proxy_for(url) == "http://p.test"


@pytest.mark.parametrize(
    "proxy",
    ["http://user:word@p.test:port", "user:12#word@p.test", "http://u:12/word@p.test", "http://", "://"],
)
def test_a_proxy_that_is_no_address_is_refused_without_showing_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)

    with pytest.raises(ConnectionError, match=r"not of the form http://host:port: correct it") as caught:
        proxy_for("https://a.test/")
    assert "12" not in str(caught.value)
    assert "user" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n", "answered 407 Who are you?"),
        (b"nonsense\r\n\r\n", "sent a reply that is not HTTP"),
        (b"", "disconnected"),
        (None, "cannot be reached: Connection refused"),
    ],
    ids=["refuses", "nonsense", "hangs up", "nobody"],
)
def test_what_a_proxy_does_wrong_is_told_without_its_password(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, reply: bytes | None, words: str
) -> None:
    async def ask() -> None:
        async with RawServer([reply or b"", CLOSE]) as server:
            monkeypatch.setenv("HTTPS_PROXY", f"http://user:hunter2@127.0.0.1:{server.port}")
            if reply is None:
                server.stop()
            with pytest.raises(ConnectionError) as caught:
                await HttpTransport().send(HttpRequest("GET", "https://api.test/v1", {}))
        assert words in str(caught.value)
        assert f"the proxy 127.0.0.1:{server.port}" in str(caught.value)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))

    runner.run(ask())


def test_a_proxy_of_another_kind_is_refused_without_showing_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://user:word@p.test:1080")

    with pytest.raises(
        ConnectionError, match=r"socks5://p\.test:1080 is not an HTTP proxy: name one in HTTPS_PROXY"
    ):
        proxy_for("https://a.test/")


@pytest.mark.parametrize("key", ["HTTPS_PROXY", b"https_proxy"], ids=["as on Windows", "as elsewhere"])
def test_a_proxy_is_found_however_the_system_keeps_its_environment(
    monkeypatch: pytest.MonkeyPatch, key: str | bytes
) -> None:
    class Environment(dict[str, str]):
        _data = {key: "set"}  # noqa: RUF012 - as `os.environ` has it

    monkeypatch.setattr(os, "environ", Environment(HTTPS_PROXY="http://proxy.example:3128"))

    assert proxy_for("https://api.example/v1") == "http://proxy.example:3128"
