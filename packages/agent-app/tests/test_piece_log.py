"""Pieces of answers in the log: of many sessions at once, and none is lost for the fault of another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}


class Alarm:
    """A clock whose only alarm a test rings."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def call_later(self, _seconds: float, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def ring(self) -> None:
        self.callbacks.pop()()


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> Alarm:
    """Have pieces logged when a test says so, and before it goes on."""
    alarm = Alarm()
    monkeypatch.setattr("agent_app.piece_log.SYSTEM_CLOCK", alarm)
    monkeypatch.setattr("agent_app.piece_log.run_in_worker", lambda work: work())
    return alarm


@pytest.fixture
def app(tmp_path: Path) -> Iterator[AgentApplication]:
    script = [Reply(text="abc", chunks=["a", "b", "c"]) for _ in range(9)]
    url = f"sqlite:///{tmp_path}/sessions.db"
    with AgentApplication(CONFIG, store=url, plugins=[ScriptedProvider(script)], installed=False) as app:
        yield app


def begun(app: AgentApplication) -> tuple[str, Iterator[dict[str, Any]]]:
    """Return a session with an answer of which the first piece was shown."""
    session_id = app.create_session().session_id
    events = iter(app.chat(session_id, "hello"))
    next(event for event in events if event["type"] == "text")
    return session_id, events


def said(app: AgentApplication, session_id: str) -> str:
    return "".join(event["text"] for event in app.store.events(session_id) if event["type"] == "text")


def test_the_pieces_of_many_answers_are_one_transaction(app: AgentApplication, alarm: Alarm) -> None:
    answers = [begun(app) for _ in range(3)]
    group, groups = app.store.group, 0

    @contextmanager
    def counted() -> Iterator[None]:
        nonlocal groups
        groups += 1
        with group():  # type: ignore[union-attr]  # a file has one writer
            yield

    app.store.group = counted  # type: ignore[method-assign]
    alarm.ring()

    assert [said(app, session_id) for session_id, _ in answers] == ["a", "a", "a"]
    assert (groups, alarm.callbacks) == (1, [])
    for session_id, events in answers:
        assert list(events)[-1]["type"] == "final"
        assert said(app, session_id) == "abc"


def test_an_answer_that_cannot_be_logged_does_not_keep_others_from_it(
    app: AgentApplication, alarm: Alarm
) -> None:
    (lost, _), (kept, events) = begun(app), begun(app)
    app.store.acquire(lost, "somebody else", seconds=60, take_over=True)
    alarm.ring()

    assert (said(app, lost), said(app, kept)) == ("", "a")
    assert list(events)[-1]["type"] == "final"
    assert said(app, kept) == "abc"


def test_pieces_are_logged_later_if_the_transaction_of_all_fails(app: AgentApplication, alarm: Alarm) -> None:
    answers = [begun(app) for _ in range(2)]
    group = app.store.group

    @contextmanager
    def failing() -> Iterator[None]:
        with group():  # type: ignore[union-attr]  # a file has one writer
            yield
            raise OSError("the disk is full")

    app.store.group = failing  # type: ignore[method-assign]
    alarm.ring()
    app.store.group = group  # type: ignore[method-assign]

    assert [said(app, session_id) for session_id, _ in answers] == ["", ""]
    for session_id, events in answers:
        assert list(events)[-1]["type"] == "final"
        assert said(app, session_id) == "abc"


def test_a_session_that_is_being_written_is_logged_with_the_next_alarm(
    app: AgentApplication, alarm: Alarm
) -> None:
    (busy, busy_events), (free, _) = begun(app), begun(app)
    writer = next(one for one in app._services.pieces._behind if one.lease.session_id == busy)  # type: ignore[attr-defined]
    with writer._writing:  # type: ignore[attr-defined]  # as during a commit
        alarm.ring()

        assert (said(app, busy), said(app, free)) == ("", "a")
    alarm.ring()
    assert said(app, busy) == "a"
    assert list(busy_events)[-1]["type"] == "final"
    assert said(app, busy) == "abc"


def test_large_pieces_are_logged_at_once_and_need_one_alarm_in_all(tmp_path: Path, alarm: Alarm) -> None:
    large = ["x" * 5000] * 9
    url, provider = f"sqlite:///{tmp_path}/large.db", ScriptedProvider([Reply(chunks=large)])
    with AgentApplication(CONFIG, store=url, plugins=[provider], installed=False) as app:
        session_id = app.create_session().session_id
        assert list(app.chat(session_id, "hello"))[-1]["type"] == "final"

    assert len(alarm.callbacks) == 1
    alarm.ring()
    assert alarm.callbacks == []
