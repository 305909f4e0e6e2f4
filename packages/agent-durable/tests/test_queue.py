"""The queue: how many may wait in it, who can begin with what waits, and where a run is tried again."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from program import application

from agent_core import AgentError
from agent_durable import Bounds, DurableRuns, JobInfo, QueueFull, dbos_tables, open_engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Opening, Site

    from agent_app import AgentApplication
    from agent_durable.dbos_engine import DbosEngine
    from agent_durable.workers import Workers


class Place:
    """An application with its queue, both in files, and a list of workers on which tests put some."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite:///{folder / 'sessions.db'}"
        self.app: AgentApplication = application(url)
        self.engine: DbosEngine
        self.workers: Workers
        self.engine, self.workers = open_engine(url)
        self.runs = DurableRuns(self.app, self.engine, self.workers)

    def bound(self, **most: int) -> None:
        dbos_tables.set_bounds(self.engine._database(), most)

    def say(self, text: str = "Count to 0", **job: object) -> tuple[str, str]:
        session_id = self.app.create_session("counter").session_id
        return session_id, self.runs.say(session_id, text, **job)

    def info(self, run_id: str) -> JobInfo:
        found = self.runs.job(run_id)
        assert found is not None
        return found

    def close(self) -> None:
        self.engine.stop()
        self.workers.close()
        self.app.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


def test_a_full_queue_refuses_and_nothing_is_written(place: Place) -> None:
    place.bound(total=2)
    first, second = place.say(), place.say(tenant="ada", priority=3)
    session_id = place.app.create_session("counter").session_id

    with pytest.raises(QueueFull) as refused:
        place.runs.say(session_id, "Count to 0")

    assert (refused.value.queue, refused.value.bound, refused.value.waiting) == ("all runs", 2, 2)
    for words in ("all runs is full: 2 wait, and at most 2 may", "start more workers", "--most-waiting"):
        assert words in str(refused.value)
    assert not place.app.store.inputs(session_id)
    assert not place.app.read_messages(session_id)
    assert place.runs.queue().waiting == 2
    assert place.runs.cancel(first[1])
    place.runs.say(session_id, "Count to 0")
    assert len(place.app.store.inputs(session_id)) == 1
    assert place.info(second[1]).status == "waiting"


def test_one_tenant_cannot_fill_the_queue_for_all(place: Place) -> None:
    place.bound(total=5, tenant=1)
    place.say(tenant="ada")

    with pytest.raises(QueueFull, match="tenant:ada is full: 1 wait, and at most 1 may"):
        place.say(tenant="ada")

    place.say(tenant="bob")
    place.say()
    place.say()  # runs without a tenant count only in the total


def test_a_run_that_was_submitted_may_be_submitted_again_though_the_queue_is_full(place: Place) -> None:
    session_id, run_id = place.say()
    place.bound(total=1)

    assert place.runs.go_on(session_id, run_id=run_id) == run_id

    with pytest.raises(QueueFull):
        place.runs.go_on(session_id)
    assert place.runs.cancel(run_id)
    over = place.info(run_id)
    place.say()
    with pytest.raises(QueueFull):
        place.runs.retry(over)


def test_what_was_forgotten_waits_until_there_is_room(place: Place) -> None:
    _session, run_id = place.say()
    session_id = place.app.create_session("counter").session_id
    place.app.enqueue(session_id, "Count to 0", "queue")
    place.bound(total=1)

    assert place.runs.go_on_with_forgotten(seconds=0) == []
    assert len(place.app.store.inputs(session_id)) == 1

    place.runs.cancel(run_id)
    assert len(place.runs.go_on_with_forgotten(seconds=0)) == 1


def test_the_runs_of_a_session_are_found_in_a_file_as_well(place: Place) -> None:
    session_id, first = place.say()
    second = place.runs.say(session_id, "Count to 0")
    place.say()

    last = place.engine.last_job(session_id)

    assert last is not None
    assert last.job.session_id == session_id
    assert place.runs.cancel_session(session_id) == sorted([first, second])
    assert place.runs.cancel_session(session_id) == []


