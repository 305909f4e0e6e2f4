"""Damage to the file of a SQLite store: whatever changes what anybody reads is reported by the deep check."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_app.errors import StoreError
from agent_app.store import open_store, words
from agent_app.store.base import Approval, Changes, Grant
from agent_core import AgentCore, Message, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_app.store.base import SessionStore

CORE = AgentCore()
FLIPS = 4_000 if os.environ.get("FAULTS") == "long" else 24
WORDS = ("river", "word3", "mountain", "padding", "title 3", "wor", "m", "native")


def opened(path: Path) -> SessionStore:
    return open_store(f"sqlite:///{path}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store that has some of everything, and whose words are all in the index."""
    path = tmp_path_factory.mktemp("made") / "store.db"
    patch = pytest.MonkeyPatch()
    patch.setattr(words, "_LONGEST", 100)
    with closing(opened(path)) as store:
        for number in range(4):
            fill(store, number)
        fork = Session("fork", list(store.load("session-0").session.history[:6]), {})
        store.fork("session-0", fork, 6)
    patch.undo()
    assert not Path(f"{path}-wal").exists()
    return path.read_bytes()


def fill(store: SessionStore, number: int) -> None:
    name = f"session-{number}"
    texts = [f"river {number} word{line} mountain {'padding ' * (line % 7)}" for line in range(12)]
    talk = [Message("user" if line % 2 == 0 else "assistant", text) for line, text in enumerate(texts)]
    session = CORE.append_messages(CORE.create_session(name), talk)
    stored = store.create(session, title=f"Title {number}", agent_id="helper")
    native = [{"role": "user", "content": f"native {number} {item}"} for item in range(5)]
    more = {**session.metadata, "native_messages": native, "note": f"kept {number}"}
    store.save(
        Session(name, session.history, more),
        stored,
        changes=Changes(
            events=[{"type": "text", "text": f"event {number} {line} {'x' * line}"} for line in range(15)],
            approvals=[Approval(id=f"a{number}", session_id=name, suspension={"tool": "shell"}, created=5.0)],
            intents={f"call{number}": {"tool": "shell"}},
        ),
    )
    store.put_input(name, {"role": "user", "content": f"queued {number}"}, "queue")
    if number % 2:
        store.decide(f"a{number}", {"approved": True})
    grant = Grant(id=f"g{number}", pattern="shell*", effect="allow", scope="session", key=name, created=1.0)
    store.add_grant(grant)
    store.acquire(name, "somebody else", seconds=1e9)


def read_all(path: Path) -> str:
    """All that anybody can read of a store."""
    with closing(opened(path)) as store:
        found: list[object] = [list(store), store.list(limit=100)]
        for name in store:
            stored = store.load(name)
            found += [stored.revision, stored.session.to_dict(), store.messages(name), store.info(name)]
            found += [store.events(name), store.inputs(name), store.approvals(name), store.holder(name)]
            found += [store.grants(session_id=name), store.open_intents(name)]
        found += [store.list(query=word, limit=100) for word in WORDS]
        found += [store.approvals(undecided=True), store.grants(), store.forgotten_decisions()]
    return repr(found)


def problems(path: Path) -> Sequence[str]:
    try:
        with closing(opened(path)) as store:
            return store.check(deep=True).problems
    except StoreError as error:
        return [str(error)]


def write(path: Path, content: bytes | bytearray) -> None:
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(content)


def test_a_store_that_is_whole_has_no_problems(made: bytes, tmp_path: Path) -> None:
    write(tmp_path / "store.db", made)

    with closing(opened(tmp_path / "store.db")) as store:
        report = store.check(deep=True)

    assert report.problems == ()
    assert report.checked["events"] == 60
    assert report.checked["rows"] > 100


