"""Sending requests over real sockets: connections, patience, cancelling."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import pytest

from agent_core.io import run_awaitable
from agent_provider_kit import HttpRequest, HttpResponse, Timeouts, default_transport
from agent_provider_kit.aiohttp_transport import AiohttpResponse, AiohttpTransport
from agent_provider_kit.http_reply import HttpReply
from agent_provider_kit.http_transport import HttpTransport
from agent_testing import ScriptedServer, ServerReply, json_reply, redirect, sse_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

BothTransports = AiohttpTransport | HttpTransport
BODY = b"0123456789" * 100
LONG = ServerReply(body=BODY)


def get(server: ScriptedServer, timeouts: Timeouts | None = None) -> HttpRequest:
    return HttpRequest("GET", f"{server.url}/things", {}, None, timeouts or Timeouts())


async def fetch(transport: BothTransports, request: HttpRequest) -> bytes:
    response = await transport.send(request)
    return await response.read()


async def read_into(pieces: list[bytes], response: HttpResponse) -> None:
    async for piece in response.chunks():
        pieces += [piece]


@pytest.fixture(params=[HttpTransport, AiohttpTransport])
def transport(request: pytest.FixtureRequest) -> BothTransports:
    made: BothTransports = request.param()
    return made


def open_pools(transport: BothTransports) -> list[asyncio.AbstractEventLoop]:
    """The loops for which it has connections."""
    pools = transport._pools if isinstance(transport, HttpTransport) else transport._clients
    assert set(pools) == set(transport._lifetimes)
    return list(pools)


def is_broken(response: HttpResponse) -> bool:
    """Whether the end of the connection was noticed."""
    if isinstance(response, HttpReply):
        return response.done
    assert isinstance(response, AiohttpResponse)
    return response._response.content.exception() is not None


class TestConnections:
    def test_requests_one_after_the_other_share_a_connection(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG, sse_reply("a", "b"), json_reply({}, 404), LONG)

        for _ in range(4):
            runner.run(fetch(transport, get(scripted_server)))

        assert scripted_server.connections == 1

    def test_requests_at_the_same_time_have_one_each_and_leave_them_to_later_ones(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(*[LONG.stall()] * 20, *[LONG] * 20)

        async def all_at_once() -> list[bytes]:
            waiting = [asyncio.ensure_future(fetch(transport, get(scripted_server))) for _ in range(20)]
            await asyncio.to_thread(scripted_server.wait_until_stalled, 20)
            scripted_server.release()
            return await asyncio.gather(*waiting)

        assert runner.run(all_at_once()) == [BODY] * 20
        for _ in range(20):
            runner.run(fetch(transport, get(scripted_server)))
        assert scripted_server.connections == 20

    def test_callers_without_a_loop_share_one_pool_whatever_their_thread(
        self, scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(*[LONG] * 4)
        found: list[bytes] = []

        def ask() -> None:
            found.append(run_awaitable(lambda: fetch_with_default(get(scripted_server))))

        async def fetch_with_default(request: HttpRequest) -> bytes:
            return await (await default_transport().send(request)).read()

        ask()
        for thread in [threading.Thread(target=ask) for _ in range(3)]:
            thread.start()
            thread.join()

        assert found == [BODY] * 4
        assert scripted_server.connections == 1

    def test_each_loop_has_a_pool_that_ends_with_it(
        self, scripted_server: ScriptedServer, transport: BothTransports
    ) -> None:
        scripted_server.play(*[LONG] * 6)

        async def twice() -> None:
            await fetch(transport, get(scripted_server))
            await fetch(transport, get(scripted_server))

        for _ in range(3):
            asyncio.run(twice())

        assert scripted_server.connections == 3
        scripted_server.wait_until_closed()
        assert open_pools(transport) == []

    def test_loops_in_several_threads_do_not_meet(
        self, scripted_server: ScriptedServer, transport: BothTransports
    ) -> None:
        scripted_server.play(*[LONG.stall()] * 5)
        found: list[bytes] = []

        def live() -> None:
            found.append(asyncio.run(fetch(transport, get(scripted_server))))

        threads = [threading.Thread(target=live) for _ in range(5)]
        for thread in threads:
            thread.start()
        scripted_server.wait_until_stalled(5)
        scripted_server.release()
        for thread in threads:
            thread.join()

        assert found == [BODY] * 5
        assert open_pools(transport) == []

    def test_a_loop_that_was_closed_without_ceremony_is_not_kept(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG, LONG)
        abandoned = asyncio.new_event_loop()
        abandoned.run_until_complete(fetch(transport, get(scripted_server)))
        pools = transport._pools if isinstance(transport, HttpTransport) else transport._clients
        abandoned.run_until_complete(pools[abandoned].close())
        abandoned.close()

        runner.run(fetch(transport, get(scripted_server)))

        assert open_pools(transport) == [runner.get_loop()]

    def test_a_reply_that_is_closed_early_takes_its_connection_with_it(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.stall(10), LONG)

        async def look_and_leave() -> bytes:
            response = await transport.send(get(scripted_server))
            async with aclosing(response.chunks()) as pieces:
                return await anext(pieces)

        assert runner.run(look_and_leave()) == BODY[:10]
        runner.run(asyncio.to_thread(scripted_server.wait_until_hung_up))
        assert runner.run(fetch(transport, get(scripted_server))) == BODY
        assert scripted_server.connections == 2


class TestReplies:
    def test_status_and_headers_come_before_the_body(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(json_reply({"no": "tea"}, 418, {"X-Pot": "short"}).stall(0))

        async def look() -> tuple[int, str, str]:
            response = await transport.send(get(scripted_server))
            response.close()
            return response.status, response.headers["x-pot"], response.headers["Content-Type"]

        assert runner.run(look()) == (418, "short", "application/json")

    def test_a_request_arrives_as_it_was_made(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG)
        headers = {"Content-Type": "application/json", "User-Agent": "tests", "X-Own": "1"}
        request = HttpRequest("POST", f"{scripted_server.url}/v1/x?alt=sse", headers, b'{"a": [1]}')

        runner.run(fetch(transport, request))

        seen = scripted_server.request
        assert (seen.method, seen.path, seen.query, seen.json) == (
            "POST",
            "/v1/x",
            {"alt": "sse"},
            {"a": [1]},
        )
        assert {name: seen.headers[name.lower()] for name in headers} == headers
        assert "cookie" not in seen.headers

    def test_a_body_arrives_piece_by_piece(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.in_pieces(7), LONG.stall(500))

        async def read_live() -> list[bytes]:
            response = await transport.send(get(scripted_server))
            async with aclosing(response.chunks()) as pieces:
                first = await anext(pieces)
                scripted_server.release()
                return [first, *[piece async for piece in pieces]]

        assert runner.run(fetch(transport, get(scripted_server))) == BODY
        assert runner.run(read_live()) == [BODY[:500], BODY[500:]]

    def test_a_compressed_body_is_unpacked(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(ServerReply(body=gzip.compress(BODY), headers={"content-encoding": "gzip"}))

        assert runner.run(fetch(transport, get(scripted_server))) == BODY

    def test_redirects_are_not_followed(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(redirect(scripted_server.url))

        async def status() -> int:
            response = await transport.send(get(scripted_server))
            response.close()
            return response.status

        assert runner.run(status()) == 302
        assert len(scripted_server.requests) == 1

    @pytest.mark.parametrize("fault", [LONG.cut(300), LONG.reset(300)], ids=["cut", "reset"])
    def test_a_body_that_breaks_off_is_an_error(
        self,
        scripted_server: ScriptedServer,
        runner: asyncio.Runner,
        transport: BothTransports,
        fault: ServerReply,
    ) -> None:
        scripted_server.play(fault)

        with pytest.raises(ConnectionError, match="the connection was closed before the reply was complete"):
            runner.run(fetch(transport, get(scripted_server)))

    def test_what_had_arrived_before_the_connection_broke_can_be_read(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.cut(300))

        async def read_late() -> list[bytes]:
            response = await transport.send(get(scripted_server))
            while not is_broken(response):  # noqa: ASYNC110 - nobody would set an event
                await asyncio.sleep(0)
            pieces: list[bytes] = []
            with pytest.raises(ConnectionError):
                await read_into(pieces, response)
            return pieces

        assert runner.run(read_late()) == [BODY[:300]]


class TestFailing:
    def test_nobody_there_is_an_error_in_plain_words(
        self, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]

        with pytest.raises(ConnectionError, match=r"^Connection refused$"):
            runner.run(transport.send(HttpRequest("GET", f"http://127.0.0.1:{port}/", {})))

    def test_hanging_up_in_place_of_an_answer_is_an_error(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.refuse())

        with pytest.raises(ConnectionError, match="Connection reset by peer"):
            runner.run(transport.send(HttpRequest("POST", scripted_server.url, {}, b"{}")))

    @pytest.mark.parametrize("url", ["localhost:11434/v1", "ftp://127.0.0.1/", "nonsense", "http://"])
    def test_an_address_that_is_none_is_an_error(
        self, runner: asyncio.Runner, transport: BothTransports, url: str
    ) -> None:
        with pytest.raises(ConnectionError):
            runner.run(transport.send(HttpRequest("GET", url, {})))


@pytest.fixture
def deaf_address() -> Iterator[str]:
    """An address at which connections are neither accepted nor refused."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        address = listening.getsockname()
        waiting = []
        for _ in range(4):  # more than may wait
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            with suppress(BlockingIOError):
                waiting[-1].connect(address)
        yield f"http://127.0.0.1:{address[1]}/"
        for each in waiting:
            each.close()


