"""What is SQLite's own: files, their modes, formats and damage, and other processes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_app.errors import SessionNotFound, StoreDamaged, StoreError, StoreTooNew, StoreUnavailable
from agent_app.store import open_store, sqlite_file, words
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import ArgumentError, Message, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = sqlite_file.FORMAT
BACKUP = f"store.db.format-{NOW}.backup"
NEXT_FORMAT = "ALTER TABLE sessions ADD COLUMN mood TEXT; CREATE TABLE moods (mood TEXT);"


def said(*texts: str, session_id: str = "s") -> Session:
    return Session(session_id, [Message("user", text) for text in texts])


def opened(path: Path) -> SqlStore:
    return SqlStore(SQLiteDatabase(f"sqlite:///{path}"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one session, closed."""
    made = tmp_path / "store.db"
    with closing(opened(made)) as store:
        store.create(said("one", "two"))
    return made


def run_sql(path: Path, *statements: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [row for statement in statements for row in connection.execute(statement).fetchall()]


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


# --- files ----------------------------------------------------------------------------------------------


def test_a_new_store_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(opened(tmp_path / "data" / "store.db")) as store:
            store.create(said("one"))
            made = list((tmp_path / "data").iterdir())
            assert {file.name for file in made} == {"store.db", "store.db-wal", "store.db-shm"}
            assert {mode(file) for file in made} == {"0o600"}
    finally:
        os.umask(before)
    assert mode(tmp_path / "data") == "0o700"


def test_modes_of_what_is_there_already_are_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "store.db").touch(mode=0o640)
    (tmp_path / "store.db").chmod(0o640)

    opened(tmp_path / "store.db").close()

    assert (mode(tmp_path), mode(tmp_path / "store.db")) == ("0o755", "0o640")


def test_a_closed_store_is_one_file(path: Path) -> None:
    assert list(files(path.parent)) == ["store.db"]


def test_addresses_mean_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for url in ("sqlite:///a.db", "sqlite:///sub/b.db", f"sqlite:///{tmp_path}/c.db", "sqlite:///~/d.db"):
        store = open_store(url)
        assert store.url == url
        store.create(said("one"))
        store.close()

    for name in ("a.db", "sub/b.db", "c.db", "home/d.db"):
        assert run_sql(tmp_path / name, "SELECT id FROM sessions") == [("s",)]


@pytest.mark.parametrize(
    "name", ["with space.db", "question?mode=ro", "hash#1.db", "100%.db", "ä.db", "'q'.db"]
)
def test_any_name_is_a_file_of_that_name(tmp_path: Path, name: str) -> None:
    store = open_store(f"sqlite:///{tmp_path}/{name}")
    store.create(said("one"))
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_store_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(url)
    store.create(said("one"))
    assert list(store) == ["s"]
    assert list(tmp_path.iterdir()) == []
    store.close()


@pytest.mark.parametrize(
    "url", ["sqlite", "sqlite:", "sqlite:/x.db", "sqlite://x.db", "sqlite:///", "sqlite:///a\0b"]
)
def test_an_address_that_could_mean_anything_is_refused(url: str) -> None:
    with pytest.raises(ArgumentError, match="sqlite:///path"):
        open_store(url)


def test_an_address_of_no_store_is_refused_without_its_secrets() -> None:
    with pytest.raises(ArgumentError, match="'mysql'") as caught:
        open_store("mysql://me:secret@host/db")
    assert "secret" not in str(caught.value)


# --- places that cannot be used --------------------------------------------------------------------------


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that unprivileged users reach too."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be someone for whom the modes of files count: they do not for root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_only_be_read_is_named(shared_folder: Path) -> None:
    place = shared_folder / "store.db"
    with closing(opened(place)) as store:
        store.create(said("one"))
    place.chmod(0o444)
    before = place.read_bytes()
    with unprivileged():
        with pytest.raises(StoreUnavailable, match=r"store\.db.*rights"), closing(opened(place)) as store:
            store.create(said(session_id="t"))

        assert place.read_bytes() == before


