"""Assets in PostgreSQL: connections that are lost, processes that die, and many who do the same at once."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, SessionAssetStore
from agent_app.assets import AssetNotFound, AssetStore, open_assets, postgres, tables
from agent_app.assets.postgres import PostgresAssetStore
from agent_app.errors import StoreDamaged, StoreError, StoreTooNew, StoreUnavailable
from agent_app.store import open_store
from agent_app.store.postgres import PostgresTransaction
from agent_core import ArgumentError, Session
from agent_core.testing import EchoProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from conftest import PostgresHome

CHUNK = 262_144
THREE_CHUNKS = b"one" * CHUNK
OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
CHUNK_INSERT = "INSERT INTO agent_assets.chunks"


@pytest.fixture
def home(postgres_assets: PostgresHome) -> PostgresHome:
    return postgres_assets


@pytest.fixture
def store(home: PostgresHome) -> Iterator[AssetStore]:
    with home.open() as opened:
        yield opened


@pytest.fixture
def empty(home: PostgresHome) -> Iterator[PostgresHome]:
    """A database without our tables."""
    home.rows("DROP SCHEMA IF EXISTS agent_assets CASCADE")
    yield home
    home.rows("DROP SCHEMA IF EXISTS agent_assets CASCADE")


@pytest.fixture
def at_chunk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], Any]], None]:
    """Have something done once, before the chunk of a number is sent."""
    run = PostgresTransaction.run

    def choose(number: int, act: Callable[[], Any]) -> None:
        left = [number]

        def counted(self: PostgresTransaction, sql: str, *values: Any) -> int:
            if sql.startswith(CHUNK_INSERT):
                left[0] -= 1
                if left[0] == 0:
                    act()
            return run(self, sql, *values)

        monkeypatch.setattr(PostgresTransaction, "run", counted)

    return choose


def cut_connections(home: PostgresHome) -> int:
    """End all connections but our own, and wait until they have ended."""
    ended = home.rows(f"SELECT pg_terminate_backend(pid, 60000) {OTHERS}")
    assert all(row == (True,) for row in ended)
    return len(ended)


def wait_until_it_waits(home: PostgresHome, put: Future[Any]) -> None:
    while not home.rows(f"SELECT count(*) {OTHERS} AND wait_event_type = 'Lock'")[0][0]:
        assert not put.done()


# Connections that are lost.


def test_a_connection_that_is_lost_while_content_is_sent_keeps_nothing(
    store: AssetStore, home: PostgresHome, at_chunk: Callable[[int, Callable[[], Any]], None]
) -> None:
    cut: list[int] = []
    at_chunk(2, lambda: cut.append(cut_connections(home)))

    with pytest.raises(StoreUnavailable, match=r"this change was not written.*try again"):
        store.put("s1", THREE_CHUNKS, name="a")

    assert cut == [1]
    assert store.list("s1") == () and home.kept() == []
    asset = store.put("s1", THREE_CHUNKS, name="a")
    assert store.read(asset.id) == THREE_CHUNKS


def test_a_connection_that_is_lost_while_it_commits_keeps_all_or_nothing(
    store: AssetStore, home: PostgresHome
) -> None:
    other = store.put("s2", b"x", name="a")
    asset = replace(other, id="asset_new", session_id="s1", sha256=sha256(b"new").hexdigest(), size=3)

    def keep() -> None:
        with store._place.receiving() as incoming:
            incoming.write(b"new")
            with incoming.keeping(asset) as index:
                index.add(asset)
                assert cut_connections(home) == 1

    with pytest.raises(StoreUnavailable, match="was lost while it was writing"):
        keep()
    assert store.list("s1") == () and home.kept() == [other.sha256]


def test_a_connection_that_was_lost_while_idle_is_not_an_error(store: AssetStore, home: PostgresHome) -> None:
    asset = store.put("s1", THREE_CHUNKS, name="a")
    with store.open(asset.id) as file:
        beginning = file.read(10)
        assert cut_connections(home) == 1
        rest = file.read()
    assert beginning + rest == THREE_CHUNKS


def test_a_slow_source_keeps_no_connection_and_blocks_no_one(store: AssetStore, home: PostgresHome) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            with home.open() as other:
                other.put("s1", b"quick", name="b")
            working.append(home.rows(f"SELECT count(*) {OTHERS} AND state <> 'idle'")[0][0])
            return super().read(size)

    working: list[int] = []
    store.put("s1", Slow(b"slow"), name="a")

    assert working == [0, 0]
    assert [asset.name for asset in store.list("s1")] == ["b", "b", "a"]


def test_a_disk_that_takes_no_more_for_the_time_being_keeps_nothing(
    store: AssetStore, home: PostgresHome
) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(StoreUnavailable, match=r"temporary files .* nothing was kept; check disk"):
            store.put("s1", b"x" * 2_000_000, name="a")
        assert store.put("s2", b"x" * 500_000, name="a").size == 500_000  # never written to disk here
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert store.list("s1") == () and len(home.kept()) == 1


def test_a_server_that_is_not_there_is_named_without_the_password(home: PostgresHome) -> None:
    assert home.address
    with pytest.raises(StoreUnavailable, match="database shop on /nowhere") as caught:
        open_assets("postgresql://me:secret@/shop?host=/nowhere")
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for module in ("agent_app.assets.postgres", "agent_app.assets.tables", "agent_app.store.postgres"):
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ArgumentError, match=r"pip install 'keelwork-app\[postgres\]'"):
        open_assets("postgresql://localhost/x")


def test_many_threads_share_two_connections(store: AssetStore, home: PostgresHome) -> None:
    start = threading.Barrier(12)

    def work(number: int) -> bool:
        start.wait()
        data = b"%d" % number * CHUNK
        return store.read(store.put(f"s{number}", data, name="a").id) == data

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(work, range(12)))

    assert home.rows(f"SELECT count(*) {OTHERS}")[0][0] <= 2
    store.close()
    while home.rows(f"SELECT count(*) {OTHERS}")[0][0]:
        pass


# Processes that die.

KILLED = """
import os, sys
from agent_app.assets import open_assets
from agent_app.store.postgres import PostgresTransaction