class TestPatience:
    def test_it_ends_while_connecting(
        self, deaf_address: str, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        request = HttpRequest("GET", deaf_address, {}, None, Timeouts(connect=0.05))

        with pytest.raises(TimeoutError, match=r"no connection within 0\.05 seconds"):
            runner.run(transport.send(request))

    def test_it_ends_before_the_first_byte(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.never_begin())

        with pytest.raises(TimeoutError, match=r"no reply within 0\.05 seconds"):
            runner.run(transport.send(get(scripted_server, Timeouts(first_byte=0.05))))
        scripted_server.wait_until_hung_up()

    def test_it_ends_in_the_middle_and_what_had_arrived_is_there(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.stall(200))
        pieces: list[bytes] = []

        async def read() -> None:
            await read_into(pieces, await transport.send(get(scripted_server, Timeouts(idle=0.05))))

        with pytest.raises(TimeoutError, match=r"nothing arrived for 0\.05 seconds"):
            runner.run(read())
        assert pieces == [BODY[:200]]
        scripted_server.wait_until_hung_up()

    def test_a_reader_may_take_its_time(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        """Only waiting for the server counts, not what is done between two reads."""
        scripted_server.play(LONG.stall(200))

        async def read_slowly() -> bytes:
            response = await transport.send(
                get(scripted_server, Timeouts(idle=1))
            )  # a busy machine has time for it
            async with aclosing(response.chunks()) as pieces:
                first = await anext(pieces)
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), 1.2)
                scripted_server.release()
                return b"".join([first, *[piece async for piece in pieces]])

        assert runner.run(read_slowly()) == BODY

    def test_it_ends_for_content_although_bytes_arrive(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.drip(b".", 200))

        with pytest.raises(TimeoutError, match=r"no content arrived for 0\.05 seconds \(content_timeout\)"):
            runner.run(fetch(transport, get(scripted_server, Timeouts(idle=None, content=0.05))))
        scripted_server.wait_until_hung_up()

    def test_it_ends_for_content_when_nothing_arrives_at_all(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.stall(200))

        with pytest.raises(TimeoutError, match="no content arrived"):
            runner.run(fetch(transport, get(scripted_server, Timeouts(idle=None, content=0.05))))

    def test_content_begins_it_anew(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        """The loop's clock is moved by hand: 200 seconds after each read, with patience for 150."""
        scripted_server.play(LONG.stall(200), LONG.stall(200))
        loop, moved = runner.get_loop(), 0.0
        real = loop.time
        loop.time = lambda: real() + moved  # type: ignore[method-assign]  # nobody else uses this loop

        async def read(*, told: bool) -> int:
            nonlocal moved
            response, length = await transport.send(get(scripted_server, Timeouts(None, None, None, 150))), 0
            async for piece in response.chunks():
                length += len(piece)
                moved += 200
                if told:
                    response.moved_on()
                scripted_server.release()
            return length

        assert runner.run(read(told=True)) == len(BODY)
        with pytest.raises(TimeoutError, match="no content arrived for 150 seconds"):
            runner.run(read(told=False))

    def test_none_waits_for_as_long_as_it_takes(
        self, scripted_server: ScriptedServer, runner: asyncio.Runner, transport: BothTransports
    ) -> None:
        scripted_server.play(LONG.stall(200))

        async def read() -> bytes:
            response = await transport.send(get(scripted_server, Timeouts(None, None, None, None)))
            scripted_server.release()
            return await response.read()

        assert runner.run(read()) == BODY


@pytest.mark.parametrize("fault", [LONG.never_begin(), LONG.stall(5)], ids=["before", "in the middle"])
def test_cancelling_a_task_closes_the_socket(
    scripted_server: ScriptedServer,
    runner: asyncio.Runner,
    transport: BothTransports,
    fault: ServerReply,
) -> None:
    scripted_server.play(fault)

    async def cancel() -> None:
        task = asyncio.ensure_future(fetch(transport, get(scripted_server)))
        await asyncio.to_thread(scripted_server.wait_until_stalled)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(scripted_server.wait_until_hung_up)

    runner.run(cancel())


def test_threads_that_come_at_the_same_time_get_the_same_transport() -> None:
    together = threading.Barrier(8)
    found: list[object] = []

    def come() -> None:
        together.wait()
        found.append(default_transport())

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(map(id, found))) == 1