def test_a_folder_that_may_only_be_read_is_named(shared_folder: Path) -> None:
    with unprivileged():
        folder = shared_folder / "folder"
        folder.mkdir(mode=0o500)
        with pytest.raises(StoreUnavailable, match=r"store\.db.*Permission denied.*choose another place"):
            opened(folder / "store.db")
        with pytest.raises(StoreUnavailable, match="Permission denied"):
            opened(folder / "below" / "store.db")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="directory"):
        opened(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        opened(tmp_path / "file" / "store.db")


@pytest.mark.parametrize(
    "content", [b"Dear diary,\n" * 500, bytes(range(256)) * 40, b"SQLite format 3\0" + b"x" * 5000]
)
def test_what_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "notes.txt"
    place.write_bytes(content)

    with pytest.raises(StoreDamaged, match=r"notes\.txt"):
        opened(place)

    assert files(tmp_path) == {"notes.txt": content}


@pytest.mark.parametrize("mark", ["PRAGMA user_version = 1", "PRAGMA application_id = 7", "SELECT 1"])
def test_a_database_of_another_program_is_left_alone(tmp_path: Path, mark: str) -> None:
    run_sql(tmp_path / "other.db", "CREATE TABLE sessions (cookie TEXT)", mark)
    before = files(tmp_path)

    with pytest.raises(StoreDamaged, match="another program"):
        opened(tmp_path / "other.db")

    assert files(tmp_path) == before


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_file_that_was_cut_off_is_called_damaged(tmp_path: Path, share: float) -> None:
    place = tmp_path / "store.db"
    with closing(opened(place)) as store:
        for number in range(40):
            store.create(said(*(f"{number} {line} " * 50 for line in range(10)), session_id=f"s{number}"))
    content = place.read_bytes()
    place.write_bytes(content[: int(len(content) * share)])

    def load_all() -> None:
        with closing(opened(place)) as store:
            for number in range(40):
                store.load(f"s{number}")

    with pytest.raises(StoreDamaged, match=r"store\.db.*repair|lost|restore"):
        load_all()


def test_a_check_reports_a_file_that_was_overwritten(path: Path) -> None:
    ((root,),) = run_sql(path, "SELECT rootpage FROM sqlite_master WHERE name = 'content'")
    ((page_size,),) = run_sql(path, "PRAGMA page_size")
    assert isinstance(root, int) and isinstance(page_size, int)
    content = bytearray(path.read_bytes())
    content[(root - 1) * page_size : root * page_size] = b"\xff" * page_size
    path.write_bytes(content)

    with closing(opened(path)) as store:
        assert "damaged" in store.check().problems[0] or "database reports" in store.check().problems[0]
        with pytest.raises(StoreDamaged, match="agent sessions repair"):
            store.load("s")


def test_a_full_disk_loses_nothing_and_is_no_end(path: Path) -> None:
    with closing(opened(path)) as store:
        base = store.load("s")
        database = store._database
        assert isinstance(database, SQLiteDatabase) and database._connection is not None
        (pages,) = database._connection.execute("PRAGMA page_count").fetchone()
        database._connection.execute(f"PRAGMA max_page_count = {pages}")

        with pytest.raises(StoreUnavailable, match=r"is full: this change was not written.*make room"):
            store.save(said("one", "two", "x" * 100_000), base)

        assert store.load("s") == base
        saved = store.save(said("one", "two", "three"), base)  # the limit went with the old connection
        assert store.load("s") == saved


# --- other connections and processes ------------------------------------------------------------------


def test_a_store_that_others_write_too_long_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "_BUSY_SECONDS", 0.0)
    with closing(opened(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        base = store.load("s")
        other.execute("BEGIN IMMEDIATE")

        assert store.load("s") == base
        with pytest.raises(StoreUnavailable, match="in use by another process"):
            store.save(said("one", "two", "three"), base)
        other.execute("ROLLBACK")

        saved = store.save(said("one", "two", "three"), base)
        assert store.load("s") == saved


WRITER = """
import sys
from agent_app.store import open_store
from agent_core import Message, Session
url, name = sys.argv[1:]
store = open_store(url)
stored = store.create(Session(name))
print("ready", flush=True)
sys.stdin.readline()
for number in range(40):
    history = stored.session.history.append(Message("user", f"{name} {number}"))
    stored = store.save(Session(name, history), stored)
    store.append_events(name, [{"number": number}])
store.close()
"""


def test_two_processes_write_two_sessions(path: Path) -> None:
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, f"sqlite:///{path}", name], stdin=pipe, stdout=pipe)
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
    ended = [writer.communicate(b"go\n", timeout=120) and writer.returncode for writer in writers]

    assert ended == [0, 0]
    with closing(opened(path)) as store:
        for name in ("left", "right"):
            messages = store.load(name).session.messages
            assert [message.content for message in messages] == [f"{name} {n}" for n in range(40)]
            assert [event["seq"] for event in store.events(name)] == list(range(1, 41))
        assert store.check(deep=True).problems == ()


