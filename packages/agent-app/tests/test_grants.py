"""Permissions that outlive one call, on each database: kept once, found where they count, taken back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import DecisionNotAccepted, SessionNotFound
from agent_app.store.base import Approval, Changes, Grant
from agent_core import ArgumentError, Message, Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app.store.sql import SqlStore

ALWAYS = Grant(id="g1", pattern="shell(git status)", effect="allow", scope="always", key="", created=1.0)
PROJECT = Grant(
    id="g2", pattern="shell(make *)", effect="allow", scope="project", key="/srv/shop", created=2.0
)
SESSION = Grant(id="g3", pattern="fetch", effect="deny", scope="session", key="s", created=3.0, note="no net")


@pytest.fixture
def chats(store: SqlStore) -> SqlStore:
    """A store with two sessions; one of them waits for a decision."""
    stored = store.create(Session("s", [Message("user", "hello")]))
    store.create(Session("t", [Message("user", "hello")]))
    asked = Approval(id="a", session_id="s", suspension={"call_id": "c"}, created=0.0)
    store.save(stored.session, stored, changes=Changes(approvals=[asked]))
    return store


def test_grants_count_where_they_were_given(chats: SqlStore) -> None:
    for grant in (SESSION, PROJECT, ALWAYS):
        assert chats.add_grant(grant) == grant

    assert chats.grants() == [ALWAYS, PROJECT, SESSION]
    assert chats.grants(session_id="s") == [ALWAYS, SESSION]
    assert chats.grants(project="/srv/shop") == [ALWAYS, PROJECT]
    assert chats.grants(session_id="s", project="/srv/shop") == [ALWAYS, PROJECT, SESSION]
    assert chats.grants(session_id="t", project="/srv/sho") == [ALWAYS]


def test_grants_are_there_for_the_next_process(
    chats: SqlStore, kind: str, open_again: Callable[[], SqlStore]
) -> None:
    if kind == "sqlite memory":
        pytest.skip("memory is another store each time")
    chats.add_grant(SESSION)
    assert open_again().grants() == [SESSION]


def test_the_same_grant_is_kept_once(chats: SqlStore) -> None:
    chats.add_grant(ALWAYS)

    again = replace(ALWAYS, id="other", created=9.0, note="again")
    assert chats.add_grant(again) == ALWAYS
    different = replace(again, effect="deny")
    assert chats.add_grant(different) == different
    assert chats.grants() == [ALWAYS, different]


def test_a_grant_is_taken_back_once(chats: SqlStore) -> None:
    chats.add_grant(ALWAYS)
    assert [chats.remove_grant("g1"), chats.remove_grant("g1"), chats.remove_grant("")] == [
        True,
        False,
        False,
    ]
    assert chats.grants() == []
    assert chats.add_grant(ALWAYS) == ALWAYS


def test_a_deleted_session_takes_its_grants_along(chats: SqlStore) -> None:
    others = replace(SESSION, id="g4", key="t")
    for grant in (ALWAYS, PROJECT, SESSION, others):
        chats.add_grant(grant)

    chats.delete("s")
    chats.create(Session("s"))

    assert chats.grants(session_id="s") == [ALWAYS]
    assert chats.grants() == [ALWAYS, PROJECT, others]


def test_a_grant_for_a_session_that_is_not_there_is_refused(chats: SqlStore) -> None:
    with pytest.raises(SessionNotFound):
        chats.add_grant(replace(SESSION, key="nobody"))
    with pytest.raises(SessionNotFound):
        chats.grants(session_id="nobody")


@pytest.mark.parametrize("pattern", ["x" * 100_000, "\0", "half \ud800 a pair", "Ä ? % 'quote'", " "])
def test_patterns_and_paths_have_any_characters(chats: SqlStore, pattern: str) -> None:
    grant = replace(PROJECT, pattern=pattern, key=pattern, note=pattern)
    chats.add_grant(grant)
    assert chats.add_grant(replace(grant, id="again")) == grant
    assert chats.grants(project=pattern) == [grant]


WRONG: list[dict[str, Any]] = [
    {"id": ""},
    {"id": "a\0b"},
    {"effect": "ask"},
    {"scope": "machine"},
    {"pattern": ""},
    {"pattern": None},
    {"key": ""},
    {"key": None},
    {"scope": "always"},
    {"note": None},
    {"created": float("nan")},
]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_what_is_no_grant_is_refused(chats: SqlStore, change: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        chats.add_grant(replace(PROJECT, **change))
    assert chats.grants() == []


def test_an_id_is_used_once(chats: SqlStore) -> None:
    chats.add_grant(ALWAYS)
    with pytest.raises(ArgumentError, match="'g1' belongs to another grant"):
        chats.add_grant(replace(PROJECT, id="g1"))
    assert chats.grants() == [ALWAYS]


def test_a_grant_comes_with_its_decision(chats: SqlStore) -> None:
    decided = chats.decide("a", {"approved": True}, grant=SESSION)
    assert decided.decision == {"approved": True}
    assert chats.grants() == [SESSION]


def test_a_grant_that_is_there_already_does_not_stand_in_the_way_of_a_decision(chats: SqlStore) -> None:
    chats.add_grant(ALWAYS)
    chats.decide("a", {"approved": True}, grant=replace(ALWAYS, id="again"))
    assert chats.grants() == [ALWAYS]


def test_no_grant_is_kept_of_a_decision_that_is_not_accepted(chats: SqlStore) -> None:
    chats.decide("a", {"approved": True})
    for approval in ("a", "nobody's"):
        with pytest.raises(DecisionNotAccepted):
            chats.decide(approval, {"approved": True}, grant=ALWAYS)
    assert chats.grants() == []


def test_no_decision_is_kept_whose_grant_is_refused(chats: SqlStore) -> None:
    for grant in (replace(PROJECT, key=""), replace(SESSION, key="nobody")):
        with pytest.raises((ArgumentError, SessionNotFound)):
            chats.decide("a", {"approved": True}, grant=grant)
    assert [one.id for one in chats.approvals("s", undecided=True)] == ["a"]


def test_eight_may_give_the_same_grant_at_once(
    chats: SqlStore, kind: str, open_again: Callable[[], SqlStore]
) -> None:
    stores = [chats] * 8 if kind == "sqlite memory" else [open_again() for _ in range(8)]
    start = threading.Barrier(8)

    def give(number: int) -> Grant:
        start.wait()
        return stores[number].add_grant(replace(SESSION, id=f"from {number}"))

    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(give, range(8)))
    assert kept == [kept[0]] * 8 == [*chats.grants()] * 8
