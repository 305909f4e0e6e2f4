"""The scripted server itself, looked at through a plain socket."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING

import pytest

from agent_testing import (
    ScriptedServer,
    ServerReply,
    captive_portal,
    chat_reply,
    error_reply,
    json_reply,
    sse_reply,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

TEN = ServerReply(body=b"0123456789")
EVENTS = sse_reply({"n": 1}, "two", b"three")


@pytest.fixture
def line(scripted_server: ScriptedServer) -> Iterator[http.client.HTTPConnection]:
    """A connection to the server."""
    connection = http.client.HTTPConnection(scripted_server.url.removeprefix("http://"), timeout=60)
    yield connection
    connection.close()


def ask(line: http.client.HTTPConnection, body: str = "{}") -> http.client.HTTPResponse:
    line.request("POST", "/v1/things?a=b", body, {"X-Own": "1"})
    return line.getresponse()


def test_replies_are_played_in_order_and_requests_are_kept(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    scripted_server.play(json_reply({"n": 1}), json_reply({"n": 2}, 201, {"X-Server": "yes"}))

    assert ask(line, '{"first": true}').read() == b'{"n":1}'
    second = ask(line, "no json")
    assert (second.status, second.headers["x-server"], second.read()) == (201, "yes", b'{"n":2}')
    first, last = scripted_server.requests
    assert (first.method, first.path, first.query, first.json) == (
        "POST",
        "/v1/things",
        {"a": "b"},
        {"first": True},
    )
    assert (last.headers["x-own"], last.body, last.json) == ("1", b"no json", None)
    assert scripted_server.request is last
    assert (first.connection, last.connection, scripted_server.connections) == (1, 1, 1)


def test_a_script_that_has_ended_says_so(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    reply = ask(line)

    assert reply.status == 599
    assert b"no reply is left for POST /v1/things" in reply.read()


def test_a_line_may_be_a_function_and_there_may_be_one_for_all_the_rest() -> None:
    with ScriptedServer(otherwise=lambda request: json_reply(request.json)) as server:
        line = http.client.HTTPConnection(server.url.removeprefix("http://"))
        answers = [ask(line, f"[{n}]").read() for n in range(3)]
        line.close()

    assert answers == [b"[0]", b"[1]", b"[2]"]


def test_the_form_of_the_answer_is_that_which_was_asked_for(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    reply = chat_reply("Hi")
    scripted_server.play(reply, reply)

    whole, streamed = ask(line), None
    assert (whole.headers["content-type"], whole.read()) == ("application/json", reply.body)
    streamed = ask(line, '{"stream": true}')
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert streamed.read() == reply.stream


def test_events_are_written_as_they_are_given(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    scripted_server.play(EVENTS)

    assert ask(line, '{"stream": true}').read() == b'data: {"n":1}\n\ndata: two\n\ndata: three\n\n'


@pytest.mark.parametrize("asked", ["{}", '{"stream": true}'], ids=["whole", "stream"])
@pytest.mark.parametrize(("at", "arrives"), [(4, 4), (-1, 9), (None, 5), (0, 0)])
def test_a_cut_reply_breaks_off_after_so_many_bytes(
    scripted_server: ScriptedServer,
    line: http.client.HTTPConnection,
    asked: str,
    at: int | None,
    arrives: int,
) -> None:
    scripted_server.play(ServerReply(body=b"0123456789", stream=b"0123456789").cut(at))

    with pytest.raises(http.client.IncompleteRead) as broken:
        ask(line, asked).read()
    assert len(broken.value.partial) == arrives


@pytest.mark.parametrize("asked", ["{}", '{"stream": true}'], ids=["whole", "stream"])
def test_an_ended_reply_is_short_but_in_order(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection, asked: str
) -> None:
    scripted_server.play(ServerReply(body=b"0123456789", stream=b"0123456789").end(4), TEN)

    assert ask(line, asked).read() == b"0123"
    assert ask(line).read() == b"0123456789"
    assert scripted_server.connections == 1


def test_a_reset_is_a_reset(scripted_server: ScriptedServer, line: http.client.HTTPConnection) -> None:
    scripted_server.play(TEN.reset(0), TEN.refuse())

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            ask(line).read()
        line.close()


@pytest.mark.parametrize("reply", [TEN.stall(4), TEN.never_begin()], ids=["in the middle", "at once"])
def test_a_stalled_reply_waits_until_it_is_released(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection, reply: ServerReply
) -> None:
    scripted_server.play(reply)
    line.request("GET", "/")
    scripted_server.wait_until_stalled()

    scripted_server.release()

    assert line.getresponse().read() == b"0123456789"
    assert (scripted_server.stalled, scripted_server.hang_ups) == (0, 0)


def test_a_client_that_hangs_up_is_noticed(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    scripted_server.play(TEN.stall(4))
    line.request("GET", "/")
    scripted_server.wait_until_stalled()

    line.close()

    scripted_server.wait_until_hung_up()
    scripted_server.wait_until_closed()


def test_a_client_that_leaves_between_two_requests_has_not_hung_up(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    scripted_server.play(TEN)
    ask(line).read()

    line.close()

    scripted_server.wait_until_closed()
    assert scripted_server.hang_ups == 0


def test_pieces_are_written_one_by_one(scripted_server: ScriptedServer) -> None:
    scripted_server.play(ServerReply(stream=b"0123456789").in_pieces(4))
    host, _, port = scripted_server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b'POST / HTTP/1.1\r\ncontent-length: 15\r\n\r\n{"stream":true}')
        received = b""
        while not received.endswith(b"0\r\n\r\n"):
            received += raw.recv(100)

    assert received.partition(b"\r\n\r\n")[2] == b"4\r\n0123\r\n4\r\n4567\r\n2\r\n89\r\n0\r\n\r\n"


def test_the_end_of_a_stream_can_be_left_out() -> None:
    reply = chat_reply("Hi").without_end()

    assert reply.broken is not None and reply.stream is not None
    assert b'finish_reason":null' in reply.stream[: reply.broken.at]
    assert b'finish_reason":"stop' not in reply.stream[: reply.broken.at]


def test_garbled_replies_are_no_json(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    scripted_server.play(*[chat_reply("Hi").garbled()] * 2)

    assert not ask(line).read().endswith(b"}")
    assert b'\n\ndata: {"half": \n\n' in ask(line, '{"stream": true}').read()


def test_the_content_may_be_labelled_wrongly(
    scripted_server: ScriptedServer, line: http.client.HTTPConnection
) -> None:
    scripted_server.play(EVENTS.labelled("text/plain"))

    assert ask(line, '{"stream": true}').headers["content-type"] == "text/plain"


@pytest.mark.parametrize(
    ("reply", "header", "body"),
    [
        (error_reply(429, "slow", retry_after=7), ("retry-after", "7"), b'"message":"slow"'),
        (error_reply(500, request_id="r"), ("x-request-id", "r"), b'"type":"server_error"'),
        (error_reply(529, wire="anthropic"), ("request-id", "req_scripted"), b'"type":"error"'),
        (
            error_reply(400, code="BAD", wire="gemini"),
            ("content-type", "application/json"),
            b'"status":"BAD"',
        ),
        (captive_portal(), ("content-type", "text/html; charset=utf-8"), b"<html>"),
    ],
)
def test_errors_are_as_providers_send_them(
    scripted_server: ScriptedServer,
    line: http.client.HTTPConnection,
    reply: ServerReply,
    header: tuple[str, str],
    body: bytes,
) -> None:
    scripted_server.play(reply)

    answer = ask(line, '{"stream": true}')

    assert answer.headers[header[0]] == header[1]
    assert body in answer.read()


def test_waiting_ends_when_patience_does(
    scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_testing.server._PATIENCE", 0.01)

    with pytest.raises(TimeoutError, match="1 replies to stall"):
        scripted_server.wait_until_stalled()
