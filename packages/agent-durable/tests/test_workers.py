"""Workers as processes: they share the work, take what the dead have left, and hand over when asked to."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site


def test_another_worker_continues_where_one_was_killed(site: Site) -> None:
    first = site.worker(TOOL_SECONDS="0.5")
    session_id, run_id = site.say("Count to 4")
    site.wait(lambda: len(site.effects()) >= 2)
    first.kill()

    site.worker()

    assert site.wait_over(run_id) == ["done"]
    said = str(site.app.read_messages(session_id)[-1].content)
    done = [line.split()[2] for line in site.effects()]
    assert len(set(done)) >= 3
    paid = [line for line in site.effects() if line.startswith("pay")]
    assert len(paid) == len(set(paid))  # what must not run twice did not
    assert len(said.split(" | ")) == 4


def test_a_worker_that_is_asked_to_stop_hands_over(site: Site) -> None:
    first = site.worker(TOOL_SECONDS="0.3")
    sent = [site.say("Count to 6") for _ in range(3)]
    site.wait(lambda: len(site.effects()) >= 3)

    handed = first.stop().split()[2:]

    assert handed
    second = site.worker()
    assert site.wait_over(*(run_id for _session, run_id in sent)) == ["done"] * 3
    assert len(site.effects()) == len(set(site.effects())) == 18  # nothing twice, nothing left out
    assert not second.has_ended
    assert [worker.id for worker in site.workers.all()] == [second.id]


def test_a_run_that_waits_for_a_person_holds_no_worker(site: Site) -> None:
    worker = site.worker(ASKS="yes")
    asking = type(site)(site.url, site.folder, permissions={"ask": ["pay"], "allow": ["note"]})
    session = asking.app.create_session("counter")
    run_id = asking.runs.say(session.session_id, "Count to 2")
    assert asking.wait_over(run_id) == ["suspended"]
    worker.kill()  # no worker is needed while it waits

    [question] = asking.app.approvals(session.session_id)
    site.worker(ASKS="yes")
    going_on = asking.runs.decide(question.id, True)

    assert asking.wait_over(going_on) == ["done"]
    assert asking.app.read_messages(session.session_id)[-1].content == "note 0 | pay 1"
    asking.close()


def test_a_decision_whose_maker_died_is_acted_on(site: Site) -> None:
    worker = site.worker(ASKS="yes")
    asking = type(site)(site.url, site.folder, permissions={"ask": ["pay"], "allow": ["note"]})
    session_id = asking.app.create_session("counter").session_id
    assert asking.wait_over(asking.runs.say(session_id, "Count to 2", tenant="ada")) == ["suspended"]
    [question] = asking.app.approvals(session_id)
    assert asking.runs.go_on_with_forgotten(seconds=0) == []  # nothing is decided yet

    worker.kill()  # it would be quicker than this test
    asking.app.decide(question.id, True)  # and here the decider died
    [run_id] = asking.runs.go_on_with_forgotten(seconds=0)

    site.worker(ASKS="yes")
    assert asking.wait_over(run_id) == ["done"]
    assert asking.info(run_id).job.tenant == "ada"
    assert asking.app.read_messages(session_id)[-1].content == "note 0 | pay 1"
    assert asking.runs.go_on_with_forgotten(seconds=0) == []
    asking.close()


def test_runs_that_are_over_are_forgotten_and_others_are_not(site: Site) -> None:
    session_id, waiting = site.say("Count to 1")
    _session, over = site.say("Count to 1", tenant="ada")
    site.runs.cancel(over)

    assert site.engine.forget(before=time.time() - 60) == 0
    assert site.engine.forget(before=time.time() + 1) == 1

    assert site.runs.job(over) is None
    assert site.info(waiting).status == "waiting"
    assert site.app.load_session(session_id).session_id == session_id


def test_a_worker_of_another_version_leaves_the_run_alone(site: Site) -> None:
    site.worker("2")
    _session, run_id = site.say("Count to 1")
    other = type(site)(site.url, site.folder, version="2")
    theirs = other.app.create_session("counter")

    mine = other.runs.say(theirs.session_id, "Count to 1")

    assert other.wait_over(mine) == ["done"]
    info = site.runs.job(run_id)
    assert info is not None
    assert info.status == "waiting"
    site.worker("1")
    assert site.wait_over(run_id) == ["done"]
    other.close()


def run_with_two_effects(site: Site) -> str:
    """Return a run of limited time that is still at work; a busy machine may need more time for so much."""
    for seconds in (4, 16, 64):
        _session, run_id = site.say("Count to 1000", deadline=time.time() + seconds)
        site.wait(partial(has_begun_or_ended, site, run_id))
        if site.info(run_id).status != "done":
            return run_id
    pytest.fail("two tools took longer than a minute")


def has_begun_or_ended(site: Site, run_id: str) -> bool:
    return len(site.effects()) >= 2 or site.info(run_id).status == "done"


@pytest.mark.slow
def test_a_budget_holds_across_workers(site: Site) -> None:
    first = site.worker(TOOL_SECONDS="0.3")
    run_id = run_with_two_effects(site)
    first.kill()
    site.worker(TOOL_SECONDS="0.3")

    assert site.wait_over(run_id) == ["done"]
    [last] = [step for step in site.runs.steps(run_id) if step.over]
    assert last.code == "timeout"