def test_every_bit_that_changes_what_is_read_is_reported(made: bytes, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    write(path, made)
    before = read_all(path)
    chance = random.Random(13)  # the same flips every time
    places = [place for place, byte in enumerate(made) if byte]
    changed, unnoticed = 0, list[tuple[int, int]]()

    for _ in range(FLIPS):
        at, bit = chance.choice(places), 1 << chance.randrange(8)
        damaged = bytearray(made)
        damaged[at] ^= bit
        write(path, damaged)
        try:
            if read_all(path) == before:
                continue  # free space, or what SQLite keeps for itself
        except StoreError:
            pass
        changed += 1
        write(path, damaged)
        if not problems(path):
            unnoticed.append((at, bit))

    assert unnoticed == []
    assert changed > FLIPS / 4


SPOILED = {
    "a middle event": ["DELETE FROM events WHERE session = 'session-1' AND seq = 7"],
    "a message": ["DELETE FROM entries WHERE list = (SELECT messages FROM sessions LIMIT 1) AND seq = 3"],
    "a session": [
        "DELETE FROM sessions WHERE id = 'session-2'",
    ],
    "a content": ["DELETE FROM content WHERE id = 5"],
    "words": ["INSERT INTO words (words, rowid, text) VALUES ('delete', 1, 'river')"],
    "an index": ["DROP INDEX entries_by_content"],
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_was_taken_away_is_reported(what: str, made: bytes, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    write(path, made)

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in SPOILED[what]:
            connection.execute(statement)

    assert problems(path)


@pytest.mark.parametrize(
    ("table", "one", "other", "column"),
    [
        ("events", "session = 'session-1' AND seq = 3", "session = 'session-1' AND seq = 4", "body"),
        ("events", "session = 'session-1' AND seq = 3", "session = 'session-2' AND seq = 3", "body"),
        ("approvals", "id = 'a0'", "id = 'a1'", "decision"),
        ("intents", "session = 'session-0'", "session = 'session-1'", "body"),
        ("inputs", "session = 'session-0'", "session = 'session-1'", "body"),
        ("leases", "session = 'session-0'", "session = 'session-1'", "expires"),
        ("sessions", "id = 'session-0'", "id = 'session-1'", "title"),
        ("entries", "list = 1 AND seq = 2", "list = 1 AND seq = 4", "content"),
    ],
)
def test_rows_that_have_changed_places_are_reported(
    table: str, one: str, other: str, column: str, made: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    write(path, made)

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        sums = [row[0] for row in connection.execute(f"SELECT checksum FROM {table} WHERE {one}")]
        sums += [row[0] for row in connection.execute(f"SELECT checksum FROM {table} WHERE {other}")]
        first = connection.execute(f"SELECT {column} FROM {table} WHERE {one}").fetchone()[0]
        second = connection.execute(f"SELECT {column} FROM {table} WHERE {other}").fetchone()[0]
        assert first != second
        rest = iter(sums)  # a damaged disk computes no checksums
        connection.create_function("row_sum", -1, lambda *_: next(rest))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {one}", (second,))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {other}", (first,))

    found = problems(path)
    assert len([problem for problem in found if f"of {table} is not what it was" in problem]) == 2


# --- the log --------------------------------------------------------------------------------------------

TALKER = """
import os, sys
from agent_app.store import open_store
from agent_core import Message, Session
store = open_store(f"sqlite:///{sys.argv[1]}")
stored = store.load("talk") if "talk" in list(store) else store.create(Session("talk"))
for number in range(int(sys.argv[2])):
    history = stored.session.history.append(Message("user", f"line {number}"))
    stored = store.save(Session("talk", history), stored)
os.kill(os.getpid(), 9)
"""


def talk_and_die(path: Path, saves: int) -> None:
    """Save some turns, in a process that is killed, so that the log stays."""
    subprocess.run([sys.executable, "-c", TALKER, str(path), str(saves)], check=False, timeout=60)
    assert Path(f"{path}-wal").exists()


@pytest.mark.parametrize("saves", [1, 520])
def test_a_log_that_was_deleted_is_noticed(tmp_path: Path, saves: int) -> None:
    path = tmp_path / "store.db"
    talk_and_die(path, saves)
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink()

    [problem] = problems(path)
    assert "store.db-wal is missing" in problem
    with closing(opened(path)) as store:
        store.create(Session("another"))
    [problem] = problems(path)
    assert "-wal is missing since" in problem


def test_a_file_that_was_copied_without_its_log_is_noticed(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with closing(opened(path)) as store:
        stored = store.create(Session("talk"))
        store.save(Session("talk", [Message("user", "said")]), stored)
        shutil.copyfile(path, copy)
        assert store.check(deep=True).problems == ()

    assert any("copy.db-wal is missing" in problem for problem in problems(copy))
    assert problems(path) == ()


def test_a_crash_is_no_missing_log(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    for saves in (1, 510, 0):
        talk_and_die(path, saves)
        assert problems(path) == ()


def test_a_process_that_is_killed_while_the_log_begins_loses_nothing(tmp_path: Path) -> None:
    path, killed = tmp_path / "store.db", tmp_path / "killed"
    with closing(opened(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store.create(Session("talk"))
        other.execute("UPDATE log SET state = 1")
        killed.mkdir()
        for ending in ("", "-wal"):
            shutil.copyfile(f"{path}{ending}", killed / f"store.db{ending}")

    for _ in range(3):
        assert problems(killed / "store.db") == ()


def test_a_disk_that_is_full_while_the_log_begins_is_no_missing_log(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(opened(path)) as store:
        store.create(Session("talk"))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(
                "CREATE TRIGGER full BEFORE UPDATE ON log WHEN NEW.state = 2"
                " BEGIN SELECT RAISE(FAIL, 'the disk is full'); END"
            )
            other.execute("UPDATE log SET state = 1")

    for _ in range(2):
        assert Path(f"{path}-wal").stat().st_size
        assert not any("is missing" in problem for problem in problems(path))


def test_a_log_that_was_cut_to_nothing_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    talk_and_die(path, 1)
    os.truncate(f"{path}-wal", 0)

    [problem] = problems(path)
    assert "store.db-wal is missing" in problem


def test_a_copy_that_sqlite_makes_is_whole(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with closing(opened(path)) as store:
        stored = store.create(Session("talk"))
        store.save(Session("talk", [Message("user", "said")]), stored)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)

    assert problems(copy) == ()
    with closing(opened(copy)) as store:
        assert len(store.load("talk").session.messages) == 1
