"""Long sessions: opened at their end, read page by page, and always what they were when they were opened."""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.errors import RevisionConflict, SessionNotFound, StoreDamaged, StoreUnavailable
from agent_app.store import lists, pages, records
from agent_core import AgentCore, Message, Session
from agent_core.testing import EchoProvider, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_app.store.base import Stored
    from agent_app.store.sql import SqlStore

A = {"provider": "a"}
LENGTHS = [0, 1, 65, 1057, 2100]


@pytest.fixture
def core() -> AgentCore:
    made = AgentCore()
    for name in "ab":
        made.register_provider(ScriptedProvider(repeat("an answer"), name=name))
    return made


@pytest.fixture(autouse=True)
def _everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LONG", 0)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Counts how often each reference was read, by its place."""
    counted: Counter[int] = Counter()
    select = lists.select

    def counting(transaction: Any, columns: str, list_id: int, start: int, end: int) -> Iterator[Any]:
        if "c.body" in columns:
            counted.update(range(start, end))
        return select(transaction, columns, list_id, start, end)

    monkeypatch.setattr(lists, "select", counting)
    return counted


def said(count: int, session_id: str = "s") -> Session:
    """A session that no provider has seen."""
    return Session(session_id, [Message("user", f"{number}") for number in range(count)])


def talked(core: AgentCore, count: int, session_id: str = "s") -> Session:
    """A session with native history."""
    return core.rebuild_native_history(said(count, session_id), A)


def texts(session: Session) -> list[Any]:
    return [message.content for message in session.messages]


def in_store(store: SqlStore, session: Session) -> Stored:
    store.create(session)
    return store.load(session.session_id)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("native", [False, True])
def test_a_session_is_read_back_as_it_was(
    store: SqlStore, core: AgentCore, length: int, native: bool
) -> None:
    session = talked(core, length) if native else said(length)
    stored = store.create(session)
    loaded = store.load("s")

    assert len(loaded.session.messages) == length
    assert loaded.session == stored.session
    assert loaded.session.seal == stored.session.seal
    assert loaded.session.to_dict() == session.to_dict()
    assert store.check(deep=True).problems == ()


def test_only_the_end_of_a_long_session_is_read(store: SqlStore, core: AgentCore, read: Counter[int]) -> None:
    session = in_store(store, talked(core, 1200)).session

    assert session.messages[-1].content == "1199"
    assert texts(Session("x", session.history[-30:])) == [str(number) for number in range(1170, 1200)]
    assert session.seal is not None
    assert min(read) >= 1100
    assert session.messages[5].content == "5"
    assert min(read) == 0
    assert read[1050] == 0


def test_going_on_with_a_long_session_reads_no_more_of_it(
    store: SqlStore, core: AgentCore, read: Counter[int]
) -> None:
    stored = in_store(store, talked(core, 1200))
    for number in range(100):
        longer = core.append_messages(stored.session, [Message("user", f"new {number}")])
        stored = store.save(longer, stored)

    assert min(read) >= 1100
    assert store.info("s").messages == 1300
    assert texts(store.load("s").session) == [*map(str, range(1200)), *(f"new {n}" for n in range(100))]
    assert store.load("s").session.seal == stored.session.seal
    assert store.check(deep=True).problems == ()


@pytest.mark.parametrize("native", [False, True])
def test_a_branch_from_the_end_reads_no_more_of_it(
    store: SqlStore, core: AgentCore, read: Counter[int], native: bool
) -> None:
    stored = in_store(store, talked(core, 1200) if native else said(1200))
    branch = core.fork_session(stored.session, A, upto_index=1199, new_session_id="b")
    forked = store.fork("s", branch, 1200, base=stored)

    assert min(read) >= 1100
    assert store.load("b").session == forked.session
    assert texts(store.load("b").session) == texts(store.load("s").session)
    assert store.check(deep=True).problems == ()


