"""Events read from a streaming replica: a real one, which is stopped, paused and let go on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from agent_app import AgentApplication
from agent_app.errors import SessionNotFound
from agent_app.store import open_store, queues
from agent_app.testing.postgres import EmbeddedPostgres
from agent_core import ArgumentError, Session
from agent_core.testing import EchoProvider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_app.store.base import SessionStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[EmbeddedPostgres, EmbeddedPostgres]]:
    with EmbeddedPostgres() as primary:
        open_store(primary.url).close()  # makes the tables
        with EmbeddedPostgres(replica_of=primary) as replica:
            yield primary, replica


@pytest.fixture
def store(servers: tuple[EmbeddedPostgres, EmbeddedPostgres]) -> Iterator[SessionStore]:
    primary, replica = servers
    with closing(open_store(primary.url, replica=replica.url)) as opened:
        yield opened
    go_on(replica)


def run(server: EmbeddedPostgres, sql: Any) -> Any:
    with psycopg.connect(server.url, autocommit=True) as connection:
        return connection.execute(sql).fetchone()


def pause(replica: EmbeddedPostgres) -> None:
    """Let a replica show nothing new; what it is sent, it keeps."""
    run(replica, "SELECT pg_wal_replay_pause()")


def go_on(replica: EmbeddedPostgres) -> None:
    run(replica, "SELECT pg_wal_replay_resume()")


def catch_up(primary: EmbeddedPostgres, replica: EmbeddedPostgres) -> None:
    """Wait until a replica has what the primary has now."""
    (now,) = run(primary, "SELECT pg_current_wal_flush_lsn()::text")
    with psycopg.connect(replica.url, autocommit=True) as connection:
        while connection.execute("SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", [now]).fetchone() == (True,):
            pass


def write(store: SessionStore, name: str, count: int) -> None:
    """Write events to the log of a session."""
    events: Sequence[Mapping[str, Any]] = [{"type": "status", "text": str(n)} for n in range(count)]
    store.append_events(name, events)


def texts(events: Sequence[Mapping[str, Any]]) -> list[str]:
    return [event["text"] for event in events if event["type"] == "status"]


def feed_of(store: SessionStore, after: int, page: int) -> list[dict[str, Any]]:
    """Follow the feed to its end, in small pages."""
    found: list[dict[str, Any]] = []
    while events := store.feed(after=int(found[-1]["cursor"]) if found else after, limit=page):
        found += events
    return found


def test_events_come_from_the_replica(
    servers: tuple[EmbeddedPostgres, EmbeddedPostgres], store: SessionStore
) -> None:
    primary, replica = servers
    before = store.feed_end()
    store.create(Session("read"))
    write(store, "read", 5)
    catch_up(primary, replica)

    primary.stop()
    try:
        page, feed = store.events("read", limit=5), store.feed(after=before)
    finally:
        primary.start()

    assert texts(page) == texts(feed) == ["0", "1", "2", "3", "4"]


def test_what_the_replica_does_not_have_yet_comes_from_the_primary(
    servers: tuple[EmbeddedPostgres, EmbeddedPostgres], store: SessionStore
) -> None:
    primary, replica = servers
    before = store.feed_end()
    store.create(Session("behind"))
    write(store, "behind", 3)
    catch_up(primary, replica)
    pause(replica)
    write(store, "behind", 2)
    store.create(Session("unknown there"))
    write(store, "unknown there", 1)

    whole, rest = store.events("behind"), store.events("behind", after=4)

    assert [event["seq"] for event in whole] == [1, 2, 3, 4, 5]
    assert texts(whole) == ["0", "1", "2", "0", "1"]
    assert [event["seq"] for event in rest] == [5]
    assert texts(store.events("unknown there")) == ["0"]
    assert texts(feed_of(store, before, page=2)) == ["0", "1", "2", "0", "1", "0"]


def test_a_follower_misses_and_doubles_nothing_while_the_replica_stops_and_goes_on(
    servers: tuple[EmbeddedPostgres, EmbeddedPostgres], store: SessionStore
) -> None:
    primary, replica = servers
    names = [f"many {number}" for number in range(4)]
    for name in names:
        store.create(Session(name))
    before = place = store.feed_end()
    followed: list[dict[str, Any]] = []

    def writing(name: str) -> None:
        for _ in range(25):
            write(store, name, 2)

    with ThreadPoolExecutor(len(names)) as writers:
        work = [writers.submit(writing, name) for name in names]
        for number in range(1000):
            if number % 3 == 0:
                (go_on if number % 6 else pause)(replica)
            events = store.feed(after=place, limit=7)
            followed += events
            place = int(events[-1]["cursor"]) if events else place
            if not events and all(one.done() for one in work):
                break
    followed += feed_of(store, place, page=100)  # PostgreSQL may hold the last back for a moment
    with closing(open_store(primary.url)) as alone:
        assert followed == feed_of(alone, before, page=1000)

    assert len(followed) == len(names) * 50
    for name in names:
        assert [one["seq"] for one in followed if one["session_id"] == name] == list(range(1, 51))


def test_a_replica_that_is_away_is_done_without(
    servers: tuple[EmbeddedPostgres, EmbeddedPostgres], store: SessionStore
) -> None:
    _, replica = servers
    before = store.feed_end()
    store.create(Session("alone"))
    write(store, "alone", 2)

    replica.stop()
    try:
        events, feed = store.events("alone"), store.feed(after=before)
    finally:
        replica.start()

    assert texts(events) == texts(feed) == ["0", "1"]


def test_a_tenant_sees_its_own_events_on_the_replica(
    servers: tuple[EmbeddedPostgres, EmbeddedPostgres], store: SessionStore
) -> None:
    primary, replica = servers
    before = store.feed_end()
    for tenant in ("red", "blue"):
        store.of_tenant(tenant).create(Session(f"of {tenant}"))
        store.of_tenant(tenant).append_events(f"of {tenant}", [{"type": "status", "text": tenant}])
    catch_up(primary, replica)

    primary.stop()
    try:
        red = store.of_tenant("red").feed(after=before)
        other = store.of_tenant("red")._replica.ask(  # type: ignore[attr-defined]  # only to see what is there
            lambda _database, transaction: queues.read_events(transaction, "of red", 0, 10)
        )
    finally:
        primary.start()

    assert texts(red) == texts(other) == ["red"]
    with pytest.raises(SessionNotFound):
        store.of_tenant("red").events("of blue")


def test_a_run_is_followed_to_its_end_with_a_replica_that_is_behind(
    servers: tuple[EmbeddedPostgres, EmbeddedPostgres],
) -> None:
    primary, replica = servers
    config = {"agents": {"echo": {"model": "echo"}}, "models": {"echo": {"provider": "echo"}}}
    app = AgentApplication(
        config,
        store=open_store(primary.url, replica=replica.url),
        plugins=[EchoProvider],
        installed=False,
    )

    async def follow(session_id: str) -> list[str]:
        running = asyncio.create_task(app.start_run_async(session_id, "Hello there"))
        seen: list[str] = []
        async with app.subscribe_async(session_id) as events:
            async for event in events:
                seen.append(event["type"])
                if event["type"] == "final":
                    break
        await running
        return seen

    with app:
        session_id = app.create_session().session_id
        pause(replica)
        seen = asyncio.run(follow(session_id))
        go_on(replica)

        assert "text" in seen
        assert seen == [event["type"] for event in app.events(session_id)]


def test_only_postgresql_has_replicas() -> None:
    with pytest.raises(ArgumentError, match="only PostgreSQL"):
        open_store("sqlite://", replica="postgresql://somewhere/else")
