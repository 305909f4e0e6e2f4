"""Both clients against a real server, and a proxy between them that breaks connections."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from agent_client import (
    AsyncClient,
    Client,
    Conflict,
    ConnectionLost,
    CursorGone,
    NotAllowed,
    NotFound,
    RunFailed,
)
from agent_client.connection import VERSION, Decoder
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_server.testing import ASKS, TOKEN, Notes, Paced, Serving
from agent_testing import ScriptedServer, json_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_client import Event
    from agent_server.testing import Served

WORDS = [f"word{number} " for number in range(40)]


@pytest.fixture
def serve_it(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.close()


def text_of(events: list[Event]) -> str:
    return "".join(str(event.data["text"]) for event in events if event.type == "text")


class Breaking:
    """Passes bytes between a client and a server, and breaks each connection after some bytes."""

    def __init__(self, served: Served, after: int) -> None:
        self.connections = 0
        self._after = after
        address = urlsplit(served.url)
        self._server = (str(address.hostname), address.port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self._server) as server:
            threading.Thread(target=_copy, args=(client, server), daemon=True).start()
            left = self._after
            while left > 0 and (piece := server.recv(min(left, 4096))):
                left -= len(piece)
                client.sendall(piece)
            client.shutdown(socket.SHUT_RDWR)
            server.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(4096):
            target.sendall(piece)
    except OSError:
        return


def test_a_conversation_from_python(serve_it: Serving) -> None:
    served = serve_it(["hello", "again"])

    with Client(served.url, TOKEN) as client:
        session = client.create_session(title="Mine")
        events = list(client.run(session.id, "hi"))
        result = client.ask(session.id, "once more")
        page = client.list_sessions()

        assert text_of(events) == "hello"
        assert result.text == "again"
        assert [one.title for one in page.sessions] == ["Mine"]
        assert [one["content"] for one in client.messages(session.id)] == [
            "hi",
            "hello",
            "once more",
            "again",
        ]
        client.delete_session(session.id)
        with pytest.raises(NotFound):
            client.session(session.id)


def test_the_same_on_an_event_loop(serve_it: Serving) -> None:
    served = serve_it(["hello", "again"])

    async def talk() -> None:
        async with AsyncClient(served.url, TOKEN) as client:
            session = await client.create_session()
            events = [event async for event in client.run(session.id, "hi")]
            result = await client.ask(session.id, "once more")

            assert text_of(events) == "hello"
            assert result.text == "again"
            assert len(await client.messages(session.id)) == 4

    asyncio.run(talk())


# Even if all words come as one event, a run takes more than 2,800 bytes.
@pytest.mark.parametrize("after", [1500, 1600, 1700, 1800, 2000, 2500])
def test_a_run_is_complete_however_often_the_connection_breaks(serve_it: Serving, after: int) -> None:
    served = serve_it([Reply(chunks=WORDS)])
    proxy = Breaking(served, after)  # each connection has room for the head of an answer and one event

    with closing(proxy), Client(served.url, TOKEN) as direct, Client(proxy.url, TOKEN) as client:
        session = direct.create_session()
        events = list(client.run(session.id, "count"))

        assert text_of(events) == "".join(WORDS)
        numbers = [event.data["seq"] for event in events if "seq" in event.data]
        assert numbers == sorted(set(numbers))
        assert events[-1].type == "final"
        assert len(direct.messages(session.id)) == 2
        assert proxy.connections > 1


def test_a_session_is_made_once_when_the_answer_gets_lost(serve_it: Serving) -> None:
    served = serve_it()
    proxy = Breaking(served, 20)

    with closing(proxy), Client(served.url, TOKEN) as direct, Client(proxy.url, TOKEN) as client:
        with pytest.raises(ConnectionLost):
            client.create_session()

        assert proxy.connections > 1
        assert len(direct.list_sessions().sessions) == 1


def test_events_are_followed_across_a_restart_of_the_server(serve_it: Serving) -> None:
    first = serve_it(["one"])
    address = urlsplit(first.url)
    proxy = Breaking(first, 1_000_000)
    with closing(proxy), Client(proxy.url, TOKEN) as client:
        session = client.create_session()
        list(client.run(session.id, "hi"))
        events = client.events(session.id)
        seen = [next(events)]
        while seen[-1].type != "final":
            seen.append(next(events))
        first.stop()
        second = serve_it(["two"])
        proxy._server = (str(address.hostname), urlsplit(second.url).port or 0)
        list(client.run(session.id, "more"))
        seen.append(next(events))
        while seen[-1].type != "final":
            seen.append(next(events))
        events.close()

    assert text_of(seen) == "onetwo"
    # A piece of text that arrives while the model writes has no number: it is logged with its neighbours.
    numbers = [event.data["seq"] for event in seen if "seq" in event.data]
    assert numbers == sorted(set(numbers))
    assert [event.type for event in seen].count("final") == 2
    assert all("seq" in event.data for event in seen if event.type != "text")


class Tidy:
    name = "tidy"
    version = "1"

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": "up", "confirm": "Tidy up?"}]

    def execute_action(self, action_id: str, session: Any, native: Any, params: Any) -> dict[str, Any]:
        return {"tidy": True}


def test_an_action_that_asks_first_runs_once_it_is_confirmed(serve_it: Serving) -> None:
    served = serve_it(plugins=[Tidy])

    with Client(served.url, TOKEN) as client:
        session = client.create_session()
        with pytest.raises(Conflict, match="Tidy up") as refused:
            client.run_action("tidy", "up", session_id=session.id)
        assert refused.value.kind == "action-not-confirmed"
        assert client.run_action("tidy", "up", session_id=session.id, confirmed=True) == {"tidy": True}

    async def run() -> dict[str, Any]:
        async with AsyncClient(served.url, TOKEN) as client:
            return await client.run_action("tidy", "up", session_id=session.id, confirmed=True)

    assert asyncio.run(run()) == {"tidy": True}


def test_a_run_that_asks_is_answered_and_goes_on(serve_it: Serving) -> None:
    script = [Reply(tool_calls=[ToolCall("note", {"text": "milk"})]), "done"]
    served = serve_it(script, plugins=[Notes], config=ASKS)

    with Client(served.url, TOKEN) as client:
        session = client.create_session()
        asked = list(client.run(session.id, "write"))[-1]
        [approval] = client.approvals(session.id)
        client.decide(approval.id, approved=True)
        with closing(client.events(session.id, after=asked.id)) as events:
            final = next(event for event in events if event.type == "final")

        assert approval.suspension["tool"] == "note"
        assert final.data["text"] == "done"


def test_a_run_is_steered_and_cancelled(serve_it: Serving) -> None:
    pace = Paced()
    script = [Reply(chunks=WORDS, delay=1.0)]
    served = serve_it(provider=ScriptedProvider(script, sleep=pace))

    with Client(served.url, TOKEN) as client:
        session = client.create_session()
        events = client.run(session.id, "count")
        pace.release()
        while next(events).type != "text":
            pass
        waiting = client.enqueue(session.id, "and then", "queue")
        with pytest.raises(Conflict, match="running"):
            list(client.run(session.id, "no"))
        listed = client.queued(session.id)
        client.withdraw(session.id, waiting.seq)
        assert client.cancel(session.id)
        pace.release(100)
        final = list(events)[-1]

        assert [one.message["content"] for one in listed] == ["and then"]
        assert client.queued(session.id) == []
        assert final.data["reason"]["code"] == "cancelled"


def test_what_is_refused_says_why(serve_it: Serving) -> None:
    served = serve_it([RuntimeError("on fire")])

    with Client(served.url, "wrong-token-for-this") as stranger, pytest.raises(NotAllowed):
        stranger.list_sessions()
    with Client(served.url, TOKEN) as client:
        session = client.create_session()
        with pytest.raises(RunFailed, match="on fire"):
            client.ask(session.id, "hi")
        with pytest.raises(CursorGone):
            next(client.events(session.id, after="99999"))
        with pytest.raises(NotFound) as refused:
            client.session("nobody")
        assert refused.value.kind == "session-not-found"
        assert refused.value.request_id


def test_grants_logged_events_and_calls_without_a_method(serve_it: Serving) -> None:
    served = serve_it(["hello"])
    with Client(served.url, TOKEN) as client:
        session = client.create_session()
        client.ask(session.id, "hi")

        given = client.grant("note", scope="session", session_id=session.id)
        events = client.logged_events(session.id, after=1, limit=2)
        version = client.request("GET", "/v1/version")

        assert [one.id for one in client.grants(session.id)] == [given.id]
    assert [event["seq"] for event in events] == [2, 3]
    assert version["api"] == "v1"


def test_files_are_kept_and_read(serve_it: Serving) -> None:
    served = serve_it()

    with Client(served.url, TOKEN) as client:
        session = client.create_session()
        asset = client.add_asset(session.id, b"\0data", name="a.bin")

        assert client.assets(session.id) == [asset]
        assert client.read_asset(session.id, asset.id) == b"\0data"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_from_pieces_of_any_size(size: int) -> None:
    first = 'retry: 5\n\nid: 1\ndata: {"a": "ü€"}\n\n'
    stream = f"{first}event: heartbeat\ndata: {{}}\n\nid: 2\ndata: x\ndata: y\n\n".encode()
    decoder = Decoder()

    events = [
        event for start in range(0, len(stream), size) for event in decoder.feed(stream[start : start + size])
    ]

    assert events == [
        {"retry": "5"},
        {"id": "1", "data": '{"a": "ü€"}'},
        {"event": "heartbeat", "data": "{}"},
        {"id": "2", "data": "x\ny"},
    ]


def test_clients_say_who_they_are() -> None:
    with ScriptedServer(otherwise=json_reply({"items": []})) as server, Client(server.url) as client:
        client.logged_events("s")

    assert server.request.headers["user-agent"] == f"keelwork-client/{VERSION}"