run, left = PostgresTransaction.run, int(sys.argv[2])

def counted(self, sql, *values):
    global left
    left -= sql.startswith(sys.argv[3])
    if not left:
        os.kill(os.getpid(), 9)
    return run(self, sql, *values)

PostgresTransaction.run = counted
open_assets(sys.argv[1]).put("s1", b"one" * 262_144, name="a")
"""


@pytest.mark.parametrize(
    ("number", "statement"),
    [
        pytest.param(2, CHUNK_INSERT, id="between two chunks"),
        pytest.param(1, "INSERT INTO agent_assets.content", id="after the last chunk"),
        pytest.param(1, "INSERT INTO agent_assets.assets", id="before it is noted"),
    ],
)
def test_a_process_that_dies_while_it_sends_leaves_nothing(
    home: PostgresHome, number: int, statement: str
) -> None:
    home.open().close()
    died = subprocess.run([sys.executable, "-c", KILLED, home.address, str(number), statement], check=False)

    assert died.returncode == -9
    with home.open() as store:
        assert store.list("s1") == () and home.kept() == []
        assert store.collect().checked == {"content": 0, "temporary": 0}
        asset = store.put("s1", THREE_CHUNKS, name="a")
        assert store.read(asset.id) == THREE_CHUNKS
        assert home.kept() == [asset.sha256]


# Memory.

MEASURED = """
import io, json, random, resource, sys
from agent_app.assets import open_assets
from agent_app.assets.asset import hash_of

class Source(io.RawIOBase):
    def __init__(self, size):
        self.left, self.numbers = size, random.Random(7)

    def read(self, size=-1):
        size = min(size, self.left)
        self.left -= size
        return self.numbers.randbytes(size)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

size = 50_000_000
with open_assets(sys.argv[1]) as store:
    small = store.put("s1", Source(1_000_000), name="small")
    hash_of(store.open(small.id))
    before = peak()
    asset = store.put("s1", Source(size), name="large")
    again = store.put("s2", Source(size), name="large")
    put = peak()
    with store.open(asset.id) as file:
        same = hash_of(file) == asset.sha256 == again.sha256
    problems = store.check(deep=True).problems
    streamed = peak()
    whole = len(store.read(asset.id))
