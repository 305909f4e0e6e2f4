"""Messages and decisions that were kept and that nobody came for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_app.store.base import Approval, Changes
from agent_core import Session

if TYPE_CHECKING:
    from conftest import Clock

    from agent_app.store.base import SessionStore

HELLO = {"role": "user", "content": "hello"}


def test_sessions_are_found_in_which_messages_wait_for_long(store: SessionStore, clock: Clock) -> None:
    for session_id in ("a", "b", "empty"):
        store.create(Session(session_id))
    store.put_input("a", HELLO, "queue")
    store.put_input("a", HELLO, "steer")
    clock.now += 10
    store.put_input("a", HELLO, "queue")
    store.put_input("b", HELLO, "queue")

    assert store.forgotten_inputs(seconds=20) == []
    assert store.forgotten_inputs(seconds=10) == [("a", 2)]
    assert store.forgotten_inputs(seconds=0) == [("a", 3), ("b", 1)]


def test_a_session_that_somebody_holds_is_not_forgotten(store: SessionStore, clock: Clock) -> None:
    store.create(Session("a"))
    store.put_input("a", HELLO, "queue")
    store.acquire("a", "somebody", seconds=30)

    assert store.forgotten_inputs(seconds=0) == []
    clock.now += 31
    assert store.forgotten_inputs(seconds=0) == [("a", 1)]


def test_decisions_are_found_that_no_run_has_gone_on_with(store: SessionStore, clock: Clock) -> None:
    stored = store.create(Session("a"))
    asked = [Approval(id=one, session_id="a", suspension={}, created=0.0) for one in ("x", "y", "z")]
    stored = store.save(stored.session, stored, changes=Changes(approvals=asked))
    store.decide("x", {"approved": True})
    store.decide("y", {"approved": False})
    store.save(stored.session, stored, changes=Changes(use_approvals=["x"]))

    assert [one.id for one in store.forgotten_decisions()] == ["y"]
    store.acquire("a", "somebody", seconds=30)
    assert store.forgotten_decisions() == []
    clock.now += 31
    assert [one.id for one in store.forgotten_decisions()] == ["y"]
