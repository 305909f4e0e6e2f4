"""A run that cannot go on ends by itself: nothing is tried for ever, and its session's log says why."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest
from program import application

from agent_app.errors import StoreUnavailable
from agent_durable import Job, Outcome, Queue, database, open_engine, run
from agent_durable.metrics import Metrics
from agent_durable.run import Disturbed, Performance, SteppedRun

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from agent_app import AgentApplication


@pytest.fixture
def app(tmp_path: Path) -> Iterator[AgentApplication]:
    made = application(f"sqlite:///{tmp_path / 'sessions.db'}")
    yield made
    made.close()


def perform(app: AgentApplication, session_id: str, **job: Any) -> Outcome:
    """Bring a run to its end, here."""
    wanted = Job(run_id="run-1", session_id=session_id, capability="counter.x", **job)
    metrics = Metrics(lambda: Queue(0, 0.0), lambda: 0)
    return asyncio.run(Performance(app, wanted, lambda: None, lambda: False, metrics).perform(at_once))


async def at_once(_name: str, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    return await work()


def last_error(app: AgentApplication, session_id: str) -> str:
    [*_, last] = app.store.events(session_id)
    assert last["type"] == "error"
    return str(last["error"]["message"])


def session_with(app: AgentApplication, text: str) -> str:
    session_id: str = app.create_session("counter").session_id
    app.enqueue(session_id, text, "queue")
    return session_id


def test_a_run_with_too_many_steps_is_over_and_failed(
    app: AgentApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MOST_STEPS", 3)
    session_id = session_with(app, "Count to 9")

    outcome = perform(app, session_id)

    assert (outcome.status, outcome.over) == ("failed", True)
    assert "after 3 steps" in outcome.text == last_error(app, session_id)
    assert app.store.holder(session_id) is None


def test_a_session_that_stays_in_use_is_not_waited_for_longer_than_the_deadline(
    app: AgentApplication,
) -> None:
    session_id = session_with(app, "Count to 0")
    app.store.acquire(session_id, "somebody else", seconds=600)

    outcome = perform(app, session_id, deadline=time.time() - 1)

    assert outcome.code == "timeout"
    assert "in use by somebody else" in outcome.text == last_error(app, session_id)


def test_a_session_that_stays_in_use_is_not_waited_for_without_end(
    app: AgentApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "WAIT_SECONDS", -1.0)
    session_id = session_with(app, "Count to 0")
    app.store.acquire(session_id, "somebody else", seconds=600)

    outcome = perform(app, session_id)

    assert outcome.status == "failed"
    assert "in use by somebody else" in outcome.text == last_error(app, session_id)


def test_a_step_whose_result_cannot_be_stored_is_not_paid_for_again_and_again(
    app: AgentApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = itertools.count(1)
    made: list[int] = []

    async def fail(_self: SteppedRun, _is_stopping: Callable[[], bool]) -> Outcome:
        made.append(next(tries))
        raise Disturbed("the disk is full")

    monkeypatch.setattr(SteppedRun, "step", fail)
    monkeypatch.setattr(run, "RETRY_SECONDS", 0.0)
    session_id = session_with(app, "Count to 0")

    outcome = perform(app, session_id)

    assert outcome.status == "failed"
    assert "the disk is full" in outcome.text == last_error(app, session_id)
    assert made[-1] == run.MOST_DISTURBANCES


def test_a_server_that_is_away_is_waited_for_and_named_without_its_password() -> None:
    reports: list[str] = []

    with pytest.raises(StoreUnavailable, match=r"database none on 127\.0\.0\.1:9 cannot be reached") as away:
        database.wait_for("postgresql://nobody:secret@127.0.0.1:9/none", seconds=1.0, tell=reports.append)

    assert len(reports) == 1
    assert "waiting for database none on 127.0.0.1:9" in reports[0]
    assert "secret" not in f"{reports} {away.value}"


def test_a_queue_that_is_away_is_an_error_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.0)
    engine, workers = open_engine("postgresql://nobody:secret@127.0.0.1:9/none")
    asked: list[Callable[[], object]] = [workers.all, engine.queue, lambda: workers.add("w", "w", 1, [])]

    for ask in asked:
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1.*is the database running") as away:
            ask()
        assert "secret" not in str(away.value)
    engine.stop()
    workers.close()


def test_a_server_that_refuses_is_not_waited_for(server: str) -> None:
    reports: list[str] = []
    refused = server.replace("agent@", "nobody:secret@")

    with pytest.raises(
        StoreUnavailable, match=r'refuses the connection .*role "nobody" does not exist'
    ) as no:
        database.wait_for(refused, seconds=600, tell=reports.append)

    assert reports == []
    assert "secret" not in str(no.value)
    database.wait_for(server, seconds=0, tell=reports.append)
    database.wait_for("sqlite:///sessions.db", seconds=0, tell=reports.append)
    assert reports == []