print(json.dumps({
    "put": put - before, "streamed": streamed - before, "whole": peak() - before,
    "same": same, "size": whole, "problems": problems,
}))
"""


@pytest.mark.slow
def test_fifty_megabytes_come_and_go_with_little_memory(home: PostgresHome) -> None:
    """In megabytes beyond what one of a single megabyte took."""
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, home.address], check=True, capture_output=True, text=True
    )
    found = json.loads(told.stdout)

    assert (found["same"], found["size"], found["problems"]) == (True, 50_000_000, [])
    assert found["put"] < 10 and found["streamed"] < 10
    assert found["whole"] < 50 + 10
    rows = home.rows("SELECT count(*), max(octet_length(data)) FROM agent_assets.chunks")
    assert rows == [(4 + 191, CHUNK)]


# Many at once.


def test_content_that_another_one_is_sending_is_not_waited_for(
    store: AssetStore, home: PostgresHome, at_chunk: Callable[[int, Callable[[], Any]], None]
) -> None:
    theirs: list[Any] = []

    def put_it_first() -> None:
        with home.open() as other:
            theirs.append(other.put("s2", THREE_CHUNKS, name="theirs"))

    at_chunk(3, put_it_first)
    ours = store.put("s1", THREE_CHUNKS, name="ours")

    assert home.kept() == [ours.sha256] == [theirs[0].sha256]
    assert store.read(ours.id) == store.read(theirs[0].id) == THREE_CHUNKS


def test_content_that_is_about_to_be_noted_is_not_collected(store: AssetStore, home: PostgresHome) -> None:
    old = store.put("s1", b"precious", name="a")
    store.delete_session("s1")
    with store._place.receiving() as incoming, home.open() as other:
        incoming.write(b"precious")
        with incoming.keeping(old) as index:
            assert other.collect().checked["content"] == 0
            index.add(old)

    assert store.collect().checked["content"] == 0
    assert store.read(old.id) == b"precious"


def test_content_that_is_being_collected_is_sent_again(store: AssetStore, home: PostgresHome) -> None:
    import psycopg

    old = store.put("s1", b"precious", name="a")
    store.delete_session("s1")
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(home.address) as collecting:
            collecting.execute("SELECT 1 FROM agent_assets.content FOR UPDATE")
            put = pool.submit(store.put, "s2", b"precious", name="b")
            wait_until_it_waits(home, put)
            collecting.execute("DELETE FROM agent_assets.content")
        new = put.result()

    assert new.sha256 == old.sha256 and store.read(new.id) == b"precious"


def test_more_content_than_one_step_is_collected(
    store: AssetStore, home: PostgresHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_BATCH", 5)
    for number in range(13):
        store.put("s1", b"%d" % number, name="a")
    kept = store.put("s2", b"7", name="b")
    store.delete_session("s1")

    assert store.collect().checked == {"content": 12, "temporary": 0}
    assert home.kept() == [kept.sha256]


def test_only_writers_of_the_same_session_wait_for_each_other(store: AssetStore, home: PostgresHome) -> None:
    with ThreadPoolExecutor(1) as pool, home.open(quota=10) as other:
        with store._place.writing("s1") as index:
            waiting = pool.submit(other.put, "s1", b"87654321", name="b")
            wait_until_it_waits(home, waiting)
            other.put("s2", b"12345678", name="c")
            index.share("s2", "s1")
        with pytest.raises(StoreError, match="room for 2 more"):
            waiting.result()
    assert home.kept() == [sha256(b"12345678").hexdigest()]


def test_an_asset_that_is_deleted_while_it_is_read_is_not_found(store: AssetStore) -> None:
    asset = store.put("s1", THREE_CHUNKS, name="a")
    with store.open(asset.id) as file:
        file.read(10)
        store.delete_session("s1")
        store.collect()
        with pytest.raises(AssetNotFound):
            file.read()


def test_a_row_that_is_gone_from_the_middle_is_damage(store: AssetStore, home: PostgresHome) -> None:
    asset = store.put("s1", THREE_CHUNKS, name="a")
    with store.open(asset.id) as file:
        home.rows("DELETE FROM agent_assets.chunks WHERE start = %s", CHUNK)
        with pytest.raises(StoreDamaged, match="is missing; run check"):
            file.read()
    with pytest.raises(StoreDamaged, match="was changed"):
        store.open(asset.id)

    store.put("s2", THREE_CHUNKS, name="b")

    assert store.read(asset.id) == THREE_CHUNKS


# Tables.


def test_time_is_the_servers_unless_a_clock_is_given(store: AssetStore, home: PostgresHome) -> None:
    sql = "SELECT extract(epoch FROM clock_timestamp())::float8"
    before = home.rows(sql)[0][0]
    assert before <= store.put("s1", b"x", name="a").created <= home.rows(sql)[0][0]
    with home.open(clock=lambda: 12.5) as other:
        assert other.put("s1", b"x", name="a").created == 12.5


def test_tables_of_a_later_version_are_left_alone(empty: PostgresHome) -> None:
    empty.open().close()
    empty.rows("UPDATE agent_assets.format SET number = 99; ALTER TABLE agent_assets.assets RENAME TO things")

    with pytest.raises(StoreTooNew, match=r"agent_assets in .* has format 99.*update the platform"):
        empty.open()
    assert empty.rows("SELECT to_regclass('agent_assets.assets')") == [(None,)]


def test_tables_are_made_wholly_or_not_at_all(empty: PostgresHome, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tables, "_STEPS", (f"{tables._STEPS[0]}; INSERT INTO nowhere VALUES (1);",))
        with pytest.raises(StoreError, match="nowhere"):
            empty.open()
    assert empty.rows("SELECT to_regnamespace('agent_assets')") == [(None,)]

    with empty.open() as store:
        store.put("s1", b"x", name="a")


def test_a_migration_keeps_what_is_there(empty: PostgresHome, monkeypatch: pytest.MonkeyPatch) -> None:
    with empty.open() as store:
        asset = store.put("s1", b"x", name="a")
    later = tables.FORMAT + 1
    add = "ALTER TABLE agent_assets.assets ADD COLUMN mood TEXT"
    step = f"{add}; UPDATE agent_assets.format SET number = {later};"
    monkeypatch.setattr(tables, "_STEPS", (*tables._STEPS, step))
    monkeypatch.setattr(tables, "FORMAT", later)

    for _ in range(2):
        with empty.open() as store:
            assert store.list("s1") == (asset,)
    assert empty.rows("SELECT mood FROM agent_assets.assets") == [(None,)]


def test_eight_may_make_the_tables_at_once(empty: PostgresHome) -> None:
    start = threading.Barrier(8)

    def put(number: int) -> str:
        start.wait()
        with empty.open() as store:
            return store.put("s1", b"%d" % number, name="a").id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(put, range(8)))) == 8
    with empty.open() as store:
        assert len(store.list("s1")) == 8


def test_tables_that_are_gone_are_called_damage(empty: PostgresHome) -> None:
    with empty.open() as store:
        asset = store.put("s1", b"x", name="a")
        empty.rows("DROP TABLE agent_assets.chunks")
        with pytest.raises(StoreDamaged, match="chunks"):
            store.read(asset.id)


def test_assets_outlive_the_tables_of_sessions(
    postgres_url: str, store: AssetStore, home: PostgresHome
) -> None:
    asset = store.put("s1", b"x", name="a")
    with closing(open_store(postgres_url)) as sessions:
        sessions.create(Session("s1"))
        home.rows("DROP SCHEMA agent_store CASCADE")

    assert store.read(asset.id) == b"x"


# Applications.

CONFIG = {"agents": {"helper": {"model": "m"}}, "models": {"m": {"provider": "echo"}}}


def make_app(**places: Any) -> AgentApplication:
    return AgentApplication(CONFIG, plugins=[EchoProvider()], installed=False, **places)


def assets_of(app: AgentApplication) -> Any:
    return app._services.assets


def test_assets_live_with_sessions_that_are_in_postgres(postgres_url: str, home: PostgresHome) -> None:
    with make_app(store=postgres_url) as here, make_app(store=postgres_url) as there:
        session_id = here.create_session().session_id
        list(here.chat(session_id, "hello"))
        asset = assets_of(here).put(session_id, b"picture", name="a.png")
        branch = there.fork_session(session_id, upto_index=0)

        assert assets_of(there).read(asset.id) == b"picture"
        assert [one.id for one in assets_of(here).list(branch.session_id)] == [asset.id]
        there.delete_session(session_id)
        assert assets_of(here).get(asset.id).session_id == branch.session_id
        there.delete_session(branch.session_id)
        with pytest.raises(AssetNotFound):
            assets_of(here).get(asset.id)
    with pytest.raises(StoreUnavailable, match="closed"):
        assets_of(here).list(session_id)
    while home.rows(f"SELECT count(*) {OTHERS}")[0][0]:
        pass


def test_assets_can_be_in_another_place_than_the_sessions(
    postgres_url: str, home: PostgresHome, tmp_path: Path
) -> None:
    with make_app(assets=home.address) as app:
        assert isinstance(assets_of(app), PostgresAssetStore)
    with make_app(store=postgres_url, assets=tmp_path) as app:
        assert type(assets_of(app)) is SessionAssetStore
    with make_app() as app:
        assert assets_of(app) is None
    with home.open(max_bytes=3) as store:
        with make_app(store=postgres_url, assets=store) as app:
            assert assets_of(app) is store
        assert store.list("s1") == ()  # whoever opened it closes it


def test_an_application_whose_assets_cannot_be_opened_closes_its_sessions(
    postgres_url: str, empty: PostgresHome
) -> None:
    empty.rows("CREATE SCHEMA agent_assets; CREATE TABLE agent_assets.format (number INTEGER)")
    empty.rows("INSERT INTO agent_assets.format VALUES (99)")

    with pytest.raises(StoreTooNew):
        make_app(store=postgres_url)
    while empty.rows(f"SELECT count(*) {OTHERS}")[0][0]:
        pass