def test_a_branch_from_the_middle_compares_nothing_behind_it(
    store: SqlStore, core: AgentCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = in_store(store, talked(core, 1200))
    branch = core.fork_session(stored.session, A, upto_index=599, new_session_id="b")
    compared: list[range] = []
    read_marks = lists.read_marks

    def noting(transaction: Any, list_id: int, start: int, end: int) -> Iterator[Any]:
        compared.append(range(start, end))
        return read_marks(transaction, list_id, start, end)

    monkeypatch.setattr(lists, "read_marks", noting)
    forked = store.fork("s", branch, 600, base=stored)

    assert max(map(len, compared)) <= 1
    assert store.load("b").session == forked.session
    assert texts(store.load("b").session) == [str(number) for number in range(600)]
    assert store.check(deep=True).problems == ()


def test_a_branch_of_a_base_that_is_not_stored_any_more_is_compared(store: SqlStore, core: AgentCore) -> None:
    old = in_store(store, said(100))
    store.save(Session("s", said(90).history.append(Message("user", "other"))), old)
    old.session.history.read()
    branch = core.fork_session(old.session, A, upto_index=99, new_session_id="b")

    assert store.fork("s", branch, 100, base=old).session == branch
    assert texts(store.load("b").session) == [str(number) for number in range(100)]


def test_what_is_read_later_is_of_the_revision_that_was_opened(store: SqlStore, core: AgentCore) -> None:
    first = in_store(store, said(1200))
    again = store.load("s")
    stored = again
    for number in range(70):
        session = core.append_messages(stored.session, [Message("user", f"new {number}")])
        stored = store.save(session, stored)

    assert texts(first.session) == [str(number) for number in range(1200)]


def test_a_page_that_was_written_again_since_is_refused(store: SqlStore, core: AgentCore) -> None:
    """The messages get their native form, and thereby notes and links, in their place."""
    early, other = in_store(store, said(1200)), store.load("s")
    store.save(core.rebuild_native_history(other.session, A), other)

    assert early.session.messages[-1].content == "1199"
    with pytest.raises(RevisionConflict, match="load it again"):
        list(early.session.messages)
    assert texts(store.load("s").session) == [str(number) for number in range(1200)]


def test_a_page_of_a_branch_is_not_taken_for_one_that_was_written_again(
    store: SqlStore, core: AgentCore
) -> None:
    """Revisions of different sessions have nothing to do with each other."""
    stored = in_store(store, said(1200))
    for _ in range(5):
        stored = store.save(stored.session.with_metadata({"turn": _}), stored)
    stored = store.save(core.rebuild_native_history(stored.session, A), stored)
    branch = core.fork_session(stored.session, A, upto_index=1199, new_session_id="b")
    store.fork("s", branch, 1200, base=stored)

    assert store.info("b").revision < stored.revision
    assert texts(store.load("b").session) == [str(number) for number in range(1200)]


def test_an_edit_elsewhere_does_not_touch_what_was_opened(store: SqlStore) -> None:
    early, other = in_store(store, said(1200)), store.load("s")
    store.save(Session("s", other.session.history.prefix(100).append(Message("user", "other"))), other)

    assert texts(early.session) == [str(number) for number in range(1200)]


def test_what_was_edited_away_and_collected_cannot_be_read(store: SqlStore) -> None:
    early, other = in_store(store, said(1200)), store.load("s")
    store.save(Session("s", other.session.history.prefix(100).append(Message("user", "other"))), other)
    store.collect()
    store.create(said(1200, "t"))  # its lists are new ones

    with pytest.raises(RevisionConflict, match="load it again"):
        list(early.session.messages)


def test_a_session_that_is_gone_cannot_be_read_on(store: SqlStore) -> None:
    early = in_store(store, said(1200))
    store.delete("s")
    store.collect()
    store.create(Session("t", [Message("user", f"of another: {number}") for number in range(1200)]))

    with pytest.raises(SessionNotFound):
        list(early.session.messages)
    store.create(Session("s", [Message("user", "of the next")]))
    with pytest.raises(RevisionConflict):
        list(early.session.messages)


def test_a_closed_store_says_so_when_a_page_is_read(store: SqlStore) -> None:
    session = in_store(store, said(1200)).session
    store.close()
    assert session.messages[-1].content == "1199"
    with pytest.raises(StoreUnavailable, match="closed"):
        list(session.messages)


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("DELETE FROM entries WHERE seq = 700", "lost messages"),
        ("UPDATE content SET body = '[' WHERE id IN (SELECT content FROM entries WHERE seq = 700)", "cannot"),
    ],
)
def test_damage_shows_when_its_page_is_read(store: SqlStore, sql: str, match: str) -> None:
    store.create(said(1200))
    with store._database.writing() as transaction:
        transaction.run(sql.replace("'['", "X'5B'" if "sqlite" in store.url else "'['::bytea"))

    session = store.load("s").session
    assert session.messages[1199].content == "1199"
    with pytest.raises(StoreDamaged, match=match):
        list(session.messages)
    assert store.check(deep=True).problems != ()


