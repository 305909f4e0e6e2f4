"""The ledger finds what a store has lost, has twice, or should not have any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from agent_app.store import open_store
from agent_app.store.base import Approval, Changes
from agent_app.testing import Ledger
from agent_core import AgentCore, Message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_app.store.base import SessionStore


def converse(store: SessionStore, ledger: Ledger) -> None:
    """Let a store acknowledge something of every kind."""
    core = AgentCore()
    first = store.create(core.create_session("s"))
    ledger.saved(first)
    ledger.queued(store.put_input("s", {"role": "user", "content": "one"}, "queue"))
    ledger.queued(store.put_input("s", {"role": "user", "content": "two"}, "queue"))
    approval = Approval(id="a", session_id="s", suspension={}, created=1.0)
    changes = Changes(take_inputs=[1], approvals=[approval], intents={"call": {}}, events=[{"type": "x"}])
    second = store.save(core.append_messages(first.session, [Message("user", "one")]), first, changes=changes)
    ledger.saved(second, first, changes)
    ledger.decided(store.decide("a", {"action": "resume"}))
    changes = Changes(use_approvals=["a"], results=["call"], intents={"next": {}})
    third = store.save(
        core.append_messages(second.session, [Message("assistant", "yes")]), second, changes=changes
    )
    ledger.saved(third, second, changes)
    ledger.logged("s", store.append_events("s", [{"type": "y"}]), [{"type": "y"}])
    store.create(core.create_session("gone"))
    store.delete("gone")
    ledger.deleted("gone")


@pytest.fixture
def store() -> Iterator[SessionStore]:
    made = open_store("sqlite://")
    yield made
    made.close()


@pytest.fixture
def ledger(tmp_path: Path, store: SessionStore) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as made:
        converse(store, made)
        yield made


def test_what_was_acknowledged_is_found(store: SessionStore, ledger: Ledger) -> None:
    comparison = ledger.compare(store)

    assert comparison.holds
    # Two messages, two inputs, two events, two intents; an approval asked for, decided and used.
    assert comparison.acknowledged == 11


@pytest.mark.parametrize(
    ("sabotage", "sentence"),
    [
        ("UPDATE sessions SET message_count = 1", "message 1 of 's' is not what was acknowledged"),
        ("UPDATE sessions SET revision = 2", "session 's' has revision 2, not 3"),
        ("DELETE FROM sessions", "session 's' is missing"),
        ("DELETE FROM inputs", "input 2 of 's' is neither queued nor delivered"),
        ("DELETE FROM events WHERE seq = 2", "event 2 of 's' is not what was acknowledged"),
        ("DELETE FROM approvals", "approval 'a' of 's' is missing"),
        ("UPDATE approvals SET decision = NULL", "the decision on 'a' of 's' is missing"),
        ("UPDATE approvals SET used = 0", "approval 'a' of 's' was used and does not say so"),
        ("DELETE FROM intents", "the intent of call 'next' of 's' is missing"),
    ],
)
def test_what_is_missing_is_named(store: SessionStore, ledger: Ledger, sabotage: str, sentence: str) -> None:
    with store.writing() as transaction:
        transaction.run(sabotage)

    assert sentence in ledger.compare(store).lost


def test_events_that_came_with_a_save_are_missed_as_well(store: SessionStore, ledger: Ledger) -> None:
    with store.writing() as transaction:
        transaction.run("DELETE FROM events WHERE seq = 1")

    comparison = ledger.compare(store)

    assert [sentence for sentence in comparison.lost if sentence.startswith("1 of the events")]
    assert comparison.wrong == ("the events of 's' are not numbered from 1 to 1",)


def test_an_input_that_is_delivered_and_waits_still_is_wrong(store: SessionStore, ledger: Ledger) -> None:
    store.put_input("s", {"role": "user", "content": "one"}, "queue")

    assert ledger.compare(store).wrong == ("an input of 's' is there 2 times",)


def test_an_input_that_was_taken_back_may_not_wait(store: SessionStore, ledger: Ledger) -> None:
    ledger.withdrawn("s", 2)
    waits = ledger.compare(store)
    store.drop_input("s", 2)

    assert waits.wrong == ("input 2 of 's' was withdrawn and still waits",)
    assert ledger.compare(store).holds


def test_a_call_with_a_result_may_not_count_as_running(store: SessionStore, ledger: Ledger) -> None:
    stored = store.load("s")
    store.save(stored.session, stored, changes=Changes(intents={"call": {}}))

    assert "call 'call' of 's' has a result and still counts as running" in ledger.compare(store).wrong


def test_a_deleted_session_may_not_come_back(store: SessionStore, ledger: Ledger) -> None:
    store.create(AgentCore().create_session("gone"))

    assert ledger.compare(store).wrong == ("session 'gone' was deleted and is still there",)


def test_a_store_may_have_more_than_was_acknowledged(store: SessionStore, ledger: Ledger) -> None:
    stored = store.load("s")
    more = AgentCore().append_messages(stored.session, [Message("user", "nobody noted this")])
    unnoted = store.save(more, stored, changes=Changes(results=["next"]))
    ledger_after = AgentCore().append_messages(more, [Message("user", "this was")])

    ledger.saved(store.save(ledger_after, unnoted), unnoted)

    assert ledger.compare(store).holds


def test_processes_that_share_a_ledger_may_note_in_another_order(tmp_path: Path, store: SessionStore) -> None:
    core = AgentCore()
    first = store.create(core.create_session("s"))
    second = store.save(core.append_messages(first.session, [Message("user", "1")]), first)
    third = store.save(core.append_messages(second.session, [Message("user", "2")]), second)

    with Ledger(tmp_path / "ledger") as ledger, Ledger(tmp_path / "ledger") as other:
        other.saved(third, second)
        ledger.saved(second, first)
        ledger.saved(first)
        comparison = ledger.compare(store)

    assert (comparison.holds, comparison.acknowledged) == (True, 2)


def test_a_ledger_cut_off_anywhere_is_a_shorter_ledger(tmp_path: Path) -> None:
    store = open_store("sqlite://")
    with Ledger(tmp_path / "whole") as whole:
        converse(store, whole)
        acknowledged = whole.compare(store).acknowledged
    content = (tmp_path / "whole").read_bytes()

    @given(st.integers(0, len(content)))
    def check(cut: int) -> None:
        (tmp_path / "cut").write_bytes(content[:cut])
        with Ledger(tmp_path / "cut") as ledger:
            before = ledger.compare(store)
            ledger.logged("s", store.append_events("s", [{"type": "z"}]), [{"type": "z"}])
            after = ledger.compare(store)

        # A line may be cut off right behind its end; all others that are cut off were never acknowledged.
        assert before.lost == after.lost == ()
        assert before.acknowledged <= acknowledged
        assert after.acknowledged == before.acknowledged + 1

    check()
    store.close()
