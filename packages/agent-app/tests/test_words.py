"""The newest messages of a SQLite store are found by their words before these are in the index, and after."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import StoreDamaged
from agent_app.store import open_store, words
from agent_app.store.repair import repair_store
from agent_core import Message, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_app.store.sql import SqlStore

SOME = ("river", "lake", "Straße", "Ärea", "sea", "seaside")
FEW = 3 * words._EACH  # room for two short messages, and not for three


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Callable[[], SqlStore]]:
    """Open the same file once more, as another process would."""
    opened: list[SqlStore] = []

    def open_it() -> SqlStore:
        store: Any = open_store(f"sqlite:///{tmp_path}/store.db")
        opened.append(store)
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Callable[[], SqlStore]) -> SqlStore:
    return reopen()


def say(store: SqlStore, session_id: str, *texts: str) -> None:
    store.create(Session(session_id, [Message("user", text) for text in texts]))


def found(store: SqlStore, query: str) -> list[str]:
    return sorted(info.id for info in store.list(query=query).sessions)


def indexed(store: SqlStore) -> list[int]:
    """The contents whose words are in the index."""
    with store._database.reading() as transaction:
        return [row[0] for row in transaction.rows("SELECT rowid FROM words ORDER BY rowid")]


def test_a_message_is_found_at_once_and_by_everybody(store: SqlStore, reopen: Callable[[], SqlStore]) -> None:
    say(store, "s", "The river begins in a lake")

    assert indexed(store) == []
    assert [found(one, "river la") for one in (store, reopen())] == [["s"], ["s"]]
    assert store.list(query="lake").sessions[0].match == "The river begins in a lake"


def test_words_come_into_the_index_together(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_LONGEST", FEW)
    counts = []
    for number in range(6):
        say(store, f"s{number}", f"river {number}")
        counts.append(len(indexed(store)))
        assert found(store, "river") == [f"s{one}" for one in range(number + 1)]

    assert counts == [0, 0, 3, 3, 3, 6]


def test_long_texts_do_not_wait(store: SqlStore) -> None:
    say(store, "s", "river " * words._LONGEST)

    assert len(indexed(store)) == 1


def test_a_process_that_says_little_leaves_no_more_to_look_through_than_one_that_says_much(
    reopen: Callable[[], SqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "_LONGEST", FEW)
    for number in range(6):
        store = reopen()
        say(store, f"s{number}", "river")  # the same content, which is kept once
        say(store, f"t{number}", f"lake {number}")
        store.close()

    assert len(indexed(reopen())) >= 5


def test_what_came_to_nothing_is_not_taken_for_indexed(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "_LONGEST", FEW)
    say(store, "s0", "river 0")
    with pytest.raises(InterruptedError):
        say_in_vain(store)

    assert (indexed(store), found(store, "river")) == ([], ["s0"])
    for number in range(4, 6):
        say(store, f"s{number}", f"river {number}")
    assert (len(indexed(store)), found(store, "river")) == (3, ["s0", "s4", "s5"])


def say_in_vain(store: SqlStore) -> None:
    with store.writing():
        for number in range(1, 3):
            say(store, f"s{number}", f"river {number}")
        raise InterruptedError


def test_what_was_no_message_before_is_found_once_it_is(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = Message("user", "twin river").to_dict()
    store.create(Session("old", (), {"native_messages": [twin]}))
    monkeypatch.setattr(words, "_LONGEST", 0)
    say(store, "lake", "lake")
    number = indexed(store)[0]
    monkeypatch.undo()

    say(store, "s", "twin river")

    assert (found(store, "twin"), min(indexed(store)) < number) == (["s"], True)


def test_a_damaged_message_hides_no_other(store: SqlStore) -> None:
    say(store, "s", "river one", "river two", "river three")
    with store._database.writing() as transaction:
        for text, damage in ((b"one", b"{"), (b"two", b"[1]")):
            sql = "UPDATE content SET body = ? WHERE instr(body, ?) > 0"
            assert transaction.run(sql, damage, text)

    assert found(store, "three") == ["s"]


@pytest.mark.parametrize("longest", [0, FEW, 100 * FEW])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_said_deleted_and_collected_searches_find_what_is_there(
    reopen: Callable[[], SqlStore], monkeypatch: pytest.MonkeyPatch, seed: int, longest: int
) -> None:
    monkeypatch.setattr(words, "_LONGEST", longest)
    choice = random.Random(seed)
    stores = [reopen(), reopen()]
    there: dict[str, str] = {}
    for number in range(60):
        store = choice.choice(stores)
        what = choice.random()
        if what < 0.6 or not there:
            there[f"s{number}"] = text = " ".join(choice.choices(SOME, k=2))
            say(store, f"s{number}", text)
        elif what < 0.85:
            gone = choice.choice(sorted(there))
            store.delete(gone)
            del there[gone]
        else:
            store.collect()
        for word in SOME:
            wanted = sorted(one for one, text in there.items() if has(text, word))
            assert found(choice.choice(stores), word) == wanted, (number, word)

    assert stores[0].check(deep=True).problems == ()


def has(text: str, word: str) -> bool:
    return any(said.startswith(word) for said in text.split())


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM words_data",
        "DROP TABLE words_docsize",
        "UPDATE words_data SET block = zeroblob(8) WHERE id > 10",
    ],
)
def test_a_damaged_index_says_which_command_makes_a_new_one(tmp_path: Path, damage: str) -> None:
    path, fresh = tmp_path / "store.db", tmp_path / "fresh.db"
    long = Message("user", "teapot " * 20_000)
    with closing(open_store(f"sqlite:///{path}")) as store:
        store.create(Session("s", [long]))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()

    with closing(open_store(f"sqlite:///{path}")) as store:
        with pytest.raises(StoreDamaged, match="agent sessions repair"):
            store.list(query="teapot")
        assert store.load("s").session.messages == [long]

    assert repair_store(path, fresh).problems == ()
    with closing(open_store(f"sqlite:///{fresh}")) as store:
        assert [one.id for one in store.list(query="teapot").sessions] == ["s"]