def test_a_link_that_is_lost_shows_when_it_is_needed(store: SqlStore, core: AgentCore) -> None:
    store.create(talked(core, 1200))
    with store._database.writing() as transaction:
        transaction.run("UPDATE entries SET link = NULL WHERE seq = 700")

    session = store.load("s").session
    assert session.seal is not None
    assert any("links" in problem for problem in store.check(deep=True).problems)


# --- in an application -------------------------------------------------------------------------------------


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[], AgentApplication]]:
    apps: list[AgentApplication] = []

    def make_app() -> AgentApplication:
        config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "echo"}}}
        url = f"sqlite:///{tmp_path}/sessions.db"
        apps.append(AgentApplication(config, store=url, plugins=[EchoProvider()], installed=False))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


@pytest.fixture
def app(make: Callable[[], AgentApplication]) -> AgentApplication:
    """An application that comes to a long session for the first time."""
    maker = make()
    session = maker.create_session(session_id="s")
    maker.save_session(Session("s", said(1200).history, session.metadata))
    return make()


def test_opening_appending_branching_renaming_and_listing_read_only_the_end(
    app: AgentApplication, read: Counter[int]
) -> None:
    core = AgentCore()
    session = app.load_session("s")
    app.save_session(core.append_messages(session, [Message("user", "more")]))
    app.fork_session("s", upto_index=-1)
    app.rename_session("s", "Long")
    app.switch_agent("s", "a")
    assert app.read_messages("s", limit=2)[1].content == "more"
    assert app.list_sessions("long").sessions[0].messages == 1201

    assert min(read) >= 1100


def test_a_long_session_is_talked_to_edited_and_branched_like_any_other(app: AgentApplication) -> None:
    before = [str(number) for number in range(1200)]
    assert list(app.chat("s", "hello"))[-1]["type"] == "final"
    assert texts(app.load_session("s"))[:1201] == [*before, "hello"]
    early = app.fork_session("s", upto_index=10)
    edited = app.edit_message("s", 20, "changed")

    assert texts(early) == before[:11]
    assert texts(edited) == [*before[:20], "changed"]
    assert app.store.check(deep=True).problems == ()


def test_a_request_reads_what_it_sends_and_not_the_messages_too(
    app: AgentApplication, make: Callable[[], AgentApplication], monkeypatch: pytest.MonkeyPatch
) -> None:
    list(app.chat("s", "hello"))  # from now on there is a native form
    read: list[bytes] = []
    read_message = records.read_message

    def counting(body: bytes, note: bytes | None) -> Message:
        read.append(body)
        return read_message(body, note)

    monkeypatch.setattr(records, "read_message", counting)

    assert list(make().chat("s", "hello again"))[-1]["text"].endswith("hello again")

    assert 0 < len(read) < 100


@pytest.mark.parametrize("change", ["fork", "edit"])
def test_a_branch_from_the_middle_reads_what_is_around_it(
    make: Callable[[], AgentApplication], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = make()
    session = maker.create_session(session_id="s")
    maker.save_session(Session("s", said(5000).history, session.metadata))
    list(maker.chat("s", "hello"))  # from now on there is a native form
    app = make()
    read: Counter[str] = Counter()
    for name in ("read_message", "read_item"):
        reading = getattr(records, name)
        monkeypatch.setattr(
            records, name, lambda *row, name=name, reading=reading: (read.update([name]), reading(*row))[1]
        )

    branch = (
        app.fork_session("s", upto_index=2000) if change == "fork" else app.edit_message("s", 2000, "changed")
    )

    assert max(read.values()) < 2_200  # two pages of a thousand or so
    assert texts(branch) == [*map(str, range(2000)), "2000" if change == "fork" else "changed"]
    branched = app.load_session(branch.session_id)
    assert branched.metadata["native_provenance"]["in_order"]
    assert len(branched.metadata["native_messages"]) == 2001
    assert list(app.chat(branch.session_id, "and now?"))[-1]["text"].endswith("and now?")
    assert app.store.check(deep=True).problems == ()


def test_what_takes_long_the_first_time_is_said(app: AgentApplication) -> None:
    first, second = list(app.chat("s", "hello")), list(app.chat("s", "hello again"))

    assert first[0]["type"] == "status"
    assert first[0]["text"] == "preparing 1,200 messages for the model, once"
    assert first[-1]["type"] == second[-1]["type"] == "final"
    assert all(event["type"] != "status" for event in second)
