from __future__ import annotations

import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest

from agent_core.testing import Reply, ScriptedProvider
from agent_server.testing import TOKEN, Paced, read_events, text_of, until

if TYPE_CHECKING:
    from agent_server.testing import Event, Serving

WORDS = ["one ", "two ", "three ", "four ", "five"]


def paced(*replies: list[str]) -> tuple[Paced, ScriptedProvider]:
    pace = Paced()
    script = [Reply(chunks=pieces, delay=1.0) for pieces in replies]
    return pace, ScriptedProvider(script, sleep=pace)


def test_a_piece_of_an_answer_passes_no_layer_around_the_routes(serve_it: Serving) -> None:
    served = serve_it([Reply(chunks=["a"] * 50)])
    passed: list[str] = []
    inner = served.server._entrance

    async def watching(scope: Any, receive: Any, send: Any) -> None:
        async def note(message: Any) -> None:
            passed.append(message["type"])
            await send(message)

        await inner(scope, receive, note)

    served.server._entrance = watching
    session_id = served.new_session()
    passed.clear()
    events = served.ask(session_id, "hello")

    assert text_of(events) == "a" * 50
    assert passed == ["http.response.start"]


def test_a_run_is_streamed_and_ends_with_its_final_event(serve_it: Serving) -> None:
    served = serve_it([Reply(chunks=WORDS)])

    events = served.ask(served.new_session(), "count")

    assert [event.type for event in events] == [
        "run_start", "step_start", *["text"] * 5, "usage", "step_end", "final",
    ]  # fmt: skip
    assert text_of(events) == "one two three four five"
    assert events[-1].data["text"] == "one two three four five"


def test_a_reader_that_loses_its_connection_at_any_event_gets_the_rest_once(
    serve_it: Serving,
) -> None:
    pace, provider = paced(WORDS)
    served = serve_it(provider=provider)
    session_id = served.new_session()
    pace.release(100)
    whole = served.ask(session_id, "count")

    for place, event in enumerate(whole[:-1]):
        with served.follow(session_id, after=event.id) as events:
            rest = until(events, "final")

        assert text_of([*whole[: place + 1], *rest]) == "one two three four five"
        assert _joined([*whole[: place + 1], *rest]) == _joined(whole)


def _joined(events: list[Event]) -> list[str]:
    """Return the types of events as the log has them: pieces that follow each other are one."""
    types: list[str] = []
    for event in events:
        if not (types and types[-1] == event.type == "text"):
            types.append(event.type)
    return types


def test_readers_that_come_and_go_during_a_run_see_everything_once(serve_it: Serving) -> None:
    pace, provider = paced(WORDS)
    served = serve_it(provider=provider)
    session_id = served.new_session()
    assert served.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "count"}).status_code == 202
    seen: list[Event] = []

    for _word in WORDS:  # a new connection for each piece, with what was seen before
        with served.follow(session_id, after=seen[-1].id if seen else "0") as events:
            pace.release()
            while True:
                seen.append(next(events))
                if seen[-1].type == "text":
                    break
    pace.release(100)
    with served.follow(session_id, after=seen[-1].id) as events:
        while seen[-1].type != "final":
            seen.append(next(events))

    assert text_of(seen) == "one two three four five"
    assert _joined(seen) == [
        "session_created",
        "run_start",
        "step_start",
        "text",
        "usage",
        "step_end",
        "final",
    ]


def test_a_silent_stream_says_that_the_server_is_there(serve_it: Serving) -> None:
    served = serve_it(heartbeat=0.1)
    session_id = served.new_session()
    with served.follow(session_id) as events:
        first = next(events)
        beats = [next(events) for _ in range(3)]

    assert first.type == "session_created"
    assert [(event.name, event.id, event.data) for event in beats] == [("heartbeat", "", {})] * 3


