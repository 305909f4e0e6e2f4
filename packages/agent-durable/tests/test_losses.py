"""Runs that take their workers with them: they are stopped, with a reason, and others are not.

By default with one recovery, which takes two workers; ``FAULTS=long`` has the default number.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest
from program import application

from agent_app.store.leases import this_process
from agent_durable import Job, Worker, open_engine
from agent_durable.jobs import Tries, run_id_for
from agent_durable.stop import CODE, MOST_TRIES, is_due, stop_run
from agent_durable.worker import RECOVERIES
from agent_durable.workers import Workers
from agent_runtime.recovery import MAY_HAVE_RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Site

    from agent_app import AgentApplication
    from agent_app.store.base import SessionStore
    from agent_durable.dbos_engine import DbosEngine

LONG = os.environ.get("FAULTS") == "long"
ALLOWED = RECOVERIES if LONG else 1
SETTINGS = {"RECOVERIES": str(ALLOWED)}


def errors(store: SessionStore, session_id: str) -> list[dict[str, object]]:
    return [event["error"] for event in store.events(session_id) if event["type"] == "error"]


def wait_over(site: Site, *run_ids: str, workers: int, **settings: str) -> None:
    """Wait until runs are over, and replace every worker that dies, as a supervisor does."""
    processes = [site.worker_soon(**settings) for _ in range(workers)]

    def are_over() -> bool:
        for place, worker in enumerate(processes):
            if worker.has_ended:
                processes[place] = site.worker_soon(**settings)
        return all(site.info(run_id).is_over for run_id in run_ids)

    site.wait(are_over)


def test_a_run_that_kills_its_workers_is_stopped_with_a_reason(site: Site) -> None:
    session_id, run_id = site.say("Die 99")
    other_session, other = site.say("Count to 0")

    wait_over(site, run_id, other, workers=3, **SETTINGS)

    info = site.info(run_id)
    assert (info.status, info.code, info.last) == ("failed", CODE, CODE)
    assert info.losses == ALLOWED + 1
    assert f"{info.losses} workers died" in info.text
    assert "running was crash" in info.text
    # Where a machine is so busy that a worker is given up, fewer have to be killed.
    killed = len([line for line in site.effects() if line.startswith("crash")])
    assert 0 < killed <= ALLOWED + 1
    [error] = errors(site.app.store, session_id)
    assert (error["type"], error["message"], error["calls"]) == ("WorkersLost", info.text, ["crash"])
    results = [one for one in site.app.load_session(session_id).messages if one.role == "tool"]
    assert [one.content for one in results] == [MAY_HAVE_RUN] * killed
    assert not site.app.store.open_intents(session_id)
    assert site.app.store.holder(session_id) is None
    assert site.info(other).status == "done"
    assert errors(site.app.store, other_session) == []


@pytest.mark.slow
def test_a_worker_that_was_asked_to_stop_and_then_killed_is_not_a_loss(site: Site) -> None:
    first = site.worker(TOOL_SECONDS="600", RECOVERIES="0")
    session_id, run_id = site.say("Count to 2")
    site.wait(lambda: bool(site.app.store.open_intents(session_id)))

    first.signal(signal.SIGTERM)
    site.wait(lambda: site.workers.all()[0].draining)
    first.kill()  # its supervisor was in a hurry
    site.worker(RECOVERIES="0")

    assert site.wait_over(run_id) == ["done"]
    assert (site.info(run_id).losses, site.info(run_id).attempts) == (0, 2)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DbosEngine]:
    """An engine on a file, without workers."""
    made, workers = open_engine(f"sqlite:///{tmp_path / 'queue.db'}")
    yield made
    made.stop()
    workers.close()


@pytest.fixture
def app(tmp_path: Path) -> Iterator[AgentApplication]:
    made = application(f"sqlite:///{tmp_path / 'sessions.db'}")
    yield made
    made.close()


def lose(engine: DbosEngine, run_id: str, *workers: str) -> None:
    """Let workers die that have a run."""
    from agent_durable import dbos_tables

    for worker in workers:
        dbos_tables.add_losses(engine._database(), [run_id], worker)


def test_a_loss_counts_once_and_only_for_runs_that_had_begun(engine: DbosEngine) -> None:
    engine.excuse("waiting", "w1")
    for run_id in ("begun", "waiting"):
        lose(engine, run_id, "w1", "w1")
        lose(engine, run_id, "w2")

    assert [engine.tries(run_id).losses for run_id in ("begun", "waiting", "other")] == [2, 1, 0]
    engine.excuse("begins", "w3")
    engine.begin("begins", "w3")
    lose(engine, "begins", "w3")
    assert engine.tries("begins").losses == 1


def test_three_losses_are_tolerated_and_the_fourth_is_not() -> None:
    assert RECOVERIES == 3
    assert not is_due(Tries(4, 3), RECOVERIES)
    assert is_due(Tries(5, 4), RECOVERIES)
    assert not is_due(Tries(MOST_TRIES, 0), RECOVERIES)
    assert is_due(Tries(MOST_TRIES + 1, 0), RECOVERIES)  # a tool that sends SIGTERM ends as well


def test_the_message_of_a_run_that_is_stopped_is_delivered(app: AgentApplication) -> None:
    session_id = app.create_session("counter").session_id
    mine, later = (app.enqueue(session_id, text, "queue") for text in ("Count to 1", "Count to 2"))
    job = Job(run_id=run_id_for(session_id, mine.seq), session_id=session_id, capability="counter.x")

    outcome = stop_run(app, job, Tries(5, 4), 3)

    assert (outcome.status, outcome.code) == ("failed", CODE)
    assert [one.content for one in app.load_session(session_id).messages][-1] == "Count to 1"
    assert [one.seq for one in app.store.inputs(session_id)] == [later.seq]
    assert [error["message"] for error in errors(app.store, session_id)] == [outcome.text]


def test_a_stop_that_ended_a_worker_itself_leaves_the_session_alone(app: AgentApplication) -> None:
    session_id = app.create_session("counter").session_id
    app.enqueue(session_id, "Count to 1", "queue")
    before = app.store.info(session_id).revision
    job = Job(run_id="run-1", session_id=session_id, capability="counter.x")

    outcome = stop_run(app, job, Tries(6, 5), 3)

    assert outcome.status == "failed"
    assert app.store.info(session_id).revision == before
    assert [error["message"] for error in errors(app.store, session_id)] == [outcome.text]


def test_runs_with_their_last_try_go_on_one_after_the_other(
    app: AgentApplication, engine: DbosEngine, tmp_path: Path
) -> None:
    workers = Workers(f"sqlite:///{tmp_path / 'workers.db'}")  # not used: the worker is not started
    worker = Worker(app, engine, workers, recoveries=1, given_up=lambda: None)
    last = [Job(run_id=name, session_id=name, capability="counter.x") for name in ("one", "two")]
    fresh = Job(run_id="fresh", session_id="fresh", capability="counter.x")

    async def take_turns() -> None:
        first, second = (worker._at_its_turn(job, Tries(2, 1)) for job in last)
        async with first:
            waiting = asyncio.create_task(second.__aenter__())
            while not worker._last_tries._waiters:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.01)
            async with worker._at_its_turn(fresh, Tries(1, 0)):
                assert not waiting.done()
            lose(engine, "one", worker.id)  # as if it died now
            lose(engine, "two", worker.id)
        await waiting

    asyncio.run(take_turns())

    assert [engine.tries(job.run_id).losses for job in last] == [1, 0]


@pytest.mark.skipif(not LONG, reason="FAULTS=long: the culprit takes four workers with it")
def test_innocent_runs_are_not_stopped_with_the_culprit(site: Site) -> None:
    culprit = site.say("Die 99")[1]
    others = [site.say("Count to 3")[1] for _ in range(3)]

    wait_over(site, culprit, *others, workers=1, TOOL_SECONDS="1")

    assert site.info(culprit).code == CODE
    assert [site.info(run_id).status for run_id in others] == ["done"] * 3
    losses = [site.info(run_id).losses for run_id in (culprit, *others)]
    print(f"\nworkers lost by the culprit and by the others: {losses}")  # noqa: T201 - the result


def test_a_heartbeat_behind_the_hand_over_does_not_end_the_process(
    app: AgentApplication, engine: DbosEngine, tmp_path: Path
) -> None:
    workers = Workers(f"sqlite:///{tmp_path / 'workers.db'}")
    given_up: list[str] = []
    worker = Worker(app, engine, workers, given_up=lambda: given_up.append("others have its runs"))
    workers.add(worker.id, this_process(), 1, [])

    assert worker.drain() == []
    worker._check_place()  # one that was under way when the worker took itself off the list

    assert given_up == []
    workers.close()
