from __future__ import annotations

import gzip
import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from agent_server.limits import Limits, depth_of
from agent_server.testing import TOKEN

if TYPE_CHECKING:
    from agent_server.testing import Served, Serving


def raw(served: Served, request: bytes) -> bytes:
    """Send bytes, and return all that comes back until the server closes."""
    address = urlsplit(served.url)
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def head(served: Served, *lines: str) -> bytes:
    host = urlsplit(served.url).netloc
    given = (*lines, f"host: {host}", f"authorization: Bearer {TOKEN}", "connection: close")
    return ("\r\n".join(given) + "\r\n\r\n").encode()


def test_a_request_that_is_too_large_is_refused_before_it_is_read(serve_it: Serving) -> None:
    served = serve_it(limits=Limits(body=1000))

    announced = raw(served, head(served, "POST /v1/sessions HTTP/1.1", "content-length: 1000000000"))
    chunk = b"%x\r\n%b\r\n" % (600, b" " * 600)
    chunked = (
        head(served, "POST /v1/sessions HTTP/1.1", "transfer-encoding: chunked") + chunk * 2 + b"0\r\n\r\n"
    )

    assert announced.startswith(b"HTTP/1.1 413")
    assert b"urn:keelwork:too-large" in announced
    assert raw(served, chunked).startswith(b"HTTP/1.1 413")
    assert served.client.post("/v1/sessions", json={"title": "x" * 100}).status_code == 201


def test_a_file_may_be_larger_than_other_requests(serve_it: Serving) -> None:
    served = serve_it(limits=Limits(body=1000, upload=5000))
    path = f"/v1/sessions/{served.new_session()}/assets?name=a.bin"

    assert served.client.post(path, content=b"\0" * 4000).status_code == 201
    assert served.client.post(path, content=b"\0" * 6000).status_code == 413


def test_json_that_is_nested_too_deeply_is_refused(serve_it: Serving) -> None:
    served = serve_it()
    deep = b'{"metadata": ' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}"
    headers = {"content-type": "application/json"}

    assert served.client.post("/v1/sessions", content=deep, headers=headers).status_code == 400
    wide = json.dumps({"metadata": {"a": [[]] * 1000, "b": "[" * 1000}}).encode()
    assert served.client.post("/v1/sessions", content=wide, headers=headers).status_code == 201
    bomb = b"[" * 1_000_000
    assert served.client.post("/v1/sessions", content=bomb, headers=headers).status_code == 400


nested = st.recursive(
    st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(nested)
def test_the_depth_of_json_is_that_of_its_value(value: object) -> None:
    def depth(one: object) -> int:
        if isinstance(one, dict):
            return 1 + max(map(depth, one.values()), default=0)
        return 1 + max(map(depth, one), default=0) if isinstance(one, list) else 0

    assert depth_of(json.dumps(value).encode(), -1) == depth(value)


def test_a_string_that_is_never_closed_is_read_once() -> None:
    """Trying each of its escaped quotes as the beginning of another string would take days."""
    assert depth_of(b"[" * 70 + b'"' + rb"\"" * 1_000_000, 64) == 70


def test_a_client_that_sends_slowly_is_cut_off(serve_it: Serving) -> None:
    served = serve_it(limits=Limits(seconds=0.2))
    address = urlsplit(served.url)

    with socket.create_connection((str(address.hostname), address.port or 0), timeout=60) as connection:
        connection.sendall(head(served, "POST /v1/sessions HTTP/1.1", "content-length: 100") + b"{")
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("begun", [b"", b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx-more: "])
def test_a_connection_without_a_whole_request_is_ended(
    serve_it: Serving, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_server.listener.HEADER_SECONDS", 0.2)
    address = urlsplit(serve_it().url)

    with socket.create_connection((str(address.hostname), address.port or 0), timeout=60) as connection:
        connection.sendall(begun)

        assert connection.recv(65536) == b""


def test_headers_without_an_end_are_refused(serve_it: Serving) -> None:
    served = serve_it()
    address = urlsplit(served.url)
    sent = 0

    with socket.create_connection((str(address.hostname), address.port or 0), timeout=60) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        with suppress(OSError):  # the server has closed
            while sent < 50_000_000:
                connection.sendall(b"x-more: " + b"a" * 10_000 + b"\r\n")
                sent += 10_000

    assert sent < 50_000_000
    assert served.client.get("/livez", headers={"x-long": "a" * 50_000}).status_code == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nhost\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    ],
)
def test_malformed_http_harms_nobody_else(shared: Served, request_: bytes) -> None:
    try:
        answer = raw(shared, request_)
    except OSError:  # the server has closed at once
        answer = b""

    assert not answer or answer.split()[1] in (b"400", b"401", b"404", b"411", b"414", b"421", b"431")
    assert shared.client.get("/livez").status_code == 200


def test_large_answers_are_compressed_and_streams_are_not(serve_it: Serving) -> None:
    served = serve_it(["word " * 1000])
    session_id = served.new_session()
    served.ask(session_id, "hi")
    path = f"/v1/sessions/{session_id}/messages"

    with served.client.stream("GET", path, headers={"accept-encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
    with served.client.stream(
        "GET", f"/v1/sessions/{session_id}/events", headers={"accept-encoding": "gzip"}
    ) as stream:
        assert "content-encoding" not in stream.headers

    assert answer.headers["content-encoding"] == "gzip"
    assert len(packed) < 1000
    assert json.loads(gzip.decompress(packed)) == served.client.get(path).json()
    plain = served.client.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