@pytest.mark.slow
def test_a_reader_that_takes_nothing_is_cut_off_and_loses_nothing(
    serve_it: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """Its connection is closed; the run, other readers and the memory of the server do not notice."""
    piece = "x" * 20_000
    pieces = [piece] * 1000  # more than all buffers between the two take
    served = serve_it([Reply(chunks=pieces)], patience=0.5, heartbeat=0.2)
    session_id = served.new_session()
    address = urlsplit(served.url)
    with closing(socket.create_connection((address.hostname, address.port), timeout=60)) as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asked = f"GET /v1/sessions/{session_id}/events HTTP/1.1\r\nhost: {address.netloc}\r\n"
        stuck.sendall(f"{asked}authorization: Bearer {TOKEN}\r\n\r\n".encode())
        answer = served.client.post(
            f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "a lot"}
        ).raise_for_status()
        while len(served.server.services.streams):  # until it is cut off
            served.client.get("/livez")
    with served.follow(session_id) as events:
        whole = until(events, "final")

    assert len(answer.json()["text"]) == 20_000_000
    assert len(text_of(whole)) == 20_000_000
    assert [record.getMessage() for record in caplog.records] == []


def test_a_storm_of_readers_that_reconnect_all_the_time(serve_it: Serving) -> None:
    """Every reader breaks off after each event that it gets; each has seen everything once in the end."""
    words = [f"w{number} " for number in range(40)]
    pace, provider = paced(words)
    served = serve_it(provider=provider)
    session_id = served.new_session()
    assert served.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "go"}).status_code == 202

    def read(_number: int) -> list[Event]:
        seen: list[Event] = []
        with httpx2.Client(base_url=served.url, headers=served.client.headers, timeout=60) as client:
            while not seen or seen[-1].type != "final":
                place = seen[-1].id if seen else "0"
                path = f"/v1/sessions/{session_id}/events?after={place}"
                with client.stream("GET", path, headers={"accept": "text/event-stream"}) as answer:
                    seen.append(next(read_events(answer.iter_lines())))
        return seen

    with ThreadPoolExecutor(8) as readers:
        reading = [readers.submit(read, number) for number in range(8)]
        for _ in words:
            pace.release()
        pace.release(100)
        everything = [one.result() for one in reading]

    for seen in everything:
        assert text_of(seen) == "".join(words)
        assert [event.type for event in seen].count("final") == 1
    assert not len(served.server.services.streams)


def test_many_answers_at_a_time_are_each_complete_and_in_order(serve_it: Serving) -> None:
    """With many of them, the words of each gather for a moment: none is lost, doubled or late for good."""
    words = [f"w{number} " for number in range(30)]
    pace, provider = paced(*[words] * 8)
    served = serve_it(provider=provider)
    sessions = [served.new_session() for _ in range(8)]

    with ThreadPoolExecutor(8) as readers:
        reading = [readers.submit(served.ask, session_id, "go") for session_id in sessions]
        pace.release(8 * len(words) + 100)
        answers = [one.result() for one in reading]

    for session_id, seen in zip(sessions, answers, strict=True):
        assert text_of(seen) == "".join(words)
        assert seen[-1].data["text"] == "".join(words)
        with served.follow(session_id) as events:
            assert text_of(until(events, "final")) == "".join(words)


def test_connections_that_break_before_the_answer_leave_nothing_behind(serve_it: Serving) -> None:
    served = serve_it()
    session_id = served.new_session()
    address = urlsplit(served.url)
    asked = f"GET /v1/sessions/{session_id}/events HTTP/1.1\r\nhost: {address.netloc}\r\n"
    for _ in range(200):
        with closing(socket.create_connection((address.hostname, address.port))) as broken:
            broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            broken.sendall(f"{asked}authorization: Bearer {TOKEN}\r\n\r\n".encode())

    while len(served.server.services.streams) or len(served.server.services.feeds):
        served.client.get("/livez")
    assert served.client.get("/readyz").status_code == 200