def test_a_message_for_an_agent_that_cannot_run_is_not_kept(place: Place) -> None:
    session_id = place.app.create_session("counter").session_id
    place.app.store.assign(session_id, "nobody")

    with pytest.raises(AgentError):
        place.runs.say(session_id, "Count to 0")

    assert not place.app.store.inputs(session_id)


def test_bounds_are_those_that_a_worker_has_brought(place: Place) -> None:
    assert place.engine.bounds() == Bounds() == (10_000, 2_500)
    place.bound(total=7)
    assert place.engine.bounds() == (7, 2_500)
    place.bound(total=9, tenant=3)
    assert place.engine.bounds() == (9, 3)


def test_a_run_that_no_worker_can_begin_says_so(place: Place) -> None:
    _session, run_id = place.say()
    needed = place.info(run_id).job.capability
    assert place.info(run_id).obstacle == f"no worker has {needed}: none is at work"

    place.workers.add("other", "other", 1, ["helper.1"])
    assert place.info(run_id).obstacle == f"no worker has {needed}: those at work have helper.1"
    place.workers.add("older", "older", 1, ["counter.1"])
    assert "have counter.1, another version of the agent" in place.runs.jobs()[0].obstacle

    place.workers.add("able", "able", 1, [needed])
    assert place.info(run_id).obstacle == ""
    place.workers.beat("able", draining=True)
    assert place.info(run_id).obstacle
    place.runs.cancel(run_id)
    assert place.info(run_id).obstacle == ""


def test_a_run_is_tried_again_where_some_worker_is(place: Place) -> None:
    session_id, run_id = place.say(deadline=time.time() + 60)
    place.runs.cancel(run_id)
    own = place.info(run_id).job.capability
    before = replace(
        place.info(run_id),
        job=replace(place.info(run_id).job, capability="counter.before", submitted=100.0, deadline=160.0),
    )

    def retried() -> str:
        again = place.info(place.runs.retry(before))
        place.runs.cancel(again.job.run_id)
        assert again.job.session_id == session_id
        assert again.job.deadline == pytest.approx(again.job.submitted + 60)
        return again.job.capability

    assert retried() == own  # no worker is there
    place.workers.add("w1", "w1", 1, ["counter.old", "helper.x"])
    assert retried() == "counter.old"
    place.workers.add("w2", "w2", 1, ["counter.new"])
    assert retried() == "counter.new"
    place.workers.add("w3", "w3", 1, ["counter.before"])
    assert retried() == "counter.before"
    place.workers.add("w4", "w4", 1, [own])
    assert retried() == own


def test_queues_of_versions_that_no_worker_has_are_dropped(place: Place) -> None:
    _session, run_id = place.say()
    needed = place.info(run_id).job.capability
    for capability in (needed, "counter.old", "counter.alive"):
        place.engine._open().register_queue(f"agent:{capability}")

    assert place.engine.drop_queues(["counter.alive"]) == 1

    left = {queue.name for queue in place.engine._open().list_queues()}
    assert {f"agent:{needed}", "agent:counter.alive"} <= left
    assert "agent:counter.old" not in left


def test_what_waits_for_a_limit_is_passed_on_by_workers_that_came_before_it(
    opening: Opening,
) -> None:
    with opening() as site:
        start_limit_and_leave(site)

        _session, run_id = site.say("Count to 0", tenant="late")

        assert site.wait_over(run_id) == ["done"]


def start_limit_and_leave(site: Site) -> None:
    """Start a worker, then another one that brings a limit, and stop that one."""
    first = site.worker_soon()
    site.limits = {"tenant:late": (10, 1.0)}
    second = site.worker_soon()
    first.wait_for("ready")
    second.wait_for("ready")
    second.stop()
