"""Whatever happens to sessions in whatever order, a store has what a plain dict would have."""

from __future__ import annotations

import tempfile
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agent_app.errors import LeaseLost, RevisionConflict, SessionExists, SessionHeld, SessionNotFound
from agent_app.store.base import Changes, Lease, Stored
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import AgentCore, Message, Session
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = ("alpha", "beta", "gamma", "delta")
WORD = st.sampled_from(WORDS)
TEXT = st.lists(WORD, min_size=1, max_size=3).map(" ".join) | st.text(max_size=20)
PROVIDER = st.sampled_from(["a", "b"])
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def exactly(session: Session) -> str:
    """A session to the letter: 1 is not True, and keys have an order, except those of its metadata."""
    data = session.to_dict()
    return repr((data["messages"], sorted(data["metadata"].items())))


def answers(name: str) -> Iterator[str]:
    return (f"{name} answers {number}" for number in count())


class StoreMachine(RuleBasedStateMachine):
    """Uses a store; `kept` is what it should have, and `stale` what someone still has of earlier times."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.kept: dict[str, Stored] = {}
        self.titles: dict[str, str] = {}
        self.updated: dict[str, float] = {}
        self.leases: dict[str, Lease] = {}
        self.lost: list[Lease] = []
        self.stale: list[Stored] = []
        self.events: dict[str, int] = {}
        self.numbers = count()
        self.core = AgentCore()
        for name in "ab":
            self.core.register_provider(ScriptedProvider(answers(name), name=name))

    def open_database(self) -> Any:
        """Open the database that the machine has for itself."""
        raise NotImplementedError

    def empty_database(self) -> None:
        """Make sure that the database is there and empty."""
        raise NotImplementedError

    @initialize()
    def open_store(self) -> None:
        self.empty_database()
        self.store = SqlStore(self.open_database())

    def teardown(self) -> None:
        if hasattr(self, "store"):
            try:
                self.everything_is_whole()
            finally:
                self.store.close()

    def everything_is_whole(self) -> None:
        assert sorted(self.store) == sorted(self.kept)
        for session_id, stored in self.kept.items():
            self.is_kept(session_id, stored)
        assert self.store.check(deep=True).problems == ()

    def is_kept(self, session_id: str, stored: Stored) -> None:
        loaded = self.store.load(session_id)
        assert loaded == stored
        assert exactly(loaded.session) == exactly(stored.session)
        assert loaded.session.seal == stored.session.seal

    def tick(self, session_id: str) -> None:
        self.updated[session_id] = self.now

    def save(self, session: Session, **wanted: Any) -> None:
        """Save over what is kept, with the lease that there is."""
        session_id = session.session_id
        base = self.kept[session_id]
        saved = self.store.save(session, base, lease=self.leases.get(session_id), **wanted)
        if saved is not base:
            self.stale.append(base)
            self.tick(session_id)
        self.kept[session_id] = saved
        self.is_kept(session_id, saved)

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=ids, texts=st.lists(TEXT, max_size=4), title=TEXT.filter(lambda text: "\0" not in text))
    def create(self, texts: list[str], title: str) -> Any:
        session_id = f"s{next(self.numbers)}"
        session = Session(session_id, [Message("user", text) for text in texts])
        self.kept[session_id] = self.store.create(session, title=title)
        self.titles[session_id] = title
        self.events[session_id] = 0
        self.tick(session_id)
        return session_id

    @rule(session_id=ids)
    def an_id_is_taken(self, session_id: str) -> None:
        with pytest.raises(SessionExists):
            self.store.create(Session(session_id))

    @rule(session_id=ids, text=TEXT, durability=st.sampled_from(["turn", "soon"]))
    def append(self, session_id: str, text: str, durability: str) -> None:
        session = self.core.append_messages(self.kept[session_id].session, [Message("user", text)])
        self.save(session, durability=durability)

    @rule(session_id=ids, provider=PROVIDER, events=st.integers(0, 2))
    def answer(self, session_id: str, provider: str, events: int) -> None:
        session, _events = self.core.send_request(self.kept[session_id].session, {"provider": provider})
        self.save(session, changes=Changes(events=[{"type": "x"}] * events))
        self.events[session_id] += events
        assert [event["seq"] for event in self.store.events(session_id)] == list(
            range(1, self.events[session_id] + 1)
        )

    @rule(session_id=ids, provider=PROVIDER, text=TEXT, data=st.data())
    def edit(self, session_id: str, provider: str, text: str, data: st.DataObject) -> None:
        session = self.kept[session_id].session
        if session.messages:
            index = data.draw(st.integers(0, len(session.messages) - 1))
            self.save(self.core.modify_message(session, index, text, {"provider": provider}))

    @rule(session_id=ids, provider=PROVIDER, data=st.data())
    def shorten(self, session_id: str, provider: str, data: st.DataObject) -> None:
        session = self.kept[session_id].session
        upto = data.draw(st.integers(0, len(session.messages)))
        self.save(self.core.fork_session(session, {"provider": provider}, upto_index=upto - 1))

    @rule(session_id=ids, value=VALUE, key=st.sampled_from(["x", "y"]))
    def set_metadata(self, session_id: str, value: Any, key: str) -> None:
        self.save(self.kept[session_id].session.with_metadata({key: value}))

    @rule(target=ids, session_id=ids, provider=PROVIDER, data=st.data())
    def fork(self, session_id: str, provider: str, data: st.DataObject) -> Any:
        source = self.kept[session_id].session
        upto = data.draw(st.integers(0, len(source.messages)))
        new_id = f"s{next(self.numbers)}"
        forked = self.core.fork_session(
            source, {"provider": provider}, upto_index=upto - 1, new_session_id=new_id
        )
        self.kept[new_id] = self.store.fork(session_id, forked, upto)
        self.titles[new_id] = self.titles[session_id]
        self.events[new_id] = 0
        self.tick(new_id)
        self.is_kept(new_id, self.kept[new_id])
        return new_id

    @rule(session_id=ids, title=TEXT.filter(lambda text: "\0" not in text))
    def rename(self, session_id: str, title: str) -> None:
        assert self.store.rename(session_id, title).title == title
        self.titles[session_id] = title
        self.tick(session_id)

    @rule(session_id=consumes(ids))
    def delete(self, session_id: str) -> None:
        self.store.delete(session_id, lease=self.leases.pop(session_id, None))
        self.stale.append(self.kept.pop(session_id))
        del self.titles[session_id], self.updated[session_id], self.events[session_id]
        with pytest.raises(SessionNotFound):
            self.store.load(session_id)

    @rule()
    def collect(self) -> None:
        self.store.collect()
        assert self.store.collect().checked == {"lists": 0, "content": 0}
        self.everything_is_whole()

    @rule()
    def reload(self) -> None:
        """Go on with what is stored, as after a restart."""
        self.store.close()
        self.store = SqlStore(self.open_database())
        self.kept = {session_id: self.store.load(session_id) for session_id in self.kept}

    @rule(session_id=ids, take_over=st.booleans())
    def lease(self, session_id: str, take_over: bool) -> None:
        held = self.leases.get(session_id)
        owner = f"owner {next(self.numbers)}"
        if held is not None and not take_over:
            with pytest.raises(SessionHeld):
                self.store.acquire(session_id, owner, seconds=1e6)
            with pytest.raises(SessionHeld):
                self.store.save(self.kept[session_id].session.with_metadata({"n": 1}), self.kept[session_id])
            return
        self.lost += [held] if held is not None else []
        self.leases[session_id] = self.store.acquire(session_id, owner, seconds=1e6, take_over=take_over)
        assert held is None or self.leases[session_id].token > held.token

    @rule(session_id=ids)
    def release(self, session_id: str) -> None:
        held = self.leases.pop(session_id, None)
        if held is not None:
            self.store.release(held)
            self.lost.append(held)
        assert self.store.holder(session_id) is None

    @precondition(lambda self: self.lost)
    @rule(data=st.data())
    def whoever_has_lost_a_lease_is_refused(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.lost))
        with pytest.raises(LeaseLost):
            self.store.renew(lease, seconds=1)
        stored = self.kept.get(lease.session_id)
        if stored is not None:
            with pytest.raises(LeaseLost):
                self.store.save(stored.session.with_metadata({"n": 1}), stored, lease=lease)

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def whoever_has_an_old_version_is_refused(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(self.stale))
        session_id = old.session.session_id
        with pytest.raises((RevisionConflict, SessionNotFound)):
            self.store.save(old.session.with_metadata({"n": 1}), old, lease=self.leases.get(session_id))

    @rule(word=WORD, unfinished=st.booleans())
    def search(self, word: str, unfinished: bool) -> None:
        query = word[:-1] if unfinished else word
        found = {info.id for info in self.store.list(query=query, limit=1000).sessions}
        said = {
            session_id
            for session_id, stored in self.kept.items()
            if any(word in str(message.content).split() for message in stored.session.messages)
        }
        titled = {session_id for session_id, title in self.titles.items() if word in title.split()}
        # Texts of any letters may contain the word in ways that `split` does not see.
        assert said | titled <= found <= set(self.kept)
        for session_id in found - said - titled:
            stored = self.kept[session_id].session
            texts = [self.titles[session_id], *(str(message.content) for message in stored.messages)]
            assert any(query in text.casefold() for text in texts)

    @rule(limit=st.integers(1, 5))
    def page_through(self, limit: int) -> None:
        seen, cursor = list[str](), None
        while True:
            page = self.store.list(cursor=cursor, limit=limit)
            seen += [info.id for info in page.sessions]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == sorted(self.kept, key=lambda session_id: (-self.updated[session_id], session_id))

    @rule(session_id=ids, before=st.none() | st.integers(0, 12), limit=st.integers(1, 5))
    def read_a_page(self, session_id: str, before: int | None, limit: int) -> None:
        everything = list(self.kept[session_id].session.messages)
        until = everything if before is None else everything[:before]
        assert list(self.store.messages(session_id, before=before, limit=limit)) == until[-limit:]

    @invariant()
    def infos_are_right(self) -> None:
        for session_id, stored in self.kept.items():
            info = self.store.info(session_id)
            assert (info.messages, info.revision) == (len(stored.session.messages), stored.revision)


class SQLiteMachine(StoreMachine):
    """On a file."""

    def empty_database(self) -> None:
        self.folder = tempfile.TemporaryDirectory()

    def open_database(self) -> SQLiteDatabase:
        clock = lambda: self.now  # noqa: E731 - both clocks are this one
        return SQLiteDatabase(f"sqlite:///{self.folder.name}/store.db", clock=clock, ticks=clock)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.folder.cleanup()


def test_sqlite_has_what_a_dict_would_have() -> None:
    run_state_machine_as_test(
        SQLiteMachine, settings=settings(max_examples=30, stateful_step_count=30, deadline=None)
    )


def test_postgres_has_what_a_dict_would_have(postgres_server: str) -> None:
    import psycopg

    from agent_app.store.postgres import PostgresDatabase

    class PostgresMachine(StoreMachine):
        def empty_database(self) -> None:
            with psycopg.connect(postgres_server, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS agent_store CASCADE")

        def open_database(self) -> PostgresDatabase:
            return PostgresDatabase(postgres_server, clock=lambda: self.now)

    run_state_machine_as_test(
        PostgresMachine, settings=settings(max_examples=6, stateful_step_count=25, deadline=None)
    )
