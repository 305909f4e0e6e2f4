"""Readers of one process are woken by writers of another; where nobody can tell them, they look themselves.

The readers here would look again in an hour, so only having been told explains that they go on.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import StoreUnavailable
from agent_app.events import EventHub
from agent_app.store import open_store
from agent_app.store.base import Approval, Changes
from agent_core import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_app.store.base import SessionStore

PATIENCE = 60.0
NEVER = 3_600.0
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
WRITER = """
import sys
from agent_app.store import open_store
store = open_store(sys.argv[1])
for line in sys.stdin:
    store.append_events(sys.argv[2], [{"type": "note", "text": line.strip()}])
"""


def follow(hub: EventHub, session_id: str) -> Any:
    work = hub.follow(session_id, 0)
    assert work.blocking is not None
    return work.blocking()


class Writer:
    """Another process that writes to the log what it is told."""

    def __init__(self, url: str, session_id: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, url, session_id], stdin=subprocess.PIPE, text=True
        )

    def write(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(PATIENCE) == 0


class Reader:
    """Follows a session in a thread."""

    def __init__(self, hub: EventHub, session_id: str) -> None:
        self._changed = threading.Condition()
        self._events: list[dict[str, Any]] = []
        self._stream = follow(hub, session_id)
        self._stopped = threading.Event()
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait_for(self, count: int) -> list[tuple[int, str]]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._events) >= count, PATIENCE)
            return [(event["seq"], event["text"]) for event in self._events]

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _read(self) -> None:
        try:
            for batch in self._stream:
                with self._changed:
                    self._events.extend(batch)
                    self._changed.notify_all()
        except StoreUnavailable as error:
            self.error = error


@pytest.fixture
def shared(postgres_url: str) -> Iterator[SessionStore]:
    store = open_store(postgres_url)
    yield store
    store.close()


@pytest.fixture
def session_id(shared: SessionStore) -> str:
    return shared.create(Session("s")).session.session_id


@contextmanager
def following(store: SessionStore, session_id: str) -> Iterator[tuple[Reader, Writer]]:
    hub = EventHub(store, poll_seconds=NEVER)
    reader, writer = Reader(hub, session_id), Writer(store.url, session_id)
    try:
        yield reader, writer
    finally:
        writer.close()
        hub.close()
        store.delete(session_id)
        hub.wake(session_id)
        reader.join()


def listeners(url: str, *, end: bool = False) -> list[int]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        found = [pid for (pid,) in connection.execute(LISTENERS)]
        for pid in found if end else ():
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    return found


def wait_until(what: Callable[[], bool]) -> None:
    for _ in range(int(PATIENCE / 0.05)):
        if what():
            return
        threading.Event().wait(0.05)
    pytest.fail("waited in vain")


def test_a_reader_is_woken_by_another_process(shared: SessionStore, session_id: str) -> None:
    with following(shared, session_id) as (reader, writer):
        for number in range(1, 6):
            writer.write(f"note {number}")
            assert reader.wait_for(number)[-1] == (number, f"note {number}")


def test_a_lost_connection_loses_nothing_and_doubles_nothing(shared: SessionStore, session_id: str) -> None:
    with following(shared, session_id) as (reader, writer):
        ended = 0
        for number in range(1, 31):
            writer.write(f"note {number}")
            if number % 5 == 0:
                wait_until(lambda: bool(listeners(shared.url)))
                ended += len(listeners(shared.url, end=True))

        assert reader.wait_for(30) == [(number, f"note {number}") for number in range(1, 31)]
        assert ended >= 6


def test_listening_ends_with_the_last_follower(shared: SessionStore, session_id: str) -> None:
    hub = EventHub(shared, poll_seconds=NEVER)
    shared.append_events(session_id, [{"type": "note"}])
    assert listeners(shared.url) == []

    first, second = follow(hub, session_id), follow(hub, session_id)
    next(first)
    next(second)
    wait_until(lambda: len(listeners(shared.url)) == 1)
    first.close()
    assert len(listeners(shared.url)) == 1
    second.close()

    wait_until(lambda: listeners(shared.url) == [])


def test_a_reader_learns_when_the_hub_and_the_store_close(shared: SessionStore, session_id: str) -> None:
    hub = EventHub(shared, poll_seconds=NEVER)
    reader = Reader(hub, session_id)
    wait_until(lambda: len(listeners(shared.url)) == 1)

    shared.close()
    hub.close()

    reader.join()
    assert isinstance(reader.error, StoreUnavailable)


def test_inputs_decisions_and_deletions_are_announced_too(shared: SessionStore, session_id: str) -> None:
    base = shared.load(session_id)
    asked = Approval(id="a", session_id=session_id, suspension={"id": "a"}, created=0.0)
    shared.save(base.session, base, changes=Changes(approvals=[asked]))
    told: list[str | None] = []
    stop = shared.listen(told.append)
    wait_until(lambda: told == [None])

    for write in (
        lambda: shared.put_input(session_id, {"role": "user", "content": "hello"}, "queue"),
        lambda: shared.decide("a", {"approved": True}),
        lambda: shared.delete(session_id),
    ):
        told.clear()
        write()
        wait_until(lambda: told == [session_id])
    stop()


def test_a_file_notifies_no_one_and_is_polled_instead(tmp_path: Any) -> None:
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    told: list[str | None] = []
    stop = store.listen(told.append)
    session_id = store.create(Session("s")).session.session_id
    hub = EventHub(store, poll_seconds=0.05)
    reader, writer = Reader(hub, session_id), Writer(store.url, session_id)

    writer.write("note")

    assert reader.wait_for(1) == [(1, "note")]
    writer.close()
    store.delete(session_id)
    reader.join()
    stop()
    assert told == []
    store.close()
