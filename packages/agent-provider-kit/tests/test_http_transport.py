"""HTTP as servers speak it, byte by byte: framing, faults, reuse of connections, cancelling."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import socket
import ssl
import subprocess
import sys
import zlib
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from hypothesis import given, settings, strategies as st
from raw_server import CLOSE, WAIT, RawServer
from yarl import URL

from agent_provider_kit import HttpRequest, Timeouts
from agent_provider_kit.http_connection import HttpConnection
from agent_provider_kit.http_head import Origin, find_target, write_head
from agent_provider_kit.http_reply import HttpReply
from agent_provider_kit.http_transport import HttpPool, HttpTransport
from agent_provider_kit.network import READ_BUFFER, plain_words, shared_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CUT = "the connection was closed before the reply was complete"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

FRAMINGS = {
    "content-length": (OK, 200, b"hello"),
    "chunked": (CHUNKED + b"2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\n\r\n", 200, b"hello"),
    "chunked with trailers": (CHUNKED + b"5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n", 200, b"hello"),
    "continue before it": (b"HTTP/1.1 100 Continue\r\nX-A: 1\r\n\r\n" + OK, 200, b"hello"),
    "hints before it": (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3 + OK, 200, b"hello"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, b""),
    "empty": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, b""),
    "line feeds alone": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", 200, b"hello"),
    "no reason": (b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello", 200, b"hello"),
}
each_framing = pytest.mark.parametrize(("raw", "status", "body"), FRAMINGS.values(), ids=FRAMINGS)


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
each_loop = pytest.mark.parametrize("new_loop", LOOPS.values(), ids=LOOPS)


def get(server: RawServer, method: str = "GET", timeouts: Timeouts | None = None) -> HttpRequest:
    body = b"{}" if method == "POST" else None
    return HttpRequest(method, f"{server.url}/things", {}, body, timeouts or Timeouts())


async def fetch(transport: HttpTransport, request: HttpRequest) -> tuple[int, bytes]:
    response = await transport.send(request)
    return response.status, await response.read()


async def read_until_broken(response: Any) -> tuple[bytes, str]:
    pieces: list[bytes] = []
    try:
        async for piece in response.chunks():
            pieces += [piece]
    except ConnectionError as error:
        return b"".join(pieces), str(error)
    return b"".join(pieces), ""


def pool_of(transport: HttpTransport) -> HttpPool:
    return transport._pools[asyncio.get_running_loop()]


class Wire(asyncio.Transport):
    """Stands for a socket, so that a test decides where a reply is split."""

    def __init__(self) -> None:
        self.ends = socket.socketpair()
        super().__init__({"socket": self.ends[0]})
        self.closing = False

    def close(self) -> None:
        for end in self.ends:
            end.close()

    def writelines(self, list_of_data: Any) -> None: ...
    def abort(self) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


async def read_split(pieces: list[bytes], *, closed: bool = False) -> tuple[int, bytes, bool]:
    """Return status, body, and whether the connection can be used again."""
    loop = asyncio.get_running_loop()
    pool, wire = HttpPool(loop), Wire()
    connection = HttpConnection(pool, Origin(False, "h", 80), loop)
    connection.connection_made(wire)
    sending = asyncio.ensure_future(connection.send("GET", b"", None, Timeouts(), None))
    await asyncio.sleep(0)
    try:
        for piece in pieces:
            connection.data_received(piece)
        if closed:
            connection.connection_lost(None)
        reply = await sending
        return reply.status, await reply.read(), not wire.closing
    finally:
        wire.close()
        if pool._timer is not None:
            pool._timer.cancel()


class TestFraming:
    @each_framing
    def test_a_reply_is_read_and_its_connection_used_again(
        self, runner: asyncio.Runner, raw: bytes, status: int, body: bytes
    ) -> None:
        async def twice() -> None:
            transport = HttpTransport()
            async with RawServer([raw], [raw]) as server:
                assert await fetch(transport, get(server)) == (status, body)
                assert await fetch(transport, get(server)) == (status, body)
                assert server.connections == 1

        runner.run(twice())

    @each_framing
    def test_a_reply_may_be_split_anywhere(
        self, runner: asyncio.Runner, raw: bytes, status: int, body: bytes
    ) -> None:
        for at in range(1, len(raw)):
            assert runner.run(read_split([raw[:at], raw[at:]])) == (status, body, True)
        assert runner.run(read_split([bytes([one]) for one in raw])) == (status, body, True)

    @given(raw=st.sampled_from(sorted(FRAMINGS)), cuts=st.lists(st.integers(0, 200), max_size=12))
    @settings(deadline=None, max_examples=60)
    def test_any_split_gives_the_same_body(self, raw: str, cuts: list[int]) -> None:
        sent, status, body = FRAMINGS[raw]
        places = [0, *sorted({cut for cut in cuts if 0 < cut < len(sent)}), len(sent)]
        pieces = [sent[start:end] for start, end in pairwise(places)]

        assert asyncio.run(read_split(pieces)) == (status, body, True)

    @pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nX: y\r\n\r\n"])
    def test_a_body_may_end_with_the_connection(self, runner: asyncio.Runner, head: bytes) -> None:
        async def read() -> None:
            async with RawServer([head, b"hel", b"lo", CLOSE], [OK]) as server:
                transport = HttpTransport()
                assert await fetch(transport, get(server)) == (200, b"hello")
                assert await fetch(transport, get(server)) == (200, b"hello")
                assert server.connections == 2

        runner.run(read())
        assert runner.run(read_split([head[:9], head[9:], b"hello"], closed=True))[:2] == (200, b"hello")

    def test_a_reply_to_head_has_no_body_whatever_its_headers_say(self, runner: asyncio.Runner) -> None:
        async def ask() -> None:
            async with RawServer([OK.removesuffix(b"hello")], [OK]) as server:
                transport = HttpTransport()
                assert await fetch(transport, get(server, "HEAD")) == (200, b"")
                assert await fetch(transport, get(server)) == (200, b"hello")

        runner.run(ask())

    @pytest.mark.parametrize(
        ("raw", "arrived"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", b"hello"),
            (CHUNKED + b"9\r\nhello", b"hello"),
            (CHUNKED + b"5\r\nhello\r\n", b"hello"),
            (b"HTTP/1.1 200 OK\r\nContent-Length : 9\r\n\r\nhello", b"hello"),
            (CHUNKED, b""),
        ],
    )
    def test_what_arrived_of_a_reply_that_is_cut_short_comes_before_the_error(
        self, runner: asyncio.Runner, raw: bytes, arrived: bytes
    ) -> None:
        async def read() -> tuple[bytes, str]:
            async with RawServer([raw, CLOSE]) as server:
                return await read_until_broken(await HttpTransport().send(get(server)))

        assert runner.run(read()) == (arrived, CUT)

    def test_what_arrived_before_a_chunk_that_makes_no_sense_comes_before_the_error(
        self, runner: asyncio.Runner
    ) -> None:
        async def read() -> tuple[bytes, str]:
            async with RawServer([CHUNKED + b"5\r\nhello\r\nnonsense\r\n", WAIT]) as server:
                found = await read_until_broken(await HttpTransport().send(get(server)))
                await server.wait_until_closed()
                return found

        body, error = runner.run(read())
        assert body == b"hello"
        assert error.startswith("the reply is broken: ")


ENDLESS = b"X-Long: " + b"a" * 70_000


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([b"\x15\x03\x01\x00\x02\x02\x16"], "the reply is not HTTP"),
        ([b"hello, who is there?\r\n"], "the reply is not HTTP"),
        ([b"<html>an answer of HTTP/0.9</html>", CLOSE], "the reply is not HTTP"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "the reply is not HTTP"),
        ([b"HTTP/1.1 2", CLOSE], CUT),
        ([b"HTTP/1.1 200 OK\r\nX: 1\r\n", CLOSE], CUT),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"], "the reply is broken: "),
        ([CHUNKED[:-2] + b"Content-Length: 5\r\n\r\nhello"], "the reply is broken: "),
        ([CLOSE], "Server disconnected"),
        ([b"HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], "changes to another protocol"),
        ([b"HTTP/1.1 200 OK\r\n" + ENDLESS + b"\r\nContent-Length: 0\r\n\r\n"], "longer than 64 KiB"),
        ([b"HTTP/1.1 200 OK\r\n", *[b"X-Long: aaaaaaaa\r\n" * 90] * 50, WAIT], "longer than 64 KiB"),
        ([b"HTTP/1.1 200 " + b"O" * 70_000, WAIT], "longer than 64 KiB"),
        ([b"HTTP/1.1 102 Wait\r\n\r\n" * 9000, WAIT], "longer than 64 KiB"),
        ([b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 201 + b"\r\n"], "more than 200 headers"),
        ([b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx"], "compressed as 'br'"),
    ],
    ids=[
        "tls", "text", "html", "ssh", "half a line", "half a head", "two lengths", "two framings", "nothing",
        "another protocol",
        "a long header", "headers without end", "a reason without end", "hints without end", "many headers",
        "another compression",
    ],
)  # fmt: skip
def test_what_is_no_reply_is_an_error_in_plain_words(
    runner: asyncio.Runner, pieces: list[bytes], words: str
) -> None:
    async def ask() -> None:
        async with RawServer([*pieces, WAIT]) as server:
            with pytest.raises(ConnectionError, match=words):
                await HttpTransport().send(get(server, "POST"))
            await server.wait_until_closed()

    runner.run(ask())


def test_trailers_without_end_are_an_error(runner: asyncio.Runner) -> None:
    async def read() -> tuple[bytes, str]:
        async with RawServer([CHUNKED + b"5\r\nhello\r\n0\r\n", *[ENDLESS] * 40, WAIT]) as server:
            found = await read_until_broken(await HttpTransport().send(get(server)))
            await server.wait_until_closed()
            return found

    assert runner.run(read()) == (b"hello", "the headers of the reply are longer than 64 KiB")


class TestReuse:
    @pytest.mark.parametrize(
        "first",
        [
            [OK + b"more"],
            [OK + OK],
            [OK + b"HTTP"],
            [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"],
            [b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
        ],
        ids=["bytes after it", "a second reply", "a bit of one", "close", "HTTP/1.0"],
    )
    def test_a_connection_that_is_not_in_order_serves_no_second_request(
        self, runner: asyncio.Runner, first: list[bytes]
    ) -> None:
        async def ask() -> None:
            transport = HttpTransport()
            async with RawServer([*first, WAIT], [OK]) as server:
                assert await fetch(transport, get(server, "POST")) == (200, b"hello")
                await server.wait_until_closed()
                assert await fetch(transport, get(server, "POST")) == (200, b"hello")
                assert (server.connections, len(server.requests)) == (2, 2)

        runner.run(ask())

    @pytest.mark.parametrize(
        "surprise", [[b"HTTP/1.1 408 Too Late\r\n\r\n", WAIT], [CLOSE]], ids=["bytes", "end"]
    )
    def test_a_connection_to_which_something_happened_while_idle_is_not_used(
        self, runner: asyncio.Runner, surprise: list[bytes]
    ) -> None:
        async def ask() -> None:
            transport = HttpTransport()
            async with RawServer([OK, WAIT, *surprise], [OK]) as server:
                assert await fetch(transport, get(server, "POST")) == (200, b"hello")
                await server.wait_until_waiting()
                server.go_on.set()
                await server.wait_until_closed()
                assert await fetch(transport, get(server, "POST")) == (200, b"hello")
                assert server.connections == 2

        runner.run(ask())

    def test_a_connection_that_was_closed_while_the_loop_stood_still_is_not_used(
        self, runner: asyncio.Runner
    ) -> None:
        """Nobody told the loop, but the socket knows."""
        transport = HttpTransport()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            request = HttpRequest("POST", f"http://127.0.0.1:{listening.getsockname()[1]}/", {}, b"{}")

            def serve() -> socket.socket:
                accepted, _ = listening.accept()
                while not accepted.recv(65536).endswith(b"{}"):
                    pass
                accepted.sendall(OK)
                return accepted

            async def ask() -> socket.socket:
                served, found = await asyncio.gather(asyncio.to_thread(serve), fetch(transport, request))
                assert found == (200, b"hello")
                return served

            runner.run(ask()).close()
            runner.run(ask()).close()

    @pytest.mark.parametrize(("method", "repeated"), [("GET", True), ("POST", False)])
    def test_a_request_that_may_have_been_processed_is_repeated_only_if_that_does_no_harm(
        self, runner: asyncio.Runner, method: str, *, repeated: bool
    ) -> None:
        async def ask() -> None:
            transport = HttpTransport()
            async with RawServer([OK], [CLOSE], [OK]) as server:
                await fetch(transport, get(server))
                if repeated:
                    assert await fetch(transport, get(server, method)) == (200, b"hello")
                else:
                    with pytest.raises(ConnectionError, match="Server disconnected"):
                        await fetch(transport, get(server, method))
                assert len(server.requests) == 2 + repeated

        runner.run(ask())

    def test_a_request_is_repeated_once_and_not_after_a_byte_of_its_reply(
        self, runner: asyncio.Runner
    ) -> None:
        async def ask() -> None:
            transport = HttpTransport()
            async with RawServer([OK], [CLOSE], [CLOSE], [OK], [b"H", CLOSE]) as server:
                await fetch(transport, get(server))
                with pytest.raises(ConnectionError, match="Server disconnected"):
                    await fetch(transport, get(server))
                await fetch(transport, get(server))
                with pytest.raises(ConnectionError, match=CUT):
                    await fetch(transport, get(server))
                assert len(server.requests) == 5

        runner.run(ask())

    def test_a_reply_that_comes_before_the_request_was_read_ends_the_connection(
        self, runner: asyncio.Runner
    ) -> None:
        async def ask() -> None:
            async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with closing(writer):
                    writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
                    await writer.drain()
                    await done.wait()

            done = asyncio.Event()
            server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1024)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            transport = HttpTransport()
            assert await fetch(transport, HttpRequest("POST", url, {}, b"a" * 50_000_000)) == (413, b"")
            assert not pool_of(transport)._idle
            done.set()
            server.close()

        runner.run(ask())

    @each_loop
    def test_a_reply_ends_with_the_servers_side_although_the_request_was_not_read(
        self, new_loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        """A gateway that finds a request too long says so, hangs up and reads no more of it."""

        with socket.create_server(("127.0.0.1", 0)) as listening:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/"

            def serve() -> socket.socket:
                accepted, _ = listening.accept()
                accepted.recv(1024)
                accepted.sendall(b"HTTP/1.1 413 Too Large\r\n\r\ntoo long")
                accepted.shutdown(socket.SHUT_WR)
                return accepted

            async def ask() -> None:
                asking = fetch(HttpTransport(), HttpRequest("POST", url, {}, bytes(50_000_000)))
                served, found = await asyncio.gather(asyncio.to_thread(serve), asyncio.wait_for(asking, 60))
                served.close()
                assert found == (413, b"too long")

            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(ask())

    def test_connections_that_are_idle_for_a_minute_are_closed_by_one_timer(
        self, runner: asyncio.Runner
    ) -> None:
        loop, moved = runner.get_loop(), 0.0
        real = loop.time
        loop.time = lambda: real() + moved  # type: ignore[method-assign]  # nobody else uses this loop

        async def ask() -> None:
            nonlocal moved
            transport = HttpTransport()
            async with RawServer(*[[OK]] * 4) as server:
                replies = [await transport.send(get(server)) for _ in range(1)]
                both = await asyncio.gather(fetch(transport, get(server)), fetch(transport, get(server)))
                assert [await one.read() for one in replies] == [b"hello"]
                assert len(both) == 2
                assert server.connections == 2
                moved += 59
                await asyncio.sleep(0)
                assert len(pool_of(transport)._open) == 2
                moved += 2
                await server.wait_until_closed()
                pool = pool_of(transport)
                assert (pool._idle, pool._timer) == ({}, None)

        runner.run(ask())

    @pytest.mark.parametrize(("passed", "connections"), [(3.5, 1), (4.5, 2)])
    def test_a_connection_is_not_used_in_the_moment_for_which_the_server_announced_its_end(
        self, runner: asyncio.Runner, passed: float, connections: int
    ) -> None:
        """A POST that is on its way then is lost, and nobody knows whether it was processed."""
        loop, moved = runner.get_loop(), 0.0
        real = loop.time
        stopped = real()
        loop.time = lambda: stopped + moved  # type: ignore[method-assign]  # nobody else uses this loop
        closing_soon = OK.replace(b"\r\n\r\n", b"\r\nKeep-Alive: max=9, timeout=5\r\n\r\n")

        async def ask() -> None:
            nonlocal moved
            transport = HttpTransport()
            async with RawServer([closing_soon], [OK]) as server:
                await fetch(transport, get(server, "POST"))
                moved += passed
                await fetch(transport, get(server, "POST"))
                assert server.connections == connections

        runner.run(ask())

    def test_a_hundred_requests_at_once(self, runner: asyncio.Runner) -> None:
        async def ask() -> None:
            transport = HttpTransport()
            async with RawServer(*[[CHUNKED, b"5\r\nhello\r\n0\r\n\r\n"]] * 200) as server:
                for _ in range(2):
                    requests = [fetch(transport, get(server, "POST")) for _ in range(100)]
                    assert await asyncio.gather(*requests) == [(200, b"hello")] * 100
                assert server.connections == 100
                assert len(server.requests) == 200

        runner.run(ask())

    def test_a_reply_belongs_to_its_reader_after_its_connection_serves_another(
        self, runner: asyncio.Runner
    ) -> None:
        async def ask() -> None:
            transport = HttpTransport()
            async with RawServer([OK], [OK.replace(b"hello", b"other")]) as server:
                first = await transport.send(get(server))
                second = await transport.send(get(server))
                first.close()
                assert (await first.read(), await second.read()) == (b"hello", b"other")
                assert server.connections == 1

        runner.run(ask())


class TestHeaders:
    def test_they_are_found_in_any_case_and_joined(self, runner: asyncio.Runner) -> None:
        raw = (
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Many: a \r\nx-many:b\r\nSet-Cookie: c=1, d\r\n"
            b"Set-Cookie: e=2\r\nX-Name: caf\xc3\xa9 \xff\r\n\r\n"
        )

        async def ask() -> Any:
            async with RawServer([raw]) as server:
                return (await HttpTransport().send(get(server))).headers

        headers = runner.run(ask())
        assert headers["x-MANY"] == "a, b"
        assert headers["set-cookie"] == "c=1, d"
        assert headers["X-Name"] == "café \udcff"
        assert list(headers) == ["Content-Length", "X-Many", "Set-Cookie", "X-Name"]
        assert len(headers) == 4
        assert dict(headers)["X-Many"] == "a, b"
        assert ("X-Other" in headers, headers.get("X-Other"), "content-length" in headers) == (
            False,
            None,
            True,
        )
        with pytest.raises(KeyError, match="X-Other"):
            headers["X-Other"]


def compressed(encoding: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (encoding, len(body)) + body


def raw_deflate(body: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(body) + packing.flush()


class TestCompression:
    @pytest.mark.parametrize(
        ("encoding", "packed"),
        [
            (b"gzip", gzip.compress(b"hello" * 9)),
            (b"X-GZip", gzip.compress(b"hello" * 4) + gzip.compress(b"hello" * 5) + b"\0\0"),
            (b"deflate", zlib.compress(b"hello" * 9)),
            (b"deflate", raw_deflate(b"hello" * 9)),
            (b"identity", b"hello" * 9),
            (b"gzip", b""),
        ],
        ids=["gzip", "several members", "deflate", "deflate without its frame", "identity", "nothing"],
    )
    def test_what_comes_compressed_is_unpacked_wherever_it_is_split(
        self, runner: asyncio.Runner, encoding: bytes, packed: bytes
    ) -> None:
        raw = compressed(encoding, packed)
        body = b"hello" * 9 if packed else b""

        for at in range(1, len(raw)):
            assert runner.run(read_split([raw[:at], raw[at:]])) == (200, body, True)

    @pytest.mark.parametrize("encoding", [b"gzip", b"deflate"])
    def test_a_bomb_goes_off_in_small_pieces(self, runner: asyncio.Runner, encoding: bytes) -> None:
        zeros = bytes(20_000_000)
        raw = compressed(encoding, gzip.compress(zeros) if encoding == b"gzip" else zlib.compress(zeros))

        async def read() -> list[int]:
            async with RawServer([raw]) as server:
                response = await HttpTransport().send(get(server))
                return [len(piece) async for piece in response.chunks()]

        sizes = runner.run(read())
        assert sum(sizes) == len(zeros)
        assert max(sizes) <= READ_BUFFER

    def test_what_the_last_bytes_unpack_to_is_not_lost(self, runner: asyncio.Runner) -> None:
        """One byte may stand for more than a piece has room for, with nothing after it."""
        for more in (1, 100, 258):
            body = bytes(READ_BUFFER + more)
            raw = compressed(b"deflate", raw_deflate(body))
            assert runner.run(read_split([raw])) == (200, body, True)
            assert runner.run(read_split([raw[:-1], raw[-1:]])) == (200, body, True)

    @pytest.mark.parametrize(
        ("packed", "words"),
        [(b"nonsense", "cannot be unpacked"), (gzip.compress(b"hello" * 9)[:-9], "breaks off")],
        ids=["nonsense", "half"],
    )
    def test_what_cannot_be_unpacked_is_an_error(
        self, runner: asyncio.Runner, packed: bytes, words: str
    ) -> None:
        with pytest.raises(ConnectionError, match=words):
            runner.run(read_split([compressed(b"gzip", packed)]))


def head_of(
    url: str, headers: dict[str, str] | None = None, method: str = "GET", body: bytes | None = None
) -> str:
    return write_head(find_target(url), method, headers or {}, body).decode()


class TestRequests:
    def test_it_is_written_like_this(self) -> None:
        headers = {"User-Agent": "keelwork", "X-Name": "café", "content-length": "1"}

        assert head_of("https://h.test/v1/chat?a=b#c", headers, "POST", b"{}") == (
            "POST /v1/chat?a=b HTTP/1.1\r\nHost: h.test\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
            "User-Agent: keelwork\r\nX-Name: café\r\nContent-Length: 2\r\n\r\n"
        )

    def test_what_is_given_comes_in_place_of_what_would_be_added(self) -> None:
        given = {
            "HOST": "other",
            "accept": "text/plain",
            "Accept-encoding": "gzip",
            "AUTHORIZATION": "Bearer x",
        }

        assert head_of("http://u:p@h.test/", given) == (
            "GET / HTTP/1.1\r\nHOST: other\r\naccept: text/plain\r\nAccept-encoding: gzip\r\n"
            "AUTHORIZATION: Bearer x\r\n\r\n"
        )

    def test_a_name_and_a_password_in_the_address_are_sent(self) -> None:
        assert "\r\nAuthorization: Basic dUA6cDovw6k=\r\n" in head_of("http://u%40:p%3A%2F%C3%A9@h.test/")

    def test_a_post_without_a_body_has_no_length(self) -> None:
        assert "\r\nContent-Length: 0\r\n" in head_of("http://h.test/", method="POST")
        assert "Content-Length" not in head_of("http://h.test/")

    @pytest.mark.parametrize(
        ("name", "value"), [("X", "a\nb"), ("X", "a\r"), ("X", "a\r\nHost: b"), ("X", "\0"), ("X\r\nY", "a")]
    )
    def test_a_header_cannot_bring_another(self, name: str, value: str) -> None:
        with pytest.raises(ValueError, match=r"the header '.*' has a line break or a NUL") as caught:
            head_of("http://h.test/", {"Authorization": "Bearer secret", name: value})
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("name", ["X-Key", "X-\udcff"])
    def test_what_is_no_text_cannot_be_sent_and_is_not_shown(self, name: str) -> None:
        with pytest.raises(ValueError, match=r"the header 'X-.*' has bytes .* that are not text") as caught:
            head_of("http://h.test/", {"Authorization": "Bearer secret", name: "\udcff"})
        assert "secret" not in repr(caught.value)

    def test_a_body_is_not_sent_in_another_way_than_it_says(self) -> None:
        with pytest.raises(ValueError, match="Transfer-Encoding cannot be set"):
            head_of("http://h.test/", {"Transfer-Encoding": "chunked"}, "POST", b"{}")

    @pytest.mark.parametrize(
        "url",
        [
            "http://h.test",
            "http://h.test?a=b",
            "http://h.test/a b/ü/日本?x=a b&y=ü&z=%20+#part",
            "http://h.test/100%/%zz?q=100%&r=%zz",
            'http://h.test/[{"<>^`|\\}]?[{"<>^`|\\}]',
            "http://h.test/a;b=c,d!$&'()*+@:~-._?a;b=c,d!$&'()*+@:/?~-._",
            "http://h.test/%C3%BC?a=%3D%26%2B",
            "http://H.Test:80/",
            "https://h.test:443/",
            "http://h.test:443/",
            "http://127.0.0.1:8080/",
            "http://[::1]/",
            "https://[2001:db8::1]:8443/",
            "http://bücher.example:81/",
            "http://faß.example/",
        ],
    )
    def test_addresses_are_encoded_as_other_clients_do(self, url: str) -> None:
        target, expected = find_target(url), URL(url)

        assert (target.path, target.host) == (expected.raw_path_qs, expected.host_port_subcomponent)
        assert target.origin == (expected.scheme == "https", expected.raw_host, expected.port)

    def test_parts_that_are_encoded_are_left_alone(self) -> None:
        """Signatures are made of them."""
        assert find_target("http://h.test/model/a%3a0%7E/x?y=%7e").path == "/model/a%3a0%7E/x?y=%7e"

    @pytest.mark.parametrize(
        "url",
        [
            "localhost:11434/v1", "ftp://h.test/", "nonsense", "http://", "http:///path", "http://h.test:port/",
            "http://h.test:99999/", "http://[::1/", "http://a b/", "http://a\0b/", "http://-ü-\u202e/", "",
            "http://api..h.test/", "https://.h.test/", "https://./", f"http://{'a' * 64}.test/",
        ],
    )  # fmt: skip
    def test_what_is_no_address_is_an_error(self, url: str) -> None:
        with pytest.raises(ConnectionError):
            find_target(url)

    def test_an_error_about_an_address_does_not_show_its_secrets(self) -> None:
        with pytest.raises(ConnectionError) as caught:
            find_target("ftp://user:word@h.test/path?key=sk-1")

        assert str(caught.value) == "'ftp:h.test/path' is not an address of the form https://host/path"

    def test_a_large_body_arrives_whole_and_without_delay(self, runner: asyncio.Runner) -> None:
        body = os.urandom(3_000_000)

        async def ask() -> None:
            async with RawServer([OK]) as server:
                transport = HttpTransport()
                assert (await fetch(transport, HttpRequest("POST", server.url, {}, body)))[0] == 200
                assert server.requests[0].endswith(b"\r\n\r\n" + body)
                (connection,) = pool_of(transport)._open
                assert connection._transport is not None
                wire = connection._transport.get_extra_info("socket")
                assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

        runner.run(ask())


def test_a_reader_that_does_not_read_makes_the_server_wait(runner: asyncio.Runner) -> None:
    size = 40_000_000
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size

    async def read() -> None:
        async with RawServer([head, bytes(size)]) as server:
            reply = await HttpTransport().send(get(server))
            assert isinstance(reply, HttpReply)
            connection: Any = reply._connection
            while not connection._paused:  # noqa: ASYNC110 - nobody would set an event
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            assert READ_BUFFER < reply.unread <= 2 * READ_BUFFER
            assert len(await reply.read()) == size

    runner.run(read())


HELD = {
    "before the reply": [WAIT],
    "in the head": [b"HTTP/1.1 200 OK\r\nX: ", WAIT],
    "before the body": [CHUNKED, WAIT],
    "in the body": [CHUNKED + b"5\r\nhe", WAIT],
}


class TestEnds:
    @pytest.mark.parametrize("pieces", HELD.values(), ids=HELD)
    def test_cancelling_closes_the_connection(self, runner: asyncio.Runner, pieces: list[bytes]) -> None:
        async def cancel() -> None:
            transport = HttpTransport()
            async with RawServer(pieces) as server:
                task = asyncio.ensure_future(fetch(transport, get(server, "POST")))
                await server.wait_until_waiting()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await server.wait_until_closed()
                assert (pool_of(transport)._open, pool_of(transport)._idle) == (set(), {})

        runner.run(cancel())

    @each_loop
    @pytest.mark.parametrize("turns", range(12))
    def test_cancelling_after_any_number_of_turns_leaves_nothing_open(
        self, new_loop: Callable[[], asyncio.AbstractEventLoop], turns: int
    ) -> None:
        async def cancel() -> None:
            transport = HttpTransport()
            async with RawServer([CHUNKED, b"5\r\nhello\r\n", b"0\r\n\r\n"]) as server:
                task = asyncio.ensure_future(fetch(transport, get(server, "POST")))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if transport._pools:
                    await asyncio.wait_for(pool_of(transport).close(), 60)
                await server.wait_until_closed()

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(cancel())

    @pytest.mark.parametrize("secure", [False, True], ids=["connecting", "greeting"])
    def test_cancelling_while_connecting_closes_the_socket(
        self, runner: asyncio.Runner, *, secure: bool
    ) -> None:
        """A server that accepts and says nothing: for TLS, the connection does not stand yet."""

        async def cancel() -> None:
            accepted, closed = asyncio.Event(), asyncio.Event()

            async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with closing(writer):
                    accepted.set()
                    while await reader.read(4096):
                        pass
                    closed.set()

            server = await asyncio.start_server(listen, "127.0.0.1", 0)
            port, transport = server.sockets[0].getsockname()[1], HttpTransport()
            request = HttpRequest("GET", f"http{'s' * secure}://127.0.0.1:{port}/", {})
            task = asyncio.ensure_future(transport.send(request))
            await accepted.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(closed.wait(), 60)
            assert pool_of(transport)._open == set()
            server.close()

        runner.run(cancel())

    def test_cancelling_when_the_reply_was_complete_leaves_its_connection_to_others(
        self, runner: asyncio.Runner
    ) -> None:
        async def cancel() -> None:
            loop = asyncio.get_running_loop()
            pool, wire, origin = HttpPool(loop), Wire(), find_target("http://h.test/").origin
            connection = HttpConnection(pool, origin, loop)
            connection.connection_made(wire)
            sending = asyncio.ensure_future(connection.send("GET", b"", None, Timeouts(), None))
            await asyncio.sleep(0)
            connection.data_received(OK)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            assert not wire.closing
            assert pool.take(origin, loop.time()) is connection
            wire.close()

        runner.run(cancel())

    def test_replies_leave_no_work_for_the_garbage_collector(self, runner: asyncio.Runner) -> None:
        async def count() -> int:
            transport = HttpTransport()
            async with RawServer(*[[CHUNKED, b"5\r\nhello\r\n", b"0\r\n\r\n"]] * 30) as server:
                await fetch(transport, get(server))
                gc.collect()
                gc.set_debug(gc.DEBUG_SAVEALL)
                for _ in range(20):
                    await fetch(transport, get(server))
                gc.collect()
                return sum(isinstance(each, HttpReply) for each in gc.garbage)

        try:
            assert runner.run(count()) == 0
        finally:
            gc.set_debug(0)
            gc.garbage.clear()

    def test_closing_a_reply_wakes_its_reader(self, runner: asyncio.Runner) -> None:
        async def close() -> tuple[bytes, str]:
            async with RawServer(HELD["before the body"]) as server:
                response = await HttpTransport().send(get(server))
                reading = asyncio.ensure_future(read_until_broken(response))
                await server.wait_until_waiting()
                response.close()
                await server.wait_until_closed()
                return await reading

        assert runner.run(close()) == (b"", CUT)

    def test_the_time_to_connect_counts_as_time_without_a_reply(self, runner: asyncio.Runner) -> None:
        async def ask() -> None:
            async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with closing(writer):
                    await reader.read()

            server = await asyncio.start_server(listen, "127.0.0.1", 0)
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            with pytest.raises(TimeoutError, match=r"no reply within 0\.05 seconds"):
                await HttpTransport().send(HttpRequest("GET", url, {}, None, Timeouts(60, 0.05)))
            with pytest.raises(TimeoutError, match=r"no connection within 0\.05 seconds"):
                await HttpTransport().send(HttpRequest("GET", url, {}, None, Timeouts(0.05, 60)))
            server.close()

        runner.run(ask())


class TestReaching:
    def test_a_host_that_nobody_knows_is_an_error(self, runner: asyncio.Runner) -> None:
        with pytest.raises(ConnectionError, match=r"^(Name or service|Temporary failure|nodename)"):
            runner.run(HttpTransport().send(HttpRequest("GET", "http://nobody.invalid/", {})))

    def test_several_addresses_that_refuse_are_told_in_one_word(self) -> None:
        both = "[Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] refused ('127.0.0.1', 1)"

        assert plain_words(OSError(f"Multiple exceptions: {both}")) == "Connection refused"
        assert plain_words(OSError("Multiple exceptions: [Errno 101] x, [Errno 111] y")) == (
            "Network is unreachable; Connection refused"
        )

    @pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )
    def test_every_address_of_a_name_is_tried_on_every_loop(
        self, new_loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        async def ask() -> None:
            transport = HttpTransport()
            async with RawServer([OK], [OK], [WAIT]) as server:
                url = f"http://localhost:{server.port}/"  # which may be ::1 first, where nobody listens
                for _ in range(2):
                    assert await fetch(transport, HttpRequest("POST", url, {}, b"{}")) == (200, b"hello")
                assert server.connections == 1
                waiting = Timeouts(first_byte=0.05)
                with pytest.raises(TimeoutError):
                    await fetch(transport, HttpRequest("POST", url, {}, b"{}", waiting))
                await server.wait_until_closed()
            with pytest.raises(ConnectionError, match=r"^Connection refused$"):
                await fetch(transport, HttpRequest("POST", url, {}, b"{}"))

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(ask())


class TestTls:
    @pytest.fixture(autouse=True)
    def trusted(self, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        context = shared_tls.__wrapped__()
        monkeypatch.setattr("agent_provider_kit.http_transport.shared_tls", lambda: context)

    def run_with(
        self,
        certificate: Path,
        ask: Callable[[HttpTransport, RawServer], Coroutine[Any, Any, None]],
        *replies: list[bytes],
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    ) -> None:
        async def run() -> None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.set_alpn_protocols(["h2", "http/1.1"])
            async with RawServer(*replies, tls=context) as server:
                await ask(HttpTransport(), server)

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(run())

    @pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )
    def test_a_connection_is_used_again_and_speaks_http_1(
        self, certificate: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        async def ask(transport: HttpTransport, server: RawServer) -> None:
            for _ in range(3):
                assert await fetch(transport, get(server, "POST")) == (200, b"hello")
            large = await fetch(transport, HttpRequest("POST", server.url, {}, bytes(1_000_000)))
            assert len(large[1]) == 2_000_000
            assert server.protocols == ["http/1.1"]

        long = b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + bytes(2_000_000)
        self.run_with(certificate, ask, [OK], [OK], [OK], [long], new_loop=new_loop)

    def test_a_name_that_is_not_in_the_certificate_is_refused(self, certificate: Path) -> None:
        async def ask(transport: HttpTransport, server: RawServer) -> None:
            with pytest.raises(ConnectionError, match=r"CERTIFICATE_VERIFY_FAILED.*'localhost'"):
                await transport.send(HttpRequest("GET", f"https://localhost:{server.port}/", {}))
            assert server.requests == []

        self.run_with(certificate, ask)

    def test_a_server_that_does_not_speak_tls_is_an_error(self, runner: asyncio.Runner) -> None:
        async def ask() -> None:
            async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                writer.close()

            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            with pytest.raises(ConnectionError, match="SSL"):
                await HttpTransport().send(HttpRequest("GET", url, {}))
            server.close()

        runner.run(ask())

    def test_a_reply_that_is_closed_early_leaves_nothing_open(self, certificate: Path) -> None:
        async def ask(transport: HttpTransport, server: RawServer) -> None:
            response = await transport.send(get(server))
            response.close()
            await server.wait_until_closed()
            assert pool_of(transport)._open == set()

        self.run_with(certificate, ask, HELD["in the body"])


DIRECTLY = """
import asyncio, sys
from agent_provider_kit import HttpRequest, default_transport

async def fetch():
    response = await default_transport().send(HttpRequest("POST", sys.argv[1], {}, b"{}"))
    print(response.status, (await response.read()).decode(), {"aiohttp", "yarl", "idna"} & {*sys.modules})

asyncio.run(fetch())
"""


def test_what_only_proxies_and_rare_hosts_need_is_not_imported(runner: asyncio.Runner) -> None:
    async def ask() -> str:
        async with RawServer([OK]) as server:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", DIRECTLY, server.url, env=environment, stdout=subprocess.PIPE
            )
            return (await process.communicate())[0].decode()

    assert runner.run(ask()) == "200 hello set()\n"
