"""The feed of a store: the events of all sessions in one order, which a reader can resume anywhere."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import SessionNotFound
from agent_core import ArgumentError, Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app.store.base import SessionStore
    from agent_app.store.sql import SqlStore


def notes(count: int, word: str = "note") -> list[dict[str, Any]]:
    return [{"type": word, "number": number} for number in range(count)]


def brief(events: Any) -> list[tuple[Any, ...]]:
    return [(event["type"], event.get("session_id"), event.get("seq")) for event in events]


def feed_of(store: SessionStore, count: int, after: int = 0) -> list[dict[str, Any]]:
    """Return the feed when it has that many events.

    PostgreSQL holds events back while anybody's older transaction is under way, also in another database.
    """
    deadline = time.monotonic() + 60
    while len(found := list(store.feed(after=after))) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def read_all(store: SqlStore, page: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while events := store.feed(after=int(found[-1]["cursor"]) if found else 0, limit=page):
        found += events
    return found


def test_the_feed_has_the_events_of_all_sessions_in_the_order_of_their_writing(store: SqlStore) -> None:
    for name in ("a", "b"):
        store.create(Session(name))
    store.append_events("a", notes(2))
    store.append_events("b", notes(1))
    store.append_own_events([{"type": "own"}])
    store.append_events("a", notes(1, "later"))

    found = feed_of(store, 5)

    assert brief(found) == [
        ("note", "a", 1), ("note", "a", 2), ("note", "b", 1), ("own", None, None), ("later", "a", 3),
    ]  # fmt: skip
    assert store.feed_end() == int(found[-1]["cursor"])
    assert read_all(store, 1) == read_all(store, 2) == list(found)


def test_an_event_that_was_not_kept_leaves_nothing_in_the_feed(store: SqlStore) -> None:
    store.create(Session("a"))

    def write() -> None:
        with store.transaction("a"):
            store.append_events("a", notes(1))
            store.append_events("nobody", notes(1))

    with pytest.raises(SessionNotFound):
        write()

    assert (store.feed(), store.events("a"), store.feed_end()) == ([], [], 0)


def test_a_deleted_session_leaves_its_end_behind_all_that_was_read(store: SqlStore) -> None:
    for name in ("a", "b"):
        store.create(Session(name))
        store.append_events(name, notes(3))
    after = int(feed_of(store, 6)[-1]["cursor"])

    store.delete("b", reason="tidying")
    store.create(Session("b"))
    store.append_events("b", notes(1, "again"))

    assert brief(feed_of(store, 2, after)) == [("session_deleted", "b", None), ("again", "b", 1)]
    assert store.feed(after=after)[0]["reason"] == "tidying"
    assert brief(store.feed())[:3] == [("note", "a", 1), ("note", "a", 2), ("note", "a", 3)]
    assert len(store.feed()) == 5
    assert store.check(deep=True).problems == ()


def test_a_title_that_a_save_brings_is_logged_unless_somebody_gave_another(store: SqlStore) -> None:
    from agent_app.store.base import Changes

    stored = store.create(Session("a"))
    stored = store.save(stored.session, stored, changes=Changes(title=("Tea", "")))
    store.rename("a", "Coffee")
    store.save(stored.session, stored, changes=Changes(title=("Cocoa", "Tea")))

    assert [event.get("title") for event in store.events("a")] == ["Tea"]
    assert store.info("a").title == "Coffee"


def test_no_reader_misses_what_a_slower_writer_commits(open_again: Callable[[], SqlStore], kind: str) -> None:
    """The transaction that took its place first ends last; a reader in between must not run past it."""
    if kind == "sqlite memory":
        pytest.skip("each time it is opened it is another store")
    store = open_again()
    for name in ("slow", "quick"):
        store.create(Session(name))
    slow, written, go_on = open_again(), threading.Event(), threading.Event()

    def write_slowly() -> None:
        with slow.transaction("slow"):
            slow.append_events("slow", notes(1))
            written.set()
            go_on.wait(60)

    thread = threading.Thread(target=write_slowly)
    thread.start()
    assert written.wait(60)
    quick = threading.Thread(target=lambda: open_again().append_events("quick", notes(1)))
    quick.start()
    if kind == "postgres":  # it has several writers; in SQLite the second one waits
        quick.join(60)
    seen = list(store.feed())
    go_on.set()
    thread.join(60)
    quick.join(60)

    after = int(seen[-1]["cursor"]) if seen else 0
    rest = feed_of(store, 2 - len(seen), after)
    assert sorted(brief([*seen, *rest])) == [("note", "quick", 1), ("note", "slow", 1)]


def test_a_database_that_was_restored_elsewhere_goes_on_behind_its_old_positions(
    postgres_url: str,
) -> None:
    """Another server counts its transactions anew, so that positions could be lower than those before."""
    import psycopg

    from agent_app.store import open_store

    store = open_store(postgres_url)
    store.create(Session("a"))
    store.append_events("a", notes(1))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE agent_store.feed SET position = position + (1::bigint << 50)")
    store.close()

    again = open_store(postgres_url)
    (before,) = feed_of(again, 1)
    again.append_events("a", notes(1, "after"))
    try:
        assert brief(feed_of(again, 1, int(before["cursor"]))) == [("after", "a", 2)]
    finally:
        again.close()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("UPDATE agent_store.feed_start SET added = 0")


def test_a_waiting_message_can_be_changed_until_it_is_being_delivered(store: SqlStore) -> None:
    store.create(Session("a"))
    waits = store.put_input("a", {"role": "user", "content": "tea"}, "queue")

    edited = store.edit_input("a", waits.seq, {"role": "user", "content": "coffee"}, "steer")

    assert edited is not None and list(store.inputs("a")) == [edited]
    assert (edited.message["content"], edited.mode, edited.created) == ("coffee", "steer", waits.created)
    lease = store.acquire("a", "somebody", seconds=30)
    assert store.claim_inputs(lease, [waits.seq]) == [waits.seq]
    assert store.edit_input("a", waits.seq, {"role": "user", "content": "water"}, "steer") is None
    assert store.edit_input("a", waits.seq + 1, {"role": "user", "content": "water"}, "steer") is None
    with pytest.raises(ArgumentError, match="mode of delivery"):
        store.edit_input("a", waits.seq, {}, "never")  # type: ignore[arg-type]


def test_the_family_of_a_session_is_found_from_any_of_its_members(store: SqlStore) -> None:
    root = store.create(Session("root")).session
    store.fork("root", Session("child", root.history), 0)
    store.fork("child", Session("grandchild", root.history), 0)
    store.fork("root", Session("other", root.history), 0)
    store.create(Session("stranger"))

    for name in ("root", "child", "grandchild", "other"):
        found = {info.id: info.parent_id for info in store.family(name)}
        assert found == {"root": None, "child": "root", "grandchild": "child", "other": "root"}
    store.delete("child")
    assert {info.id for info in store.family("grandchild")} == {"grandchild"}
    with pytest.raises(SessionNotFound):
        store.family("nobody")
