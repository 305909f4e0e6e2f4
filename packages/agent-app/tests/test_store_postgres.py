"""What is PostgreSQL's own: connections that are lost, locks, formats, and neighbours in the database."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import StoreDamaged, StoreError, StoreTooNew, StoreUnavailable
from agent_app.store import open_store, postgres, records
from agent_app.store.postgres import PostgresDatabase
from agent_app.store.sql import SqlStore
from agent_core import ArgumentError, Message, Session

if TYPE_CHECKING:
    from collections.abc import Iterator


def said(*texts: str, session_id: str = "s") -> Session:
    return Session(session_id, [Message("user", text) for text in texts])


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    with closing(SqlStore(PostgresDatabase(postgres_url))) as opened:
        yield opened


def run_sql(url: str, sql: Any, *values: Any) -> list[Any]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []


OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"


def cut_connections(url: str) -> int:
    """End all connections but our own, and wait until they have ended."""
    ended = run_sql(url, f"SELECT pg_terminate_backend(pid, 60000) {OTHERS}")
    assert all(row == (True,) for row in ended)
    return len(ended)


@pytest.fixture
def empty_url(postgres_url: str) -> Iterator[str]:
    """A database without our tables."""
    run_sql(postgres_url, "DROP SCHEMA IF EXISTS agent_store CASCADE")
    yield postgres_url
    run_sql(postgres_url, "DROP SCHEMA IF EXISTS agent_store CASCADE")


def test_a_connection_that_is_lost_in_the_middle_writes_nothing(store: SqlStore, postgres_url: str) -> None:
    base = store.create(said("one"))

    def write() -> None:
        with store._database.writing() as transaction:
            transaction.run("UPDATE sessions SET title = 'half'")
            assert cut_connections(postgres_url) == 1
            transaction.run("UPDATE sessions SET agent_id = 'half'")

    with pytest.raises(StoreUnavailable, match="this change was not written"):
        write()
    assert store.info("s").title == ""
    saved = store.save(said("one", "two"), base)
    assert store.load("s") == saved


def test_a_connection_that_is_lost_while_committing_leaves_it_open(
    store: SqlStore, postgres_url: str
) -> None:
    store.create(said("one"))

    def write() -> None:
        with store._database.writing() as transaction:
            transaction.run("UPDATE sessions SET title = 'half'")
            cut_connections(postgres_url)

    with pytest.raises(StoreUnavailable, match="load the session again"):
        write()
    assert store.info("s").title == ""


def test_a_connection_that_was_lost_while_idle_is_not_an_error(store: SqlStore, postgres_url: str) -> None:
    base = store.create(said("one"))
    assert cut_connections(postgres_url) == 1

    saved = store.save(said("one", "two"), base)

    assert store.load("s") == saved


def test_a_connection_that_is_lost_while_one_has_the_store_for_itself_is_an_error(
    store: SqlStore, postgres_url: str
) -> None:
    store.create(said("one"))

    def write() -> None:
        with store.writing():
            store.rename("s", "half")
            cut_connections(postgres_url)
            store.rename("s", "whole")

    with pytest.raises(StoreUnavailable):
        write()
    assert store.info("s").title == ""


def test_a_server_that_is_not_there_is_named_without_the_password(postgres_url: str) -> None:
    assert "host=" in postgres_url
    with pytest.raises(StoreUnavailable, match="database shop on /nowhere") as caught:
        open_store("postgresql://me:secret@/shop?host=/nowhere")
    assert "secret" not in str(caught.value)


def test_a_server_that_listens_elsewhere_is_named_with_its_port() -> None:
    with pytest.raises(StoreUnavailable, match=r"database shop on 127\.0\.0\.1:9") as caught:
        open_store("postgresql://me:secret@127.0.0.1:9/shop")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://[half", "postgresql://host:port/x", "postgresql://h/x?unknown=1"]
)
def test_an_address_that_cannot_be_read_is_refused(url: str) -> None:
    with pytest.raises((ArgumentError, StoreUnavailable), match=r"postgresql://user@host/database|port"):
        open_store(url)


def test_a_missing_driver_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "agent_app.store.postgres")
    with pytest.raises(ArgumentError, match=r"pip install 'keelwork-app\[postgres\]'"):
        open_store("postgresql://localhost/x")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_both_names_of_the_scheme_are_read(postgres_url: str, scheme: str) -> None:
    store = open_store(postgres_url.replace("postgresql", scheme, 1))
    store.create(said("one"))
    assert list(store) == ["s"]
    store.close()


def test_a_turn_is_flushed_and_what_may_come_soon_is_not(store: SqlStore) -> None:
    levels = []
    for durability in ("turn", "soon", "turn"):
        with store._database.writing(durability) as transaction:
            levels.append(transaction.rows("SHOW synchronous_commit")[0][0])
    assert levels == ["on", "off", "on"]


def test_time_is_the_servers(store: SqlStore, postgres_url: str) -> None:
    sql = "SELECT extract(epoch FROM clock_timestamp())::float8"
    before = run_sql(postgres_url, sql)[0][0]
    store.create(said("one"))
    assert before <= store.info("s").created <= store._database.now() <= run_sql(postgres_url, sql)[0][0]


def test_many_threads_share_a_few_connections(store: SqlStore, postgres_url: str) -> None:
    for number in range(30):
        store.create(said(session_id=f"s{number}"))
    start = threading.Barrier(30)

    def work(number: int) -> list[int]:
        start.wait()
        return [seq for _ in range(5) for seq in store.append_events(f"s{number}", [{}])]

    with ThreadPoolExecutor(30) as pool:
        assert list(pool.map(work, range(30))) == [[1, 2, 3, 4, 5]] * 30

    assert run_sql(postgres_url, f"SELECT count(*) {OTHERS}")[0][0] <= postgres._CONNECTIONS
    store.close()
    while run_sql(postgres_url, f"SELECT count(*) {OTHERS}")[0][0]:
        pass


def test_waiting_too_long_for_another_writer_is_an_error(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_BUSY_SECONDS", 0.05)
    with (
        closing(SqlStore(PostgresDatabase(postgres_url))) as store,
        closing(SqlStore(PostgresDatabase(postgres_url))) as other,
    ):
        store.create(said("one"))
        with store.writing(), pytest.raises(StoreUnavailable, match="for too long: try again"):
            other.rename("s", "theirs")
        assert other.rename("s", "theirs").title == "theirs"


def test_writers_of_different_sessions_do_not_wait_for_each_other(
    postgres_url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_BUSY_SECONDS", 0.05)
    base, other_base = store.create(said("one")), store.create(said("one", session_id="t"))
    with closing(SqlStore(PostgresDatabase(postgres_url))) as other:
        with store._database.writing() as transaction:
            store._database.hold(transaction, "s")
            saved = other.save(said("one", "two", session_id="t"), other_base)
            with pytest.raises(StoreUnavailable):
                other.save(said("one", "two"), base)
        assert store.load("t") == saved


def test_writers_of_the_same_content_never_wait_in_a_ring(store: SqlStore, postgres_url: str) -> None:
    """Content is added in one order by all: here, the first one before the second."""
    first, second = sorted(["one", "two"], key=lambda text: records.message_rows(said(text), 0)[0].hash)
    waiting = f"SELECT count(*) {OTHERS} AND wait_event_type = 'Lock'"

    with ThreadPoolExecutor(1) as pool, closing(SqlStore(PostgresDatabase(postgres_url))) as other:
        with store._database.writing():
            store.create(said(first, session_id="a"))
            theirs = pool.submit(other.create, said(second, first, session_id="b"))
            while not run_sql(postgres_url, waiting)[0][0]:
                assert not theirs.done()
            store.create(said(second, session_id="c"))
        made = theirs.result()
    assert store.load("b") == made

    assert store.check(deep=True).problems == ()


def test_a_failure_that_was_overlooked_is_not_taken_for_success(store: SqlStore) -> None:
    import psycopg

    store.create(said("one"))

    def write() -> None:
        with store._database.writing() as transaction:
            transaction.run("UPDATE sessions SET title = 'half'")
            with pytest.raises(psycopg.Error):
                transaction.run("UPDATE nothing SET title = 'x'")

    with pytest.raises(StoreError, match="has not kept the change"):
        write()
    assert store.info("s").title == ""


def test_tables_of_others_are_left_alone(empty_url: str) -> None:
    run_sql(empty_url, "CREATE TABLE public.sessions (cookie TEXT); INSERT INTO public.sessions VALUES ('x')")
    try:
        with closing(open_store(empty_url)) as store:
            store.create(said("one"))
            assert list(store) == ["s"]
        assert run_sql(empty_url, "SELECT * FROM public.sessions") == [("x",)]
    finally:
        run_sql(empty_url, "DROP TABLE public.sessions")


def test_a_store_of_a_later_version_is_left_alone(empty_url: str) -> None:
    with closing(open_store(empty_url)) as store:
        store.create(said("one"))
    run_sql(
        empty_url,
        "UPDATE agent_store.format SET number = 99; ALTER TABLE agent_store.sessions RENAME TO chats",
    )

    with pytest.raises(StoreTooNew, match=r"has format 99.*update the platform") as caught:
        open_store(empty_url)

    assert (caught.value.found, caught.value.known) == (99, postgres.FORMAT)
    assert run_sql(empty_url, "SELECT id FROM agent_store.chats") == [("s",)]


def test_tables_are_made_wholly_or_not_at_all(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = postgres._script(0)
    monkeypatch.setattr(postgres, "_script", lambda _found: f"{script} INSERT INTO nowhere VALUES (1);")
    with pytest.raises(StoreError, match="nowhere"):
        open_store(empty_url)
    assert run_sql(empty_url, "SELECT to_regclass('agent_store.content')") == [(None,)]

    monkeypatch.undo()
    with closing(open_store(empty_url)) as store:
        store.create(said("one"))


def test_a_migration_keeps_what_is_there(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(empty_url)) as store:
        stored = store.create(said("one"))
    now = postgres.FORMAT
    monkeypatch.setattr(postgres, "FORMAT", now + 1)
    script = f"ALTER TABLE sessions ADD COLUMN mood TEXT; UPDATE format SET number = {now + 1};"
    monkeypatch.setattr(postgres, "_script", lambda found: script if found == now else "")

    with closing(open_store(empty_url)) as store:
        assert store.load("s") == stored
    assert run_sql(empty_url, "SELECT mood FROM agent_store.sessions") == [(None,)]


def test_eight_may_make_the_store_at_once(empty_url: str) -> None:
    for _ in range(3):
        run_sql(empty_url, "DROP SCHEMA IF EXISTS agent_store CASCADE")
        start = threading.Barrier(8)

        def open_it(number: int, start: threading.Barrier = start) -> str:
            start.wait()
            with closing(open_store(empty_url)) as store:
                return store.create(said(session_id=f"s{number}")).session.session_id

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(open_it, range(8)))) == 8
        with closing(open_store(empty_url)) as store:
            assert len(list(store)) == 8


def test_tables_that_are_gone_are_called_damage(empty_url: str) -> None:
    with closing(open_store(empty_url)) as store:
        store.create(said("one"))
        run_sql(empty_url, "DROP TABLE agent_store.entries")
        with pytest.raises(StoreDamaged, match="entries"):
            store.load("s")
        assert "entries" in store.check().problems[0]


def as_role(url: str, role: str) -> str:
    from psycopg.conninfo import make_conninfo

    return make_conninfo(url, user=role, password="x")


@pytest.fixture
def other_role(empty_url: str) -> Iterator[str]:
    """A role of the same database that has no rights to our tables."""
    role = "agent_store_stranger"
    run_sql(empty_url, f"DROP ROLE IF EXISTS {role}")
    run_sql(empty_url, f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    yield role
    run_sql(empty_url, "DROP SCHEMA IF EXISTS agent_store CASCADE")
    run_sql(empty_url, f"DROP OWNED BY {role} CASCADE")
    run_sql(empty_url, f"DROP ROLE {role}")


def test_a_schema_that_another_role_made_is_refused(empty_url: str, other_role: str) -> None:
    """Its tables could have triggers, which would run with our rights."""
    user, name = run_sql(empty_url, "SELECT current_user, current_database()")[0]
    run_sql(
        empty_url,
        f"GRANT CREATE ON DATABASE {name} TO {other_role}; CREATE ROLE agent_store_owner LOGIN PASSWORD 'x'",
    )
    try:
        run_sql(empty_url, f"CREATE SCHEMA agent_store AUTHORIZATION {other_role}")
        run_sql(empty_url, f"GRANT CREATE ON DATABASE {name} TO agent_store_owner")
        with pytest.raises(StoreUnavailable, match=f"belongs to the role {other_role}"):
            PostgresDatabase(as_role(empty_url, "agent_store_owner"))
        assert user
    finally:
        run_sql(empty_url, "DROP SCHEMA IF EXISTS agent_store CASCADE")
        run_sql(empty_url, "DROP OWNED BY agent_store_owner CASCADE")
        run_sql(empty_url, "DROP ROLE agent_store_owner")


def test_a_role_without_rights_learns_no_session_ids_by_listening(empty_url: str, other_role: str) -> None:
    import psycopg

    with closing(SqlStore(PostgresDatabase(empty_url))) as store:
        [(channel,)] = run_sql(empty_url, "SELECT name FROM agent_store.channel")
        with psycopg.connect(as_role(empty_url, other_role), autocommit=True) as stranger:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                stranger.execute("SELECT name FROM agent_store.channel")
            stranger.execute("LISTEN agent_store")
            with psycopg.connect(empty_url, autocommit=True) as member:
                member.execute(f'LISTEN "{channel}"')
                session_id = store.create(said("one", session_id="secret-id")).session.session_id
                store.delete(session_id)

                heard = next(member.notifies(timeout=60))
            assert heard.payload == session_id
            assert list(stranger.notifies(timeout=0)) == []
    with closing(SqlStore(PostgresDatabase(empty_url))):
        assert run_sql(empty_url, "SELECT name FROM agent_store.channel") == [(channel,)]