def open_at_once(path: Path, count: int) -> list[SqlStore]:
    start = threading.Barrier(count)

    def open_it(_number: int) -> SqlStore:
        start.wait()
        return opened(path)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(open_it, range(count)))


def test_eight_may_make_the_store_at_once(tmp_path: Path) -> None:
    for attempt in range(10):
        stores = open_at_once(tmp_path / f"{attempt}.db", 8)
        for number, store in enumerate(stores):
            store.create(said(session_id=f"s{number}"))
        assert len(list(stores[0])) == 8
        for store in stores:
            store.close()


# --- how safe a write is --------------------------------------------------------------------------------


def test_a_turn_is_flushed_and_what_may_come_soon_is_not(path: Path) -> None:
    with closing(opened(path)) as store:
        levels = []
        for durability in ("turn", "soon", "turn"):
            with store._database.writing(durability) as transaction:
                levels.append(transaction.rows("PRAGMA synchronous")[0][0])
            with store._database.reading() as transaction:
                assert transaction.rows("PRAGMA journal_mode")[0][0] == "wal"
    assert levels == [2, 1, 2]


# --- formats ----------------------------------------------------------------------------------------------


def test_a_file_of_a_later_version_is_left_alone(path: Path) -> None:
    run_sql(path, "PRAGMA journal_mode = DELETE", "PRAGMA user_version = 99")
    before = files(path.parent)
    dates = path.stat().st_mtime_ns

    with pytest.raises(StoreTooNew, match=r"store\.db has format 99.*update the platform") as caught:
        opened(path)

    assert (caught.value.found, caught.value.known) == (99, sqlite_file.FORMAT)
    assert (files(path.parent), path.stat().st_mtime_ns) == (before, dates)


