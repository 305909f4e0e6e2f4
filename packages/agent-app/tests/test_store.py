"""What every session store promises, tried on each database."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from agent_app.errors import (
    DecisionNotAccepted,
    InputWithdrawn,
    LeaseLost,
    RevisionConflict,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    StoreDamaged,
    StoreUnavailable,
    WriteRefused,
)
from agent_app.store import lists
from agent_app.store.base import Approval, Changes, Lease, Stored, Waiting
from agent_app.store.leases import this_process
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import AgentCore, AgentError, ArgumentError, Message, Session
from agent_core.frozen import FrozenDict, freeze
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_core import History

T = TypeVar("T")
A, B = {"provider": "a"}, {"provider": "b"}


@pytest.fixture
def core() -> AgentCore:
    """Two providers; each answer says whose it is, and is said once."""
    made = AgentCore()
    for name in "ab":
        made.register_provider(ScriptedProvider(answers(name), name=name))
    return made


def answers(name: str) -> Iterator[str]:
    return (f"{name} answers {number}" for number in count(1))


def said(*texts: str, session_id: str = "s") -> Session:
    """A session of messages that no provider has seen."""
    return Session(session_id, [Message("user", text) for text in texts])


def ask(store: SqlStore, core: AgentCore, stored: Stored, text: str, config: dict[str, Any] = A) -> Stored:
    """Save a question, then its answer, as an application does."""
    stored = store.save(core.append_messages(stored.session, [Message("user", text)]), stored)
    answered, _events = core.send_request(stored.session, config)
    return store.save(answered, stored)


def asked(store: SqlStore, core: AgentCore, *texts: str, session_id: str = "s") -> Stored:
    """A stored session of questions and answers."""
    stored = store.create(core.create_session(session_id))
    for text in texts:
        stored = ask(store, core, stored, text)
    return stored


def fork(store: SqlStore, core: AgentCore, stored: Stored, upto: int, new_id: str) -> Stored:
    """Store a session that has the first *upto* messages of another."""
    forked = core.fork_session(stored.session, A, upto_index=upto - 1, new_session_id=new_id)
    return store.fork(stored.session.session_id, forked, upto)


def is_kept(store: SqlStore, stored: Stored) -> bool:
    """Say whether a session is read back as it was stored, known to be whole if it was so before."""
    loaded = store.load(stored.session.session_id)
    same = loaded.session == stored.session and loaded.revision == stored.revision
    return same and loaded.session.seal == stored.session.seal


def rows(store: SqlStore, sql: str, *values: Any) -> Sequence[Sequence[Any]]:
    with store._database.reading() as transaction:
        return transaction.rows(sql, *values)


def change(store: SqlStore, sql: str, *values: Any) -> None:
    """Do to the database what no one should."""
    with store._database.writing() as transaction:
        assert transaction.run(sql, *values)


def size(store: SqlStore) -> dict[str, int]:
    """How many rows there are."""
    tables = ("content", "lists", "entries", "sessions", "metadata", "events")
    return {table: rows(store, f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def grown(store: SqlStore, before: dict[str, int]) -> dict[str, int]:
    return {table: now - before[table] for table, now in size(store).items() if now != before[table]}


def texts(messages: Sequence[Message] | History[Message]) -> list[Any]:
    return [message.content for message in messages]


def found(store: SqlStore, query: str) -> list[str]:
    return sorted(info.id for info in store.list(query=query).sessions)


def at_once(tasks: Sequence[Callable[[], T]]) -> list[T | AgentError]:
    """Run all tasks in threads that begin together, and return what each returned or refused with."""
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], T]) -> T | AgentError:
        start.wait()
        try:
            return task()
        except AgentError as error:
            return error

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def everyone(stores: Sequence[SqlStore], task: Callable[[int, SqlStore], T]) -> list[T | AgentError]:
    """Let everyone do the same at once; a task is told who does it, and with which store."""
    return at_once([partial(task, number, store) for number, store in enumerate(stores)])


@pytest.fixture
def eight(kind: str, store: SqlStore, open_again: Callable[[], SqlStore]) -> list[SqlStore]:
    """The same store eight times: as eight processes have it, or in memory as eight threads do."""
    return [store] * 8 if kind == "sqlite memory" else [open_again() for _ in range(8)]


# --- making and reading ---------------------------------------------------------------------------------


def test_a_conversation_is_read_back_as_it_was_and_known_to_be_whole(
    store: SqlStore, core: AgentCore
) -> None:
    stored = asked(store, core, "one", "two")

    loaded = store.load("s")

    assert loaded == stored
    assert loaded.session.seal == stored.session.seal is not None
    answered, _events = core.send_request(core.append_messages(loaded.session, [Message("user", "3")]), A)
    assert "native_rebuilt" not in answered.metadata


def test_what_is_kept_is_there_when_the_store_is_opened_again(
    kind: str, store: SqlStore, core: AgentCore, open_again: Callable[[], SqlStore]
) -> None:
    stored = asked(store, core, "one")
    if kind == "sqlite memory":
        assert list(open_again()) == []
    else:
        assert is_kept(open_again(), stored)


def test_all_parts_of_a_message_and_all_metadata_are_kept(store: SqlStore) -> None:
    part = {"type": "image", "url": "https://example.org/a.png"}
    session = Session(
        "s",
        [
            Message("system", "Be kind.", {"pinned": True, "nested": {"a": [1, 2.5, None]}}),
            Message("user", "look", multipart_content=[part]),
            Message("assistant", None, {"tool_calls": [{"id": "1", "arguments": {"b": 1, "a": 2}}]}),
            Message("tool", {"ok": [True]}, tool_result={"type": "tool_result", "text": "ok"}),
        ],
        {"agent": {"id": "x"}, "list": [1, [2]], "nothing": None, "": "an empty key"},
    )
    assert is_kept(store, store.create(session))


def test_keys_are_read_back_in_their_order(store: SqlStore) -> None:
    arguments = {"zebra": 1, "apple": {"y": 1, "x": 2}}
    session = Session("s", [Message("assistant", "", {"tool_calls": [arguments]})], {"m": arguments})
    store.create(session)

    loaded = store.load("s").session

    call = loaded.messages[0].metadata["tool_calls"][0]
    assert (list(call), list(call["apple"])) == (["zebra", "apple"], ["y", "x"])
    assert list(loaded.metadata["m"]) == ["zebra", "apple"]


def test_an_empty_session_is_kept(store: SqlStore) -> None:
    assert is_kept(store, store.create(Session("s")))


def test_numbers_that_a_provider_made_and_json_lacks_keep_no_session_closed(store: SqlStore) -> None:
    from_provider = freeze({"logprobs": [-float("inf"), float("nan"), 0.5]})
    store.create(Session("s", [Message("assistant", "hi", from_provider)], freeze({"score": float("inf")})))

    read = store.load("s").session

    assert read.messages[0].metadata["logprobs"][2] == 0.5
    assert json.loads(json.dumps(read.to_dict(), allow_nan=False))["metadata"] == {"score": None}


def test_info_says_what_a_list_shows(store: SqlStore, clock: Any) -> None:
    stored = store.create(said("one"), agent_id="helper", title="First")
    clock.now += 5
    store.save(Session("s", [*stored.session.messages, Message("user", "two")]), stored)

    info = store.info("s")

    assert (info.id, info.title, info.agent_id, info.messages, info.revision) == (
        "s",
        "First",
        "helper",
        2,
        2,
    )
    assert (info.created, info.updated) == (1_000_000.0, 1_000_005.0)
    assert (info.parent_id, info.match) == (None, None)


def test_an_id_is_used_once(store: SqlStore) -> None:
    stored = store.create(said("mine"))
    before = size(store)

    with pytest.raises(SessionExists, match="'s'"):
        store.create(said("another's"))

    assert is_kept(store, stored)
    assert size(store) == before


def test_of_eight_who_make_the_same_session_one_succeeds(store: SqlStore, eight: list[SqlStore]) -> None:
    outcomes = everyone(eight, lambda number, store: store.create(said(f"by {number}")))

    winners = [outcome for outcome in outcomes if isinstance(outcome, Stored)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, SessionExists) for outcome in outcomes) == 7
    assert is_kept(store, winners[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.load("gone"),
        lambda store: store.info("gone"),
        lambda store: store.messages("gone"),
        lambda store: store.save(Session("gone", [Message("user", "x")]), Stored(Session("gone"), 1)),
        lambda store: store.fork("gone", Session("new"), 0),
        lambda store: store.rename("gone", "x"),
        lambda store: store.assign("gone", "x"),
        lambda store: store.delete("gone"),
        lambda store: store.acquire("gone", "me", seconds=1),
        lambda store: store.holder("gone"),
        lambda store: store.append_events("gone", [{"type": "x"}]),
        lambda store: store.append_events("gone", []),
        lambda store: store.events("gone"),
        lambda store: store.put_input("gone", {}, "queue"),
        lambda store: store.inputs("gone"),
        lambda store: store.drop_input("gone", 1),
        lambda store: store.approvals("gone"),
        lambda store: store.open_intents("gone"),
    ],
)
def test_every_method_says_that_a_session_is_not_there(store: SqlStore, call: Callable[[Any], Any]) -> None:
    with pytest.raises(SessionNotFound, match="'gone'") as caught:
        call(store)

    assert isinstance(caught.value, KeyError)
    assert list(store) == []


def test_the_ids_of_all_sessions_are_listed(store: SqlStore) -> None:
    for session_id in ("b", "a", "C"):
        store.create(Session(session_id))
    assert list(store) == ["C", "a", "b"]


def test_a_closed_store_says_so(store: SqlStore) -> None:
    store.create(said("one"))
    store.close()
    store.close()

    with pytest.raises(StoreUnavailable, match="closed"):
        store.load("s")
    with pytest.raises(StoreUnavailable, match="closed"):
        store.create(said(session_id="t"))


# --- saving -----------------------------------------------------------------------------------------------


def test_saving_writes_only_what_is_new(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, *(f"question {n}" for n in range(20)))
    before = size(store)

    stored = ask(store, core, stored, "one more")

    # Two messages and two items; the integrity and the provenance of the native history change.
    assert grown(store, before) == {"entries": 4, "content": 6}
    assert is_kept(store, stored)


def test_saving_what_is_stored_already_writes_nothing(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "one")
    before = size(store)

    assert store.save(stored.session, stored) is stored
    assert store.save(stored.session, stored, changes=Changes()) is stored
    assert grown(store, before) == {}
    assert is_kept(store, stored)


def test_saving_an_equal_session_that_is_another_object_adds_no_rows(
    store: SqlStore, core: AgentCore
) -> None:
    stored = asked(store, core, "one", "two")
    before = size(store)

    saved = store.save(Session.from_dict(stored.session.to_dict()), stored)

    assert grown(store, before) == {}
    assert is_kept(store, saved)


def test_saves_may_follow_each_other_from_what_was_loaded(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "one")
    for text in ("two", "three"):
        stored = ask(store, core, store.load("s"), text)
        assert is_kept(store, stored)
    assert size(store)["lists"] == 2


def test_the_same_content_is_kept_once(store: SqlStore) -> None:
    store.create(said("ditto", "ditto", "other"))
    store.create(said("ditto", session_id="t"))

    assert size(store)["content"] == 2
    assert size(store)["entries"] == 4
    assert texts(store.load("s").session.messages) == ["ditto", "ditto", "other"]
    assert texts(store.load("t").session.messages) == ["ditto"]


def test_eight_writers_of_the_same_content_keep_it_once(store: SqlStore, eight: list[SqlStore]) -> None:
    """Each brings the same messages in another order; no one waits for ever, and no one is refused."""
    lines = [f"line {n}" for n in range(40)]

    def write(number: int, store: SqlStore) -> Stored:
        turned = lines[number * 5 :] + lines[: number * 5]
        return store.create(said(*turned, session_id=f"s{number}"))

    outcomes = everyone(eight, write)

    assert all(isinstance(outcome, Stored) and is_kept(store, outcome) for outcome in outcomes)
    assert size(store)["content"] == 40
    assert len(found(store, "line 17")) == 8


def test_a_session_may_become_shorter_and_grow_again(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "one", "two", "three")
    for upto in (4, 5, 1, 0):
        shorter = core.fork_session(stored.session, A, upto_index=upto - 1)
        stored = store.save(shorter, stored)
        assert is_kept(store, stored)
        stored = ask(store, core, stored, f"again from {upto}")
        assert is_kept(store, stored)


def test_a_message_may_be_changed_in_the_middle(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "one", "two", "three")

    edited = core.modify_message(stored.session, 2, "two, but better", A)
    saved = store.save(edited, stored)

    assert is_kept(store, saved)
    assert texts(store.messages("s"))[2] == "two, but better"
    assert is_kept(store, ask(store, core, saved, "four"))


def test_many_edits_make_no_long_chain_of_lists(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "one", "two", "three")
    for number in range(10):
        stored = store.save(core.modify_message(stored.session, 4, f"version {number}", A), stored)
        stored = store.save(core.modify_message(stored.session, 2, f"version {number}", A), stored)

    with store._database.reading() as transaction:
        (list_id,) = transaction.rows("SELECT messages FROM sessions WHERE id = 's'")[0]
        parts = lists.stretches(transaction, list_id, 0, 6)

    assert len(parts) == 2
    assert is_kept(store, stored)


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False), (0.0, -0.0), ([1], [True])])
def test_equal_values_of_different_types_are_kept_apart(store: SqlStore, old: Any, new: Any) -> None:
    assert old == new
    stored = store.create(Session("s", [Message("user", {"x": old})], {"x": old}))

    store.save(Session("s", [Message("user", {"x": new})], {"x": new}), stored)

    loaded = store.load("s").session
    assert repr((loaded.messages[0].content["x"], loaded.metadata["x"])) == repr((new, new))


def test_metadata_may_be_added_changed_and_removed(store: SqlStore, kind: str) -> None:
    stored = store.create(Session("s", (), {"stays": [1], "changes": 1, "goes": 1}))
    before = size(store)

    stored = store.save(Session("s", (), {"stays": [1], "changes": 2, "comes": None}), stored)

    assert is_kept(store, stored)
    # Whoever writes to SQLite is alone, and takes away what was there before.
    assert grown(store, before) == ({"content": 2} if kind == "postgres" else {})


def test_a_save_over_the_save_of_another_process_is_refused(
    store: SqlStore, open_again: Any, kind: str
) -> None:
    base = store.create(said("one"))
    other = store if kind == "sqlite memory" else open_again()
    theirs = other.save(said("one", "theirs"), other.load("s"))
    before = size(store)

    with pytest.raises(RevisionConflict) as caught:
        store.save(said("one", "mine"), base, changes=Changes(events=[{"type": "x"}]))

    assert (caught.value.expected, caught.value.found) == (1, 2)
    assert isinstance(caught.value, WriteRefused)
    assert is_kept(store, theirs)
    assert size(store) == before


def test_of_eight_who_save_at_once_one_succeeds(store: SqlStore, eight: list[SqlStore]) -> None:
    base = store.create(said("one"))
    outcomes = everyone(eight, lambda number, store: store.save(said("one", f"by {number}"), base))

    winners = [outcome for outcome in outcomes if isinstance(outcome, Stored)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, RevisionConflict) for outcome in outcomes) == 7
    assert is_kept(store, winners[0])


def test_eight_who_try_until_they_succeed_lose_nothing(store: SqlStore, eight: list[SqlStore]) -> None:
    store.create(Session("s"))

    def add(number: int, store: SqlStore) -> int:
        tries = 0
        while True:
            tries += 1
            base = store.load("s")
            longer = Session("s", base.session.history.append(Message("user", f"by {number}")))
            try:
                store.save(longer, base)
            except RevisionConflict:
                continue
            return tries

    outcomes = everyone(eight, add)

    assert all(isinstance(outcome, int) for outcome in outcomes)
    assert sorted(texts(store.load("s").session.messages)) == [f"by {n}" for n in range(8)]
    assert store.info("s").revision == 9


def test_a_later_session_of_the_same_id_is_not_taken_for_the_first(store: SqlStore) -> None:
    first = store.create(said("one", "two"))
    first = store.save(said("one", "two", "three"), first)
    lease = store.acquire("s", "first", seconds=60)
    store.delete("s", lease=lease)
    second = store.create(said("quite", "different"))
    second = store.save(said("quite", "different", "indeed"), second)  # as often changed as the first
    store.acquire("s", "second", seconds=60)

    with pytest.raises(LeaseLost):
        store.save(said("one", "two", "three", "four"), first, lease=lease)
    store.release(lease)
    taken = store.acquire("s", "second", seconds=60)
    with pytest.raises(RevisionConflict):
        store.save(said("one", "two", "three", "four"), first, lease=taken)
    assert is_kept(store, second)


def test_revisions_do_not_run_away_when_sessions_come_and_go(store: SqlStore) -> None:
    for _ in range(10):
        store.create(said("one"))
        store.delete("s")
    assert store.create(said("one")).revision == 11


def test_what_is_known_of_a_session_is_current_until_it_changes(
    store: SqlStore, eight: list[SqlStore], kind: str
) -> None:
    """A server must be waited for; nothing can be said about its sessions in the meantime."""
    quick = kind != "postgres"
    first = store.create(said("one"))
    assert store.is_current(first) is quick
    second = eight[0].save(said("one", "two"), first)

    assert store.is_current(first) is False
    assert store.is_current(second) is quick
    eight[0].delete("s")
    assert store.is_current(second) is False
    again = store.create(said("one", "two"))
    assert (store.is_current(second), store.is_current(again)) == (False, quick)
    store.close()
    assert store.is_current(again) is False


def test_asking_whether_a_session_is_current_never_waits(store: SqlStore) -> None:
    stored, writes, done = store.create(said("one")), threading.Event(), threading.Event()

    def write() -> None:
        with store.writing():
            writes.set()
            done.wait(60)

    writer = threading.Thread(target=write)
    writer.start()
    assert writes.wait(60)
    assert store.is_current(stored) is False
    done.set()
    writer.join()


def test_a_session_is_not_saved_over_another(store: SqlStore) -> None:
    base = store.create(said("one"))
    other = store.create(said("two", session_id="t"))

    with pytest.raises(ArgumentError, match=r"'t'.*'s'"):
        store.save(other.session, base)


def test_a_save_is_everything_or_nothing(store: SqlStore) -> None:
    base = store.create(said("one"))
    waiting = store.put_input("s", {"role": "user", "content": "two"}, "queue")
    before = size(store)
    changes = Changes(
        events=[{"type": "good"}],
        take_inputs=[waiting.seq],
        intents={"call": {"bad": object()}},
    )

    with pytest.raises(ArgumentError, match="only plain data can be stored"):
        store.save(said("one", "two"), base, changes=changes)

    assert is_kept(store, base)
    assert size(store) == before
    assert [left.seq for left in store.inputs("s")] == [waiting.seq]


@pytest.mark.parametrize("durability", ["turn", "soon"])
def test_a_save_of_any_durability_is_there_at_once_for_everybody(
    store: SqlStore, eight: list[SqlStore], durability: Any
) -> None:
    stored = store.save(said("one"), store.create(said()), durability=durability)
    assert is_kept(eight[0], stored)


# --- native history ---------------------------------------------------------------------------------------


def test_a_message_that_waits_for_its_native_form_is_completed_in_place(
    store: SqlStore, core: AgentCore
) -> None:
    stored = asked(store, core)
    stored = store.save(core.append_messages(stored.session, [Message("user", "one")]), stored)
    assert is_kept(store, stored)
    before = size(store)

    answered, _events = core.send_request(stored.session, A)
    stored = store.save(answered, stored)

    assert is_kept(store, stored)
    assert {table: n for table, n in grown(store, before).items() if table in ("entries", "lists")} == {
        "entries": 3  # the answer, and two items
    }


def test_the_other_form_of_a_session_that_changes_its_provider_is_kept(
    store: SqlStore, core: AgentCore
) -> None:
    stored = asked(store, core, "one", "two")
    for number, config in enumerate([B, A, A, B, A]):
        stored = ask(store, core, stored, f"then {number}", config)
        assert is_kept(store, stored)
        assert stored.session.seal is not None

    loaded = store.load("s").session
    assert set(loaded.metadata["native_archive"]) >= {"b"}
    question = [Message("user", "b?")]
    here, _events = core.send_request(core.append_messages(stored.session, question), B)
    there, _events = core.send_request(core.append_messages(loaded, question), B)
    assert there.metadata["native_rebuilt"] == here.metadata["native_rebuilt"]
    assert len(there.metadata["native_messages"]) == len(here.metadata["native_messages"])


def test_links_that_change_under_a_message_that_stays_are_written(store: SqlStore, core: AgentCore) -> None:
    """A message without native form has no indices, and its link still changes with those before it."""
    stored = asked(store, core, "one")
    stored = store.save(core.modify_message(stored.session, 0, "uno", A), stored)
    stored = ask(store, core, stored, "two")
    saved = store.save(core.modify_message(stored.session, 0, "eins", A), stored)

    assert is_kept(store, saved)
    assert store.check(deep=True).problems == ()


@pytest.mark.parametrize("native", [None, "junk", {"a": 1}, [], [{"role": "user"}], [1, "two"], 0])
def test_any_native_history_is_kept_as_it_was_given(store: SqlStore, native: Any) -> None:
    session = Session.from_dict(
        {"session_id": "s", "messages": [], "metadata": {"native_messages": native, "other": 1}}
    )
    stored = store.create(session)
    assert is_kept(store, stored)

    stored = store.save(stored.session.with_metadata({"other": 2}), stored)
    assert is_kept(store, stored)
    assert store.check(deep=True).problems == ()

    stored = store.save(Session("s"), stored)
    assert is_kept(store, stored)


def test_a_session_from_elsewhere_is_known_to_be_whole_when_it_is_read_back(
    store: SqlStore, core: AgentCore
) -> None:
    made = asked(store, core, "one", "two").session
    moved = Session.from_dict({**made.to_dict(), "session_id": "moved"})
    assert moved.seal is None

    store.create(moved)

    assert store.load("moved").session.seal == made.seal


def test_a_session_whose_integrity_does_not_hold_is_kept_and_no_damage_of_ours(
    store: SqlStore, core: AgentCore
) -> None:
    data = asked(store, core, "one").session.to_dict()
    data["session_id"] = "forged"
    data["messages"][0]["content"] = "something else"
    stored = store.create(Session.from_dict(data))

    assert is_kept(store, stored)
    assert store.load("forged").session.seal is None
    assert store.check(deep=True).problems == ()
    assert is_kept(store, ask(store, core, stored, "go on"))


# --- forks ------------------------------------------------------------------------------------------------


def test_a_fork_shares_rows_with_its_source(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "one", "two", "three")
    before = size(store)

    forked = fork(store, core, source, 4, "f")

    growth = grown(store, before)
    assert "entries" not in growth
    assert (growth["lists"], growth["sessions"]) == (2, 1)
    assert is_kept(store, forked)
    assert is_kept(store, source)


def test_a_fork_has_its_sources_title_and_says_that_it_is_one(store: SqlStore) -> None:
    store.create(said("one"), title="Plans", agent_id="helper")
    store.fork("s", said("one", session_id="f"), 1, agent_id="other")
    store.fork("f", said("one", session_id="g"), 1, agent_id="other")

    info = store.info("f")

    assert (info.title, info.parent_id, info.agent_id, info.messages) == ("Plans (fork)", "s", "other", 1)
    assert store.info("g").title == "Plans (fork 2)"


def test_forks_go_their_own_ways(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "one", "two")
    left, right = fork(store, core, source, 2, "left"), fork(store, core, source, 4, "right")
    below = fork(store, core, right, 3, "below")

    kept = [
        ask(store, core, source, "in the source"),
        ask(store, core, left, "left"),
        ask(store, core, right, "right"),
        store.save(core.modify_message(below.session, 0, "changed below", A), below),
    ]

    assert all(is_kept(store, stored) for stored in kept)
    assert store.check(deep=True).problems == ()


def test_a_fork_of_a_question_is_answered_apart_from_its_source(store: SqlStore, core: AgentCore) -> None:
    """The question gets its native form twice, at the same place, and each session has its own."""
    source = asked(store, core, "one")
    source = store.save(core.append_messages(source.session, [Message("user", "two")]), source)
    forked = fork(store, core, source, 3, "f")

    answered, _events = core.send_request(forked.session, B)
    forked = store.save(answered, forked)
    answered, _events = core.send_request(source.session, A)
    source = store.save(answered, source)

    assert is_kept(store, source) and is_kept(store, forked)
    assert store.check(deep=True).problems == ()
    assert source.session.messages[-1].content != forked.session.messages[-1].content


def test_an_edit_in_the_middle_of_the_source_leaves_its_fork_as_it_was(
    store: SqlStore, core: AgentCore
) -> None:
    source = asked(store, core, "one", "two", "three")
    forked = fork(store, core, source, 5, "f")

    edited = store.save(core.modify_message(source.session, 2, "changed", A), source)
    edited = ask(store, core, edited, "and on")

    assert is_kept(store, forked)
    assert is_kept(store, edited)


def test_a_fork_outlives_its_source(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "one", "two")
    forked = fork(store, core, source, 3, "f")

    store.delete("s")
    store.collect()

    assert is_kept(store, forked)
    assert store.info("f").parent_id == "s"
    assert is_kept(store, ask(store, core, forked, "three"))
    assert store.check(deep=True).problems == ()


def test_a_fork_shares_no_more_than_is_the_same(store: SqlStore) -> None:
    store.create(said("one", "two", "three"))

    other = store.fork("s", said("one", "TWO", "three", session_id="f"), 3)

    assert is_kept(store, other)
    assert size(store)["entries"] == 3 + 2


def test_a_fork_shares_no_more_than_was_asked_for(store: SqlStore) -> None:
    store.create(said("one", "two", "three"))
    assert is_kept(store, store.fork("s", said("one", "two", "three", session_id="f"), 1))
    assert is_kept(store, store.fork("s", said("one", session_id="g"), 99))
    assert size(store)["entries"] == 3 + 2 + 0


def test_a_fork_that_has_no_native_history_has_none(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "one")
    bare = Session("f", [message.with_native_indices(None) for message in source.session.messages])
    assert is_kept(store, store.fork("s", bare, 2))
    assert is_kept(store, source)


def test_a_fork_needs_an_id_of_its_own(store: SqlStore) -> None:
    stored = store.create(said("one"))
    with pytest.raises(SessionExists):
        store.fork("s", said("one"), 1)
    with pytest.raises(ArgumentError, match="upto"):
        store.fork("s", said("one", session_id="f"), -1)
    assert is_kept(store, stored)


def test_forking_while_the_source_is_answered_mixes_nothing_up(
    store: SqlStore, core: AgentCore, eight: list[SqlStore]
) -> None:
    for number in range(5):
        source = asked(store, core, "one", session_id=f"s{number}")
        source = store.save(core.append_messages(source.session, [Message("user", "two")]), source)
        answered, _events = core.send_request(source.session, A)
        forked = source.session.with_id(f"f{number}")

        outcomes = at_once(
            [partial(eight[0].save, answered, source), partial(eight[1].fork, f"s{number}", forked, 3)]
        )

        assert all(isinstance(outcome, Stored) and is_kept(store, outcome) for outcome in outcomes)


# --- pages of messages -----------------------------------------------------------------------------------


def test_messages_come_in_pages_from_the_end(store: SqlStore) -> None:
    store.create(said(*map(str, range(10))))

    assert texts(store.messages("s", limit=3)) == ["7", "8", "9"]
    assert texts(store.messages("s", before=7, limit=3)) == ["4", "5", "6"]
    assert texts(store.messages("s", before=1, limit=3)) == ["0"]
    assert texts(store.messages("s", before=0)) == []
    assert texts(store.messages("s", before=-5)) == []
    assert texts(store.messages("s", before=10**30, limit=1)) == ["9"]
    assert texts(store.messages("s")) == list(map(str, range(10)))


def test_a_page_across_the_place_where_a_fork_parts_is_whole(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "one", "two", "three")
    forked = ask(store, core, fork(store, core, source, 4, "f"), "four")

    everything = list(forked.session.messages)
    for before in range(7):
        assert list(store.messages("f", before=before, limit=3)) == everything[max(0, before - 3) : before]


@pytest.mark.parametrize("limit", [0, -1, 2**70, None, "ten"])
def test_a_limit_that_makes_no_sense_is_refused(store: SqlStore, limit: Any) -> None:
    store.create(said("one"))
    for call in (store.list, partial(store.messages, "s"), partial(store.events, "s")):
        with pytest.raises(ArgumentError, match="limit"):
            call(limit=limit)


# --- lists and searching ---------------------------------------------------------------------------------


def test_sessions_are_listed_the_last_changed_first(store: SqlStore, clock: Any) -> None:
    kept = {}
    for session_id in "abc":
        clock.now += 1
        kept[session_id] = store.create(said(session_id, session_id=session_id))
    clock.now += 1
    store.save(said("a", "more", session_id="a"), kept["a"])
    clock.now += 1
    store.rename("b", "new title")

    page = store.list()

    assert [info.id for info in page.sessions] == ["b", "a", "c"]
    assert page.sessions == tuple(store.info(session_id) for session_id in "bac")
    assert page.cursor is None


def test_pages_have_every_session_once_also_of_one_moment(store: SqlStore, clock: Any) -> None:
    ids = [f"{word} {n}" for n in range(5) for word in ("a", "Z", "ä", "|")]
    for number, session_id in enumerate(ids):
        clock.now = 1_000_000.0 + (number // 7) * 0.1
        store.create(said(session_id=session_id))

    for limit in (1, 3, 7, 19, 20, 21):
        seen, cursor = list[str](), None
        while True:
            page = store.list(cursor=cursor, limit=limit)
            seen += [info.id for info in page.sessions]
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(seen) == sorted(ids)
        assert seen == [info.id for info in store.list().sessions]


def test_what_changes_between_two_pages_hides_nothing_else(store: SqlStore, clock: Any) -> None:
    for number in range(6):
        clock.now += 1
        store.create(said(session_id=f"s{number}"))
    first = store.list(limit=2)

    clock.now += 1
    store.rename("s0", "changed")
    store.delete("s4")

    second = store.list(cursor=first.cursor, limit=10)
    assert [info.id for info in second.sessions] == ["s3", "s2", "s1"]


@pytest.mark.parametrize("cursor", ["", "junk", "1.5", "|s", "x|s", "1.0|", "1.0|a\0b", "1|\ud800"])
def test_a_cursor_that_is_none_is_refused(store: SqlStore, cursor: str) -> None:
    store.create(said("one"))
    with pytest.raises(ArgumentError, match="cursor"):
        store.list(cursor=cursor)


@pytest.mark.parametrize("cursor", ["nan|s", "inf|s", "-inf|s", "1e400|x'; DROP TABLE sessions; --"])
def test_a_made_up_cursor_does_no_harm(store: SqlStore, cursor: str) -> None:
    store.create(said("one"))
    store.list(cursor=cursor)
    assert list(store) == ["s"]


def test_sessions_are_found_by_the_words_in_them(store: SqlStore) -> None:
    store.create(said("The quick brown fox", "jumps over the lazy dog", session_id="animals"))
    store.create(said("brown bread with butter", session_id="food"))

    assert found(store, "brown") == ["animals", "food"]
    assert found(store, "BROWN fox") == ["animals"]
    assert found(store, "fox quick") == ["animals"]
    assert found(store, "bread fox") == []
    assert found(store, "nothing") == []
    assert found(store, "   ") == ["animals", "food"]
    assert store.list(query="lazy").sessions[0].match == "jumps over the lazy dog"


def test_the_last_word_of_a_query_may_be_unfinished(store: SqlStore) -> None:
    store.create(said("elephants never forget"))

    assert found(store, "eleph") == ["s"]
    assert found(store, "never forg") == ["s"]
    assert found(store, "nev forget") == []
    assert found(store, "phants") == []


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("Grüße aus Köln", ["köln", "KÖLN", "Koln", "grüße", "grü", "Ko\N{COMBINING DIAERESIS}ln"]),
        ("Ko\N{COMBINING DIAERESIS}ln am Rhein", ["köln", "koln"]),
        ("naïve café", ["naive", "CAFÉ"]),
        ("Привет, мир!", ["привет", "МИР"]),
        ("日本語 テキスト", ["日本語", "テキ"]),
        ('he said "no way"', ['"no way"', "way", 'said "no']),
        ("it's 100% sure", ["100%", "100", "it's"]),
        ("snake_case and kebab-case", ["snake_case", "kebab-case", "kebab", "case"]),
        ("C:\\Users\\me", ["Users", "c:\\users"]),
        ("a\0b then more", ["more", "then"]),
        ("half \ud83d pair", ["pair", "half"]),
        ("SELECT * FROM users; DROP TABLE sessions; --", ["drop table", "users; --"]),
    ],
)
def test_words_of_any_kind_are_found(store: SqlStore, text: str, queries: list[str]) -> None:
    store.create(said(text))
    store.create(said("something else", session_id="t"))
    assert [found(store, query) for query in queries] == [["s"]] * len(queries)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "''",
        "%",
        "_",
        "\\",
        "*",
        "NEAR(a b)",
        "a AND",
        "NOT",
        "(",
        "a:b",
        "🎉",
        "\0",
        "\ud800",
        "x" * 1000,
    ]
    + ["a\0b", ":*", "&", "a & | !", "' OR 1=1 --", "a " * 500, "_ _ _", "²"],
)
def test_no_query_does_harm(store: SqlStore, query: str) -> None:
    store.create(said("gulf stream"), title="gulf")
    assert found(store, query) == []
    assert found(store, "gulf") == ["s"]


def test_a_query_that_is_too_long_is_refused(store: SqlStore) -> None:
    with pytest.raises(ArgumentError, match="1000 characters"):
        store.list(query="x" * 1001)


def test_sessions_are_found_by_their_titles(store: SqlStore) -> None:
    store.create(said(session_id="a"), title="Über den Wolken: 100% blau")
    store.create(said(session_id="b"), title="Budget_2024 report")
    store.create(said(session_id="c"), title="BudgetX2024")
    store.create(said(session_id="d"), title="50 percent", agent_id="x")

    assert found(store, "über") == ["a"]
    assert found(store, "UBER") == ["a"]
    assert found(store, "%") == ["a"]
    assert found(store, "report budget") == ["b"]
    assert found(store, "_") == ["b"]
    assert found(store, "olken") == ["a"]
    assert store.list(query="wolken").sessions[0].match is None
    store.rename("a", "Renamed")
    assert (found(store, "über"), found(store, "renamed")) == ([], ["a"])


def test_forks_are_found_by_what_they_share_and_only_by_that(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "alpha", "beta", session_id="source")
    fork(store, core, fork(store, core, source, 4, "long"), 2, "short")

    assert found(store, "alpha") == ["long", "short", "source"]
    assert found(store, "beta") == ["long", "source"]


def test_words_that_were_edited_away_are_not_found(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "secret plan", "go on")
    fork(store, core, source, 2, "f")

    store.save(core.modify_message(source.session, 0, "nothing to see", A), source)

    assert found(store, "secret") == ["f"]
    assert found(store, "see") == ["s"]


def test_sessions_that_were_deleted_are_not_found(store: SqlStore) -> None:
    store.create(said("same words"), title="same title")
    store.create(said("same words", session_id="t"), title="same title")

    store.delete("s")

    assert (found(store, "words"), found(store, "title")) == (["t"], ["t"])
    store.collect()
    assert found(store, "words") == ["t"]


def test_only_what_was_said_is_searched(store: SqlStore) -> None:
    parts = [
        {"type": "text", "text": "a sunset"},
        {"type": "image", "data": "aGVsbG8", "mime_type": "image/png"},
    ]
    store.create(Session("s", [Message("user", "", multipart_content=parts)]))
    store.create(Session("t", [Message("tool", {"type": "result", "output": ["blue", {"sky": "cloudy"}]})]))

    assert [found(store, word) for word in ("sunset", "cloudy")] == [["s"], ["t"]]
    assert [found(store, word) for word in ("image", "text", "aGVsbG8", "result")] == [[]] * 4


def test_a_message_is_found_although_its_native_form_looks_the_same(store: SqlStore) -> None:
    """An item may be byte for byte a message, and may come first; only the message is searched."""
    item = Message("user", "twin words").to_dict()
    store.create(Session("item", (), {"native_messages": [item], "copy": item}))
    assert found(store, "twin") == []

    store.create(said("twin words", session_id="message"))
    assert found(store, "twin") == ["message"]
    assert size(store)["content"] == 3  # with two of metadata

    store.delete("message")
    store.collect()
    assert found(store, "twin") == []
    store.delete("item")
    store.collect()
    store.create(said("twin words", session_id="again"))
    assert found(store, "twin") == ["again"]
    assert store.check(deep=True).problems == ()


def test_search_results_come_in_pages_too(store: SqlStore, clock: Any) -> None:
    for number in range(10):
        clock.now += 1
        store.create(said(f"common word {number}", session_id=f"s{number}"))

    first = store.list(query="common", limit=4)
    second = store.list(query="common", limit=4, cursor=first.cursor)
    third = store.list(query="common", limit=4, cursor=second.cursor)

    pages = [[info.id for info in page.sessions] for page in (first, second, third)]
    assert pages == [["s9", "s8", "s7", "s6"], ["s5", "s4", "s3", "s2"], ["s1", "s0"]]
    assert third.cursor is None


# --- titles, agents, deleting ---------------------------------------------------------------------------


def test_a_session_is_renamed_and_assigned_without_becoming_another(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "one")

    assert store.rename("s", "A title").title == "A title"
    assert store.assign("s", "helper").agent_id == "helper"
    assert store.assign("s", None).agent_id is None

    assert is_kept(store, stored)
    assert is_kept(store, ask(store, core, stored, "two"))


def test_a_save_brings_a_title_unless_a_person_gave_one(store: SqlStore) -> None:
    stored = store.create(said("one"))
    stored = store.save(stored.session, stored, changes=Changes(title=("Über alles", "")))
    assert (store.info("s").title, found(store, "über")) == ("Über alles", ["s"])
    stored = store.save(stored.session, stored, changes=Changes(title=("Better", "Über alles")))
    assert (store.info("s").title, found(store, "über")) == ("Better", [])

    store.rename("s", "Mine")
    stored = store.save(stored.session, stored, changes=Changes(title=("Best", "Better")))

    assert (store.info("s").title, found(store, "mine"), found(store, "best")) == ("Mine", ["s"], [])
    store.save(stored.session, stored, changes=Changes(title=("half \ud800 a\0 title", "Mine")))
    assert store.info("s").title == "half  a title"


def test_deleting_removes_a_session_and_all_that_belongs_to_it(store: SqlStore) -> None:
    stored = store.create(said("one"))
    changes = Changes(
        events=[{"type": "x"}],
        approvals=[Approval(id="a", session_id="s", suspension={}, created=1.0)],
        intents={"call": {}},
    )
    store.save(said("one", "two"), stored, changes=changes)
    store.put_input("s", {}, "queue")
    store.release(store.acquire("s", "me", seconds=5))

    store.delete("s")

    for table in ("sessions", "metadata", "events", "inputs", "approvals", "intents", "leases"):
        assert rows(store, f"SELECT count(*) FROM {table}")[0][0] == 0
    assert store.approvals() == []
    store.create(said("anew"))
    assert (store.events("s"), store.inputs("s"), store.open_intents("s")) == ([], [], {})


def test_deleting_while_others_save_leaves_no_half(store: SqlStore, eight: list[SqlStore]) -> None:
    for _ in range(5):
        base = store.create(said("one"))
        tasks: list[Callable[[], Any]] = [
            partial(eight[0].save, said("one", "two"), base),
            partial(eight[1].delete, "s"),
            partial(eight[2].append_events, "s", [{"type": "x"}]),
            partial(eight[3].put_input, "s", {}, "queue"),
        ]
        outcomes = at_once(tasks)
        assert outcomes[1] is None
        others = [outcome for outcome in outcomes if isinstance(outcome, AgentError)]
        assert all(isinstance(outcome, SessionNotFound) for outcome in others)
        assert list(store) == []
        assert rows(store, "SELECT count(*) FROM events")[0][0] == 0


# --- who may write ----------------------------------------------------------------------------------------


def test_a_second_opener_learns_who_has_the_session(store: SqlStore, open_again: Any, kind: str) -> None:
    base = store.create(said("one"))
    other = store if kind == "sqlite memory" else open_again()
    lease = store.acquire("s", "terminal 1", seconds=60)

    with pytest.raises(SessionHeld, match="terminal 1") as caught:
        other.acquire("s", "terminal 2", seconds=60)
    assert caught.value.holder == lease == other.holder("s")
    with pytest.raises(SessionHeld, match="terminal 1"):
        other.save(said("one", "two"), base)
    with pytest.raises(SessionHeld, match="terminal 1"):
        other.delete("s")
    assert is_kept(store, base)
    assert is_kept(store, store.save(said("one", "mine"), base, lease=lease))


def test_of_eight_who_want_a_session_one_gets_it(store: SqlStore, eight: list[SqlStore]) -> None:
    store.create(said("one"))

    outcomes = everyone(eight, lambda number, store: store.acquire("s", f"owner {number}", seconds=60))

    winners = [outcome for outcome in outcomes if isinstance(outcome, Lease)]
    assert [store.holder("s")] == winners
    refused = [outcome for outcome in outcomes if isinstance(outcome, SessionHeld)]
    assert [error.holder for error in refused] == winners * 7


def test_eight_who_take_over_from_each_other_all_get_another_number(
    store: SqlStore, eight: list[SqlStore]
) -> None:
    store.create(said("one"))

    outcomes = everyone(
        eight, lambda number, store: store.acquire("s", f"owner {number}", seconds=60, take_over=True)
    )

    tokens = [outcome.token for outcome in outcomes if isinstance(outcome, Lease)]
    assert sorted(tokens) == list(range(1, 9))


def test_a_lease_ends_by_the_stores_clock(store: SqlStore, clock: Any) -> None:
    base = store.create(said("one"))
    lease = store.acquire("s", "slow", seconds=10)
    assert lease.expires == clock.now + 10

    clock.now += 9.9
    with pytest.raises(SessionHeld):
        store.acquire("s", "other", seconds=10)
    clock.now += 0.1
    assert store.holder("s") is None
    taken = store.acquire("s", "other", seconds=10)

    assert taken.token > lease.token
    with pytest.raises(LeaseLost, match="slow"):
        store.save(said("one", "two"), base, lease=lease)


def test_a_lease_that_ended_is_good_until_another_process_takes_it(store: SqlStore, clock: Any) -> None:
    base = store.create(said("one"))
    lease = store.acquire("s", "slow", seconds=10)
    clock.now += 100

    assert is_kept(store, store.save(said("one", "two"), base, lease=lease))
    assert store.renew(lease, seconds=10).expires == clock.now + 10


def test_renewing_keeps_a_lease(store: SqlStore, clock: Any) -> None:
    store.create(said("one"))
    lease = store.acquire("s", "me", seconds=10)
    clock.now += 8
    renewed = store.renew(lease, seconds=10)
    clock.now += 8

    with pytest.raises(SessionHeld):
        store.acquire("s", "other", seconds=10)
    assert store.holder("s") == renewed
    assert renewed.token == lease.token


def test_taking_over_fences_the_old_owner_off(store: SqlStore, core: AgentCore) -> None:
    base = asked(store, core, "one")
    old = store.acquire("s", "old", seconds=60)
    new = store.acquire("s", "new", seconds=60, take_over=True)
    before = size(store)

    for write in (
        lambda: store.save(core.append_messages(base.session, [Message("user", "x")]), base, lease=old),
        lambda: store.renew(old, seconds=60),
        lambda: store.delete("s", lease=old),
    ):
        with pytest.raises(LeaseLost, match="old"):
            write()
    store.release(old)

    assert store.holder("s") == new
    assert size(store) == before
    saved = store.save(core.append_messages(base.session, [Message("user", "x")]), base, lease=new)
    assert is_kept(store, saved)


def test_a_lease_that_was_given_back_is_free_and_cannot_be_used(store: SqlStore) -> None:
    base = store.create(said("one"))
    lease = store.acquire("s", "me", seconds=60)

    store.release(lease)
    store.release(lease)

    assert store.holder("s") is None
    with pytest.raises(LeaseLost):
        store.save(said("one", "late"), base, lease=lease)
    with pytest.raises(LeaseLost):
        store.renew(lease, seconds=60)
    base = store.save(said("one", "without"), base)
    again = store.acquire("s", "me", seconds=60)
    assert is_kept(store, store.save(said("one", "with"), base, lease=again))


def test_the_same_owner_may_ask_again(store: SqlStore) -> None:
    store.create(said("one"))
    first = store.acquire("s", "me", seconds=60)
    second = store.acquire("s", "me", seconds=60)
    assert second.token > first.token


def test_a_lease_of_a_process_that_has_ended_is_free_also_if_a_former_version_took_it(
    store: SqlStore,
) -> None:
    base = store.create(said("one"))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    store.acquire("s", "agent", seconds=60)
    with store.writing() as transaction:  # former versions wrote no proof
        owner = f"agent, process {ended.pid} on {socket.gethostname()}"
        transaction.run("UPDATE leases SET owner = ?", owner)

    assert store.holder("s") is None
    assert is_kept(store, store.save(said("one", "two"), base))
    assert store.acquire("s", "other", seconds=60).owner == "other"


@pytest.mark.parametrize(
    "owner",
    [this_process(), "agent, process 1 on another-machine", f"process {10**25} on {socket.gethostname()}"],
    ids=["this process", "of another machine", "of no process"],
)
def test_a_lease_of_anybody_else_is_not_taken_for_dead(store: SqlStore, owner: str) -> None:
    store.create(said("one"))
    lease = store.acquire("s", owner, seconds=60)
    assert store.holder("s") == lease
    with pytest.raises(SessionHeld):
        store.acquire("s", "other", seconds=60)


def test_leases_of_sessions_that_are_gone_are_lost(store: SqlStore) -> None:
    store.create(said("one"))
    lease = store.acquire("s", "me", seconds=60)
    store.delete("s", lease=lease)

    store.release(lease)
    with pytest.raises(LeaseLost):
        store.renew(lease, seconds=60)
    with pytest.raises(SessionNotFound):
        store.save(said("one", "two"), Stored(said("one"), 1), lease=lease)


def test_the_lease_of_another_session_gives_no_right(store: SqlStore) -> None:
    stored = store.create(said("one"))
    store.create(said("one", session_id="t"))
    own, other = store.acquire("s", "me", seconds=60), store.acquire("t", "me", seconds=60)
    assert own.token == other.token

    with pytest.raises(LeaseLost):
        store.save(said("one", "two"), stored, lease=other)
    assert store.save(said("one", "two"), stored, lease=own).revision == stored.revision + 1


def test_a_session_is_saved_over_what_another_store_has_of_it(store: SqlStore) -> None:
    """What is written goes where this store keeps the session, wherever the other one does."""
    with closing(SqlStore(SQLiteDatabase("sqlite://"))) as another:
        store.create(said("the first here", session_id="first"))
        there, here = another.create(said("one")), store.create(said("one"))
        assert (there.revision, there.place == here.place) == (here.revision, False)

        saved = store.save(said("one", "two"), there)

    assert is_kept(store, saved)
    assert texts(store.load("first").session.messages) == ["the first here"]
    assert store.check(deep=True).problems == ()


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_lease_lasts_for_some_time(store: SqlStore, seconds: float) -> None:
    store.create(said("one"))
    with pytest.raises(ArgumentError, match="seconds"):
        store.acquire("s", "me", seconds=seconds)
    lease = store.acquire("s", "me", seconds=1)
    with pytest.raises(ArgumentError, match="seconds"):
        store.renew(lease, seconds=seconds)


def test_an_owner_must_have_a_name(store: SqlStore) -> None:
    store.create(said("one"))
    with pytest.raises(ArgumentError, match="owner"):
        store.acquire("s", "", seconds=1)


# --- events, inputs, approvals, intents --------------------------------------------------------------


def test_events_are_numbered_without_gaps_and_read_from_any_number_on(store: SqlStore) -> None:
    stored = store.create(said("one"))
    assert list(store.append_events("s", [{"type": "a"}, {"type": "b", "data": {"x": [1]}}])) == [1, 2]
    assert list(store.append_events("s", [])) == []
    store.save(said("one", "two"), stored, changes=Changes(events=[{"type": "c", "seq": 99}]))
    assert list(store.append_events("s", [{"type": "d"}], durability="turn")) == [4]

    assert store.events("s") == [
        {"type": "a", "seq": 1},
        {"type": "b", "data": {"x": [1]}, "seq": 2},
        {"type": "c", "seq": 3},
        {"type": "d", "seq": 4},
    ]
    assert [event["seq"] for event in store.events("s", after=1, limit=2)] == [2, 3]
    assert store.events("s", after=4) == []


def test_the_end_of_a_log_is_read_without_its_beginning(store: SqlStore) -> None:
    store.create(said("one"))
    store.append_events("s", [{"type": "n", "value": value} for value in range(1, 51)])

    last = store.last_events("s", limit=3)

    assert [one["seq"] for one in last] == [50, 49, 48]
    assert [one["seq"] for one in store.last_events("s", before=48, limit=2)] == [47, 46]
    assert store.last_events("s", before=1) == []
    with pytest.raises(SessionNotFound):
        store.last_events("nowhere")


def test_what_models_used_is_found_by_an_index(store: SqlStore) -> None:
    store.create(said("one"))
    store.create(said("two", session_id="other"))
    for number in range(30):
        events: list[dict[str, Any]] = [
            {"type": "text", "text": "usage"},
            {"usage": {"input_tokens": number}, "type": "usage"},
        ]
        store.append_events("s", events)
        store.append_events("other", events)

    assert [one["usage"]["input_tokens"] for one in store.usage_events("s")] == list(range(30))
    if store.url.startswith("sqlite"):
        sql = f"SELECT seq, body FROM {store._database.usage_events} AND session = ? ORDER BY seq"
        assert "INDEX events_of_usage (session=?)" in str(rows(store, f"EXPLAIN QUERY PLAN {sql}", "s"))


def test_sessions_are_found_by_the_beginning_of_their_id_or_by_their_title(store: SqlStore) -> None:
    for name, title in (("abc-1", ""), ("abc-2", "Talk"), ("abd", "abc"), ("b%_", "Talk")):
        store.create(said("hello", session_id=name), title=title)

    assert [info.id for info in store.find("abc")] == ["abc-1", "abc-2", "abd"]
    assert [info.id for info in store.find("abc", limit=1)] == ["abc-1", "abd"]
    assert sorted(info.id for info in store.find("Talk")) == ["abc-2", "b%_"]
    assert [info.id for info in store.find("b%")] == ["b%_"]
    assert list(store.find("%")) == list(store.find("\0")) == list(store.find("")) == []


def test_how_sessions_begin_is_one_question(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "first words", session_id="a")
    fork(store, core, stored, 1, "branch")
    store.create(said(session_id="empty"))

    found = store.first_messages(["a", "branch", "empty", "nowhere", ""])

    assert {name: message.content for name, message in found.items()} == {
        "a": "first words",
        "branch": "first words",
    }


def test_events_of_different_sessions_are_numbered_apart(store: SqlStore) -> None:
    for session_id in "ab":
        store.create(said(session_id=session_id))
        assert list(store.append_events(session_id, [{"type": session_id}])) == [1]
    assert [event["type"] for event in store.events("a")] == ["a"]


def test_events_of_eight_writers_have_numbers_of_their_own(store: SqlStore, eight: list[SqlStore]) -> None:
    store.create(said("one"))

    def write(number: int, store: SqlStore) -> list[int]:
        return [
            seq for turn in range(10) for seq in store.append_events("s", [{"by": number, "turn": turn}] * 3)
        ]

    outcomes = everyone(eight, write)

    numbers = [seq for outcome in outcomes if isinstance(outcome, list) for seq in outcome]
    assert sorted(numbers) == list(range(1, 241))
    logged = store.events("s")
    assert [event["seq"] for event in logged] == list(range(1, 241))
    for number in range(8):
        assert [event["turn"] for event in logged if event["by"] == number] == sorted(list(range(10)) * 3)


def test_events_of_a_stale_owner_are_refused(store: SqlStore, clock: Any) -> None:
    store.create(said("one"))
    lease = store.acquire("s", "me", seconds=10)
    assert store.append_events("s", [{"n": 1}], lease=lease) == [1]
    clock.now += 11
    assert store.append_events("s", [{"n": 2}], lease=store.renew(lease, seconds=10)) == [2]
    other = store.acquire("s", "somebody else", seconds=10, take_over=True)

    with pytest.raises(LeaseLost):
        store.append_events("s", [{"n": 3}], lease=lease)
    assert store.append_events("s", [{"n": 4}], lease=other) == [3]
    assert store.append_events("s", [{"n": 5}]) == [4]
    assert [event["n"] for event in store.events("s")] == [1, 2, 4, 5]


def test_waiting_messages_keep_their_order_and_their_numbers(store: SqlStore, clock: Any) -> None:
    store.create(said("one"))
    first = store.put_input("s", {"role": "user", "content": "1"}, "queue")
    clock.now += 1
    second = store.put_input("s", {"role": "user", "content": "2", "extra": {"x": [1]}}, "steer")

    assert list(store.inputs("s")) == [first, second]
    assert (second.mode, second.created, second.message["extra"]) == ("steer", clock.now, {"x": [1]})
    assert store.drop_input("s", first.seq) is True
    assert store.drop_input("s", first.seq) is False
    assert store.drop_input("s", second.seq) is True
    third = store.put_input("s", {}, "interrupt")
    assert (first.seq, second.seq, third.seq) == (1, 2, 3)


def test_a_waiting_message_leaves_the_queue_with_the_save_that_delivers_it(store: SqlStore) -> None:
    stored = store.create(said("one"))
    first = store.put_input("s", {"content": "two"}, "queue")
    second = store.put_input("s", {"content": "three"}, "queue")

    stored = store.save(said("one", "two"), stored, changes=Changes(take_inputs=[first.seq]))

    assert list(store.inputs("s")) == [second]
    assert store.drop_input("s", first.seq) is False
    assert is_kept(store, stored)


def test_a_message_that_was_taken_back_is_not_delivered_as_well(store: SqlStore) -> None:
    stored = store.create(said("one"))
    first, second = (store.put_input("s", {"content": text}, "queue") for text in ("two", "three"))
    assert store.drop_input("s", first.seq) is True

    both = Changes(take_inputs=[first.seq, second.seq], events=[{"type": "delivered"}])
    with pytest.raises(InputWithdrawn, match=r"\[1\] were taken back") as caught:
        store.save(said("one", "two", "three"), stored, changes=both)

    assert caught.value.seqs == (first.seq,)
    assert is_kept(store, stored)
    assert list(store.inputs("s")) == [second]
    assert store.events("s") == []


def test_a_message_that_is_being_delivered_cannot_be_taken_back(store: SqlStore) -> None:
    store.create(said("one"))
    first, second = (store.put_input("s", {"content": text}, "queue") for text in ("two", "three"))
    lease = store.acquire("s", "me", seconds=10)

    assert store.claim_inputs(lease, [first.seq, 99]) == [first.seq]
    assert [store.drop_input("s", one.seq) for one in (first, second)] == [False, True]
    assert list(store.inputs("s")) == [first]


@pytest.mark.parametrize("ending", ["released", "expired", "taken over"])
def test_a_message_that_was_not_delivered_after_all_can_be_taken_back(
    store: SqlStore, clock: Any, ending: str
) -> None:
    stored = store.create(said("one"))
    waiting = store.put_input("s", {"content": "two"}, "queue")
    lease = store.acquire("s", "me", seconds=10)
    store.claim_inputs(lease, [waiting.seq])

    if ending == "released":
        store.release(lease)
    elif ending == "expired":
        clock.now += 11
    else:
        store.acquire("s", "somebody else", seconds=10, take_over=True)

    assert store.drop_input("s", waiting.seq) is True
    with pytest.raises((InputWithdrawn, LeaseLost)):
        store.save(said("one", "two"), stored, lease=lease, changes=Changes(take_inputs=[waiting.seq]))
    assert is_kept(store, stored)


def test_only_the_one_who_holds_a_session_delivers_to_it(store: SqlStore) -> None:
    store.create(said("one"))
    waiting = store.put_input("s", {"content": "two"}, "queue")
    lease = store.acquire("s", "me", seconds=10)
    store.acquire("s", "somebody else", seconds=10, take_over=True)

    with pytest.raises(LeaseLost):
        store.claim_inputs(lease, [waiting.seq])
    assert store.drop_input("s", waiting.seq) is True


def test_of_those_who_deliver_and_take_back_at_once_one_succeeds(
    store: SqlStore, eight: list[SqlStore]
) -> None:
    for turn in range(5):
        session_id = f"s{turn}"
        stored = store.create(said("one", session_id=session_id))
        seq = store.put_input(session_id, {"content": "two"}, "queue").seq

        def act(number: int, store: SqlStore, stored: Stored = stored, seq: int = seq) -> bool:
            session_id = stored.session.session_id
            if number % 2:
                return store.drop_input(session_id, seq)
            session = said("one", "two", session_id=session_id)
            return bool(store.save(session, stored, changes=Changes(take_inputs=[seq])))

        outcomes = everyone(eight, act)

        assert sum(outcome is True for outcome in outcomes) == 1
        delivered = len(store.load(session_id).session.messages) == 2
        assert delivered == any(outcome is True for outcome in outcomes[::2])
        assert store.inputs(session_id) == []


def test_a_session_changes_its_agent_with_the_save(store: SqlStore) -> None:
    stored = store.create(said("one"), agent_id="first")

    with pytest.raises(ArgumentError):
        store.save(stored.session, stored, changes=Changes(agent_id="a\0b"))
    saved = store.save(stored.session, stored, changes=Changes(agent_id="second"))
    with pytest.raises(RevisionConflict):
        store.save(stored.session, stored, changes=Changes(agent_id="third"))

    assert (store.info("s").agent_id, saved.revision) == ("second", 2)


def test_a_save_of_changes_alone_is_a_change(store: SqlStore) -> None:
    stored = store.create(said("one"))
    waiting = store.put_input("s", {}, "queue")

    saved = store.save(stored.session, stored, changes=Changes(take_inputs=[waiting.seq]))

    assert saved.revision == 2
    assert is_kept(store, saved)
    assert store.inputs("s") == []


def test_waiting_messages_of_eight_senders_are_all_kept(store: SqlStore, eight: list[SqlStore]) -> None:
    store.create(said("one"))

    def send(number: int, store: SqlStore) -> list[Waiting]:
        return [store.put_input("s", {"by": number}, "queue") for _ in range(5)]

    outcomes = everyone(eight, send)

    waiting = [each for outcome in outcomes if isinstance(outcome, list) for each in outcome]
    assert [each.seq for each in store.inputs("s")] == list(range(1, 41))
    assert sorted(waiting, key=lambda each: each.seq) == list(store.inputs("s"))


def test_a_mode_of_delivery_that_is_none_is_refused(store: SqlStore) -> None:
    store.create(said("one"))
    with pytest.raises(ArgumentError, match="steer, queue, interrupt"):
        store.put_input("s", {}, "later")  # type: ignore[arg-type]  # what is tested


def approval(number: int, session_id: str = "s") -> Approval:
    return Approval(
        id=f"approval {number}",
        session_id=session_id,
        suspension={"message": f"May I? {number}"},
        created=number,
    )


def test_approvals_are_decided_once_and_used(store: SqlStore) -> None:
    stored = store.create(said("one"))
    stored = store.save(said("one"), stored, changes=Changes(approvals=[approval(2), approval(1)]))
    assert list(store.approvals("s")) == [approval(1), approval(2)]
    assert list(store.approvals(undecided=True)) == [approval(1), approval(2)]

    decided = store.decide("approval 2", {"approved": True})
    with pytest.raises(DecisionNotAccepted, match="decided already"):
        store.decide("approval 2", {"approved": False})

    assert decided.decision == {"approved": True}
    assert list(store.approvals("s", undecided=True)) == [approval(1)]
    store.save(said("one"), stored, changes=Changes(use_approvals=["approval 2"], approvals=[approval(2)]))
    used = store.approvals("s")[1]
    assert (used.decision, used.used) == ({"approved": True}, True)
    assert store.approvals("s")[0].used is False


def test_an_empty_decision_is_one(store: SqlStore) -> None:
    store.save(said("x"), store.create(said()), changes=Changes(approvals=[approval(1)]))
    assert store.decide("approval 1", {}).decision == {}
    assert store.approvals("s", undecided=True) == []


def test_approvals_belong_to_their_session(store: SqlStore) -> None:
    store.save(said("x"), store.create(said()), changes=Changes(approvals=[approval(1)]))
    other = store.create(said(session_id="t"))

    with pytest.raises(ArgumentError, match="belongs to session 's'"):
        store.save(other.session, other, changes=Changes(approvals=[approval(1, "t")]))
    store.decide("approval 1", {"approved": True})
    with pytest.raises(DecisionNotAccepted, match=r"'t' cannot continue with approval 'approval 1'"):
        store.save(other.session, other, changes=Changes(use_approvals=["approval 1"]))
    store.save(other.session, other, changes=Changes(settle_approvals={"approval 1": {}}))

    assert list(store.approvals("t")) == []
    assert store.approvals("s") == [replace(approval(1), decision={"approved": True})]


@pytest.mark.parametrize("approval_id", ["approval 1", "unknown", "", "a\0b", "\ud800"])
def test_a_save_that_uses_what_was_not_decided_is_refused(store: SqlStore, approval_id: str) -> None:
    stored = store.save(said("x"), store.create(said()), changes=Changes(approvals=[approval(1)]))

    with pytest.raises(DecisionNotAccepted, match="cannot continue"):
        store.save(said("x", "y"), stored, changes=Changes(use_approvals=[approval_id]))

    assert is_kept(store, stored)
    assert store.approvals("s") == [approval(1)]


def test_a_decision_is_used_once(store: SqlStore) -> None:
    stored = store.save(said("x"), store.create(said()), changes=Changes(approvals=[approval(1)]))
    store.decide("approval 1", {"approved": True})
    stored = store.save(said("x", "y"), stored, changes=Changes(use_approvals=["approval 1"]))

    with pytest.raises(DecisionNotAccepted, match="has used it already"):
        store.save(said("x", "y", "z"), stored, changes=Changes(use_approvals=["approval 1"]))
    assert is_kept(store, stored)


def test_a_question_that_is_not_asked_any_more_is_settled_with_the_save(store: SqlStore) -> None:
    asked_for = Changes(approvals=[approval(1), approval(2), approval(3)])
    stored = store.save(said("x"), store.create(said()), changes=asked_for)
    store.decide("approval 2", {"approved": True})
    store.decide("approval 3", {"approved": True})
    stored = store.save(said("x"), stored, changes=Changes(use_approvals=["approval 3"]))

    moot = {f"approval {number}": {"reason": "late"} for number in (1, 2, 3, 4)}
    store.save(said("x"), stored, changes=Changes(settle_approvals=moot))

    kept = [(one.decision, one.used) for one in store.approvals("s")]
    assert kept == [({"reason": "late"}, True), ({"approved": True}, True), ({"approved": True}, True)]
    with pytest.raises(DecisionNotAccepted, match="decided already"):
        store.decide("approval 1", {"approved": True})


@pytest.mark.parametrize("approval_id", ["unknown", "", "a\0b", "\ud800", "x" * 10_000])
def test_an_approval_that_was_never_asked_for_is_not_decided(store: SqlStore, approval_id: str) -> None:
    with pytest.raises(DecisionNotAccepted, match="approval"):
        store.decide(approval_id, {})


def test_of_eight_decisions_the_first_counts(store: SqlStore, eight: list[SqlStore]) -> None:
    store.save(said("x"), store.create(said()), changes=Changes(approvals=[approval(1)]))

    outcomes = everyone(eight, lambda number, store: store.decide("approval 1", {"by": number}))

    accepted = [outcome for outcome in outcomes if isinstance(outcome, Approval)]
    assert list(store.approvals("s")) == accepted
    assert sum(isinstance(outcome, DecisionNotAccepted) for outcome in outcomes) == 7


def test_calls_that_have_no_result_are_known(store: SqlStore) -> None:
    stored = store.create(said("one"))
    for call_id, details in (
        ("call b", {"tool": "rm"}),
        ("call a", {"tool": "ls"}),
        ("call b", {"tool": "mv"}),
    ):
        stored = store.save(stored.session, stored, changes=Changes(intents={call_id: details}))
    assert store.open_intents("s") == {"call a": {"tool": "ls"}, "call b": {"tool": "mv"}}

    stored = store.save(stored.session, stored, changes=Changes(results=["call b", "unknown"]))

    assert store.open_intents("s") == {"call a": {"tool": "ls"}}
    stored = store.save(stored.session, stored, changes=Changes(intents={"call c": {}}, results=["call c"]))
    assert list(store.open_intents("s")) == ["call a"]


@pytest.mark.parametrize("call_id", ["", "a\0b", "\ud800", "x" * 10_000, "'; DROP TABLE intents; --"])
def test_a_model_may_call_its_calls_what_it_likes(store: SqlStore, call_id: str) -> None:
    stored = store.create(said("one"))
    stored = store.save(stored.session, stored, changes=Changes(intents={call_id: {"x": call_id}}))
    assert store.open_intents("s") == {call_id: {"x": call_id}}
    store.save(stored.session, stored, changes=Changes(results=[call_id]))
    assert store.open_intents("s") == {}


# --- damage -------------------------------------------------------------------------------------------------


def test_a_whole_store_has_no_problems(store: SqlStore, core: AgentCore) -> None:
    asked(store, core, "one", "two")
    report = store.check(deep=True)
    assert report.problems == ()
    assert (report.checked["sessions"], report.checked["messages"]) == (1, 4)
    assert report.checked["content"] == size(store)["content"]


def content_of(store: SqlStore, text: str) -> tuple[int, bytes]:
    """The content that has a text in it."""
    kept = rows(store, "SELECT id, body FROM content ORDER BY id")
    return next((number, bytes(body)) for number, body in kept if text.encode() in body)


@pytest.mark.parametrize("flip", [(b"precious", b"prEcious"), (b"{", b"["), (b'"', b"\xff")])
def test_a_deep_check_finds_flipped_bytes(
    store: SqlStore, core: AgentCore, flip: tuple[bytes, bytes]
) -> None:
    asked(store, core, "precious words")
    asked(store, core, "others", session_id="t")
    number, body = content_of(store, "precious words")

    change(store, "UPDATE content SET body = ? WHERE id = ?", body.replace(*flip, 1), number)

    problems = store.check(deep=True).problems
    assert any(f"content {number} " in problem for problem in problems)
    assert any("session 's'" in problem for problem in problems)
    assert not any("session 't'" in problem for problem in problems)
    assert texts(store.load("t").session.messages)[0] == "others"


def test_what_cannot_be_read_is_called_damaged(store: SqlStore) -> None:
    store.create(said("precious words"))
    number, body = content_of(store, "precious words")
    change(store, "UPDATE content SET body = ? WHERE id = ?", body[:-3], number)

    with pytest.raises(StoreDamaged, match="'s'"):
        store.load("s")


def test_a_link_that_was_changed_is_found(store: SqlStore, core: AgentCore) -> None:
    asked(store, core, "one")
    change(store, "UPDATE entries SET link = ? WHERE seq = 0", b"x" * 32)

    (problem,) = store.check(deep=True).problems
    assert "links" in problem


def test_places_in_native_history_that_were_changed_are_found(store: SqlStore, core: AgentCore) -> None:
    asked(store, core, "one")
    change(store, "UPDATE entries SET note = ? WHERE seq = 0 AND note IS NOT NULL", b"[7]")
    assert len(store.check(deep=True).problems) == 1


def test_every_check_finds_references_that_are_missing(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "one", "two")
    fork(store, core, source, 3, "f")
    asked(store, core, "three", session_id="t")
    (list_id,) = rows(store, "SELECT messages FROM sessions WHERE id = 's'")[0]

    change(store, "DELETE FROM entries WHERE list = ? AND seq = 1", list_id)

    report = store.check()
    assert sorted(report.problems) == [
        "session 'f' should have 3 messages, and 2 are there",
        "session 's' should have 4 messages, and 3 are there",
    ]
    with pytest.raises(StoreDamaged, match="'f'"):
        store.load("f")
    assert store.load("t").revision == 3


def test_every_check_finds_lists_that_are_missing(store: SqlStore) -> None:
    store.create(said("one"))
    (list_id,) = rows(store, "SELECT messages FROM sessions")[0]
    change(store, "DELETE FROM entries WHERE list = ?", list_id)
    change(store, "DELETE FROM lists WHERE id = ?", list_id)

    (problem,) = store.check().problems
    assert "session 's'" in problem and f"list {list_id}" in problem
    with pytest.raises(StoreDamaged):
        store.load("s")


# --- collecting -----------------------------------------------------------------------------------------


def test_deleting_removes_the_messages_that_no_other_session_has(store: SqlStore, core: AgentCore) -> None:
    kept = asked(store, core, "kept", "shared", session_id="kept")
    store.collect()
    before = size(store)
    gone = asked(store, core, "alone", "with others", session_id="gone")
    for text in ("xylophone", "yesterday"):
        gone = store.save(core.modify_message(gone.session, 2, text, A), gone)
    branch = fork(store, core, gone, 2, "branch")

    store.delete("gone")

    assert is_kept(store, kept) and is_kept(store, branch)
    store.delete("branch")
    for text in ("alone", "with others", "xylophone", "yesterday"):
        with pytest.raises(StopIteration):
            content_of(store, text)
    store.collect()  # former metadata
    assert grown(store, before) == {"lists": 1}  # the newest stays, empty, for the sake of its number
    assert is_kept(store, kept)
    assert store.collect().checked == {"lists": 0, "content": 0}
    assert store.check(deep=True).problems == ()


def test_collecting_forgets_what_was_edited_away_in_sessions_that_stay(
    store: SqlStore, core: AgentCore
) -> None:
    source = asked(store, core, "public", "secret", "more")
    forked = fork(store, core, source, 2, "f")
    forked = ask(store, core, forked, "in the fork")

    edited = store.save(core.modify_message(source.session, 2, "harmless", A), source)
    store.collect()

    with pytest.raises(StopIteration):
        content_of(store, "secret")
    assert is_kept(store, edited) and is_kept(store, forked)
    assert store.check(deep=True).problems == ()
    assert is_kept(store, ask(store, core, edited, "on")) and is_kept(store, ask(store, core, forked, "on"))


def test_collecting_keeps_what_only_a_fork_of_a_fork_has(store: SqlStore, core: AgentCore) -> None:
    source = asked(store, core, "one", "two", "three")
    middle = ask(store, core, fork(store, core, source, 4, "middle"), "in the middle")
    last = fork(store, core, middle, 6, "last")
    short = fork(store, core, middle, 2, "short")
    store.delete("s")
    store.delete("middle")

    store.collect()

    assert is_kept(store, last) and is_kept(store, short)
    with pytest.raises(StopIteration):
        content_of(store, "three")
    store.delete("last")
    store.collect()
    with pytest.raises(StopIteration):
        content_of(store, "two")
    assert is_kept(store, short)
    store.delete("short")
    store.collect()
    assert size(store)["content"] == size(store)["entries"] == 0
    assert size(store)["lists"] == 1


def test_numbers_of_lists_are_never_used_again(store: SqlStore) -> None:
    used = set()
    for turn in range(5):
        store.create(said("one", session_id=f"s{turn}"))
        ((highest,),) = rows(store, "SELECT max(id) FROM lists")
        assert highest not in used
        used.add(highest)
        store.delete(f"s{turn}")
        store.collect()


def test_collecting_forgets_words(store: SqlStore) -> None:
    store.create(said("forget me", "forget me not"))
    store.create(said("forget me not", session_id="t"))
    store.delete("s")
    store.collect()

    with store._database.reading() as transaction:
        wanted, values = store._database.matching(transaction, ["forget"])
        assert len(transaction.rows(wanted, *values)) == 1
    assert found(store, "forget") == ["t"]
    assert store.check(deep=True).problems == ()


def test_collecting_leaves_what_is_damaged_for_a_check_to_find(store: SqlStore) -> None:
    store.create(said("damaged words"))
    number, body = content_of(store, "damaged")
    change(store, "UPDATE content SET body = ? WHERE id = ?", body.replace(b"words", b"wo"), number)
    store.delete("s")

    assert store.collect().checked["content"] == 0
    assert any(f"content {number} " in problem for problem in store.check(deep=True).problems)


def test_collecting_while_others_write_removes_nothing_of_theirs(
    store: SqlStore, eight: list[SqlStore]
) -> None:
    def work(number: int, store: SqlStore) -> list[Stored]:
        made = []
        for turn in range(10):
            if number < 2:
                store.collect()
                continue
            gone = store.create(said("same text", session_id=f"gone {number} {turn}"))
            made.append(store.create(said("same text", f"{turn}", session_id=f"kept {number} {turn}")))
            store.delete(gone.session.session_id)
        return made

    outcomes = everyone(eight, work)

    made = [stored for outcome in outcomes if isinstance(outcome, list) for stored in outcome]
    assert len(made) == 60
    assert all(is_kept(store, stored) for stored in made)
    assert store.check(deep=True).problems == ()
    assert len(found(store, "same")) == 50


# --- the whole store for oneself ---------------------------------------------------------------------------


def test_the_exclusive_owner_of_a_store_may_use_it(store: SqlStore, core: AgentCore) -> None:
    stored = asked(store, core, "one")

    with store.writing():
        assert is_kept(store, stored)
        stored = ask(store, core, stored, "two")
        with pytest.raises(SessionNotFound):
            store.load("unknown")
        with pytest.raises(SessionExists):
            store.create(said("another"))
        assert list(store) == ["s"]

    assert is_kept(store, stored)


def test_what_fails_while_one_has_the_store_for_itself_is_undone_as_a_whole(store: SqlStore) -> None:
    with pytest.raises(SessionExists), store.writing():  # noqa: PT012 - both belong to the whole
        store.create(said("one"))
        store.create(said("one"))
    assert list(store) == []


def test_no_one_else_writes_while_a_process_owns_the_store(store: SqlStore, eight: list[SqlStore]) -> None:
    store.create(said("one"))
    begun = threading.Event()
    seen = list[str]()

    def write() -> None:
        begun.set()
        eight[0].rename("s", "theirs")
        seen.append("written")

    with ThreadPoolExecutor(1) as pool:
        with store.writing():
            done = pool.submit(write)
            begun.wait()
            for _ in range(20):
                assert store.info("s").title == ""
            seen.append("let go")
        done.result()

    assert seen == ["let go", "written"]
    assert store.info("s").title == "theirs"


# --- what people and models may send --------------------------------------------------------------------

HOSTILE = {
    "NUL": "a\0b",
    "half a pair": "\ud83d and \udc00",
    "SQL": "'); DROP TABLE sessions; --",
    "marks": "% _ ? %s $1 \\ {} \x1b[31m",
    "controls": "".join(map(chr, range(32))) + "\x7f\u202e\ufeff\uffff\U0010ffff",
    "long": "long " * 200_000,
    "one long word": "x" * 1_000_000,
    "many words": " ".join(map(str, range(150_000))),
    "empty": "",
    "blank": " \n\t",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_kept_as_it_is(store: SqlStore, text: str, kind: str) -> None:
    if kind != "postgres":  # where alone the number of words in a text is limited
        text = text[:100_000]
    session = Session("s", [Message("user", text, {text: text})], {text: {text: [text]}})
    stored = store.create(session)
    assert is_kept(store, stored)
    stored = store.save(said(text, text), stored, changes=Changes(events=[{"type": text, text: text}]))
    assert is_kept(store, stored)
    assert store.events("s")[0][text] == text or text in ("seq", "type")
    assert store.put_input("s", {text: text}, "queue") == store.inputs("s")[0]
    assert store.check(deep=True).problems == ()
    store.delete("s")
    assert store.collect().problems == ()
    assert size(store)["content"] == 0


NUMBERS = {
    "64 bits": 2**63,
    "past 64 bits": 2**64,
    "huge": 10**400,
    "negative": -(2**63) - 1,
    "infinite": math.inf,
    "negative infinite": -math.inf,
    "tiny": 5e-324,
    "negative zero": -0.0,
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_any_number_is_kept_as_it_is(store: SqlStore, number: float) -> None:
    # Frozen, as providers' messages are: nobody can make a message of infinity by hand.
    said = Message("user", freeze([number, None]))
    stored = store.create(Session("s", [said], freeze({"n": {"m": number}})))
    stored = store.save(stored.session, stored, changes=Changes(events=[{"n": number}]))

    loaded = store.load("s").session

    kept = (loaded.messages[0].content, loaded.metadata["n"]["m"], store.events("s")[0]["n"])
    assert repr(kept) == repr(([number, None], number, number))


def test_what_is_no_number_is_kept_as_such(store: SqlStore) -> None:
    store.create(Session("s", [Message("user", freeze([math.nan]))], freeze({"n": math.nan})))
    loaded = store.load("s").session
    assert math.isnan(loaded.messages[0].content[0])
    assert math.isnan(loaded.metadata["n"])


def test_what_is_nested_deeply_is_kept_or_refused(store: SqlStore) -> None:
    deep: Any = "core"
    for _ in range(300):
        deep = [deep]
    assert is_kept(store, store.create(Session("s", [Message("user", deep)])))
    too_deep: list[Any] = []
    for _ in range(100_000):
        too_deep = [too_deep]
    with pytest.raises(ArgumentError, match="nested"):
        store.append_events("s", [{"deep": too_deep}])


def test_what_is_no_plain_data_is_refused(store: SqlStore) -> None:
    with pytest.raises(ArgumentError, match="only plain data"):
        store.create(Session("s", [Message("user", FrozenDict(x=object()))]))
    with pytest.raises(ArgumentError, match="only plain data"):
        store.create(Session("s", (), FrozenDict(x={1, 2})))
    assert list(store) == []


@pytest.mark.parametrize("session_id", ["", "a\0b", "\ud800", "x" * 501])
def test_an_id_that_not_every_database_can_keep_is_refused(store: SqlStore, session_id: str) -> None:
    with pytest.raises(ArgumentError, match="session id"):
        store.create(said(session_id=session_id))
    store.create(said("one"))
    with pytest.raises(ArgumentError, match="session id"):
        store.fork("s", said(session_id=session_id), 0)
    with pytest.raises(ArgumentError, match="agent id"):
        store.assign("s", session_id)
    with pytest.raises(SessionNotFound):
        store.load(session_id)
    with pytest.raises(SessionNotFound):
        store.delete(session_id)
    assert list(store) == ["s"]


@pytest.mark.parametrize(
    "session_id",
    ["'; DROP TABLE sessions; --", "../../etc/passwd", "%", "日本語 🎉", "x" * 500, "?", "\n", "🎉" * 500],
)
def test_any_other_id_is_an_id(store: SqlStore, session_id: str) -> None:
    stored = store.create(said("one", session_id=session_id), agent_id=session_id)
    assert is_kept(store, stored)
    assert list(store) == [session_id]
    assert store.list().sessions[0].id == session_id
    store.append_events(session_id, [{}])
    lease = store.acquire(session_id, "me", seconds=1)
    assert store.holder(session_id) == lease
    store.release(lease)
    store.delete(session_id)
    assert list(store) == []


@pytest.mark.parametrize("title", ["a\0b", "\ud800"])
def test_a_title_that_not_every_database_can_keep_is_refused(store: SqlStore, title: str) -> None:
    with pytest.raises(ArgumentError, match="title"):
        store.create(said("one"), title=title)
    store.create(said("one"), title="good")
    with pytest.raises(ArgumentError, match="title"):
        store.rename("s", title)
    assert store.info("s").title == "good"


@pytest.mark.parametrize("title", ["", "'; --", "%_\\", "🎉" * 10, "t" * 1_000_000, "\x1b[31m"])
def test_any_other_title_is_a_title(store: SqlStore, title: str) -> None:
    store.create(said("one"), title=title)
    assert store.info("s").title == title
    assert store.rename("s", f"{title}!").title == f"{title}!"


@pytest.mark.parametrize("number", [-1, 2**63, 10**30, "1", None])
def test_numbers_that_make_no_sense_are_refused(store: SqlStore, number: Any) -> None:
    store.create(said("one"))
    with pytest.raises(ArgumentError, match="after"):
        store.events("s", after=number)
    with pytest.raises(ArgumentError, match="seq"):
        store.drop_input("s", number)