def test_a_later_version_that_has_the_file_open_is_not_disturbed(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as later:
        later.execute("PRAGMA user_version = 99")  # still in the log
        before = files(path.parent)

        with pytest.raises(StoreTooNew):
            opened(path)

        assert files(path.parent)["store.db"] == before["store.db"]
        assert files(path.parent)["store.db-wal"] == before["store.db-wal"]


def next_version(monkeypatch: pytest.MonkeyPatch, script: str = NEXT_FORMAT) -> None:
    """From here on, we are a later version."""
    monkeypatch.setattr(sqlite_file, "FORMAT", NOW + 1)
    monkeypatch.setattr(
        sqlite_file, "_script", lambda found: script if found else pytest.fail("not a new store")
    )


def test_a_migration_puts_a_copy_aside_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_sql(path, "SELECT * FROM content", "SELECT * FROM entries", "SELECT * FROM sessions")
    next_version(monkeypatch)

    with closing(opened(path)) as store:
        assert [message.content for message in store.messages("s")] == ["one", "two"]

    copy = path.with_name(BACKUP)
    assert list(files(path.parent)) == ["store.db", BACKUP]
    assert mode(copy) == "0o600"
    assert run_sql(copy, "PRAGMA user_version") == [(NOW,)]
    assert run_sql(copy, "SELECT * FROM content", "SELECT * FROM entries", "SELECT * FROM sessions") == before
    assert run_sql(path, "PRAGMA user_version", "SELECT mood FROM sessions") == [(NOW + 1,), (None,)]

    monkeypatch.undo()
    with closing(opened(copy)) as store:  # the copy is a store of the earlier version
        assert store.check(deep=True).problems == ()
    with pytest.raises(StoreTooNew):
        opened(path)


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_sql(path, "SELECT * FROM sqlite_master")
    for _ in range(2):  # also the second time, when there is a copy already
        next_version(monkeypatch, f"{NEXT_FORMAT} INSERT INTO nowhere VALUES (1);")
        with pytest.raises(StoreError, match="nowhere"):
            opened(path)

    assert run_sql(path, "PRAGMA user_version") == [(NOW,)]
    assert run_sql(path, "SELECT * FROM sqlite_master") == before
    next_version(monkeypatch)
    opened(path).close()
    monkeypatch.undo()
    with closing(opened(path.with_name(BACKUP))) as store:
        assert list(store) == ["s"]


def test_a_copy_that_was_begun_and_never_finished_is_no_obstacle(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.with_name(f"{BACKUP}.unfinished").write_bytes(b"half")
    next_version(monkeypatch)
    opened(path).close()
    assert list(files(path.parent)) == ["store.db", BACKUP]


def test_eight_may_migrate_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    next_version(monkeypatch)
    for store in open_at_once(path, 8):
        assert list(store) == ["s"]
        store.close()
    assert run_sql(path, "PRAGMA user_version") == [(NOW + 1,)]
    copy = path.with_name(BACKUP)
    assert run_sql(copy, "PRAGMA user_version", "SELECT id FROM sessions") == [(NOW,), ("s",)]


def test_nothing_is_put_aside_for_a_new_store(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "store.db")) as store, pytest.raises(SessionNotFound):
        store.load("s")
    assert list(files(tmp_path)) == ["store.db"]


def test_what_was_deleted_cannot_be_read_from_the_file(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    with closing(opened(place)) as store:
        store.create(said("the word is zebra", session_id="s"))
        store.create(said("the word is horse", session_id="t"))
    assert b"zebra" in place.read_bytes()

    with closing(opened(place)) as store:
        store.delete("s")

    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"zebra" not in left
    assert b"horse" in left


def left_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def indexed(path: Path) -> set[object]:
    """The words that the index has, as SQLite tells them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, words, row)")
        return {row[0] for row in connection.execute("SELECT term FROM temp.terms")}


@pytest.fixture
def spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlStore]:
    """A store, in use, whose words come into the index at once; it has words of others around them."""
    monkeypatch.setattr(words, "_LONGEST", 0)
    with closing(opened(tmp_path / "store.db")) as store:
        for number in range(30):
            store.create(said(f"the horse number {number} eats", session_id=f"horse {number}"))
        yield store


def test_deleted_words_leave_index_and_log_at_once(spoken: SqlStore, tmp_path: Path) -> None:
    spoken.create(said("quagga zebra", "a zyzzyva", session_id="s"), title="Okapi")
    spoken.append_events("s", [{"type": "text", "text": "quagga"}])
    assert {"zebra", "quagga", "zyzzyva", "horse"} <= indexed(tmp_path / "store.db")

    spoken.delete("s")

    assert indexed(tmp_path / "store.db").isdisjoint({"zebra", "quagga", "zyzzyva"})
    assert "horse" in indexed(tmp_path / "store.db")
    assert spoken.list(query="zebra").sessions == ()
    assert len(spoken.list(query="horse").sessions) == 30
    left = left_in(tmp_path)
    assert not [word for word in (b"zebra", b"quagga", b"zyzzyva", b"Okapi") if word in left]
    assert spoken.check(deep=True).problems == ()


def test_deleted_words_leave_an_index_that_is_rewritten_in_many_steps(
    spoken: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "_PAGES", 1)
    spoken.create(said(*(f"zebra{number} " * 40 for number in range(300)), session_id="s"))

    spoken.delete("s")

    assert not [word for word in indexed(tmp_path / "store.db") if str(word).startswith("zebra")]
    assert b"zebra" not in left_in(tmp_path)
    assert spoken.check(deep=True).problems == ()


def test_words_that_were_edited_away_are_gone_at_once(spoken: SqlStore, tmp_path: Path) -> None:
    stored = spoken.create(said("first", "zebra", "last", session_id="s"))
    kept = spoken.fork("s", Session("fork", stored.session.history[:1]), 1)

    spoken.save(said("first", "gnu", "last", session_id="s"), stored)

    assert "zebra" not in indexed(tmp_path / "store.db")
    assert b"zebra" not in left_in(tmp_path)
    assert [info.id for info in spoken.list(query="gnu").sessions] == ["s"]
    assert spoken.load("fork") == kept
    assert spoken.check(deep=True).problems == ()


def test_what_a_branch_still_has_is_not_edited_away(spoken: SqlStore, tmp_path: Path) -> None:
    stored = spoken.create(said("first", "zebra", "last", session_id="s"))
    kept = spoken.fork("s", Session("fork", stored.session.history[:2]), 2)

    spoken.save(said("first", session_id="s"), stored)

    assert spoken.load("fork") == kept
    assert [info.id for info in spoken.list(query="zebra").sessions] == ["fork"]
    assert b"zebra" in left_in(tmp_path)
    assert spoken.check(deep=True).problems == ()


def test_former_metadata_is_gone_at_once(spoken: SqlStore, tmp_path: Path) -> None:
    stored = spoken.create(Session("s", [], {"note": "zebra", "same": "gnu"}))
    spoken.create(Session("t", [], {"same": "gnu"}))

    stored = spoken.save(Session("s", [], {"note": "okapi", "same": "quagga"}), stored)
    spoken.close()

    assert b"zebra" not in left_in(tmp_path)
    with closing(opened(tmp_path / "store.db")) as store:
        assert store.load("t").session.metadata == {"same": "gnu"}
        assert store.load("s") == stored
        assert store.collect().checked["content"] == 0
        assert store.check(deep=True).problems == ()
