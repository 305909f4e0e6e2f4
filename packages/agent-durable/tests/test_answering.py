"""What is said is answered, whenever it is said, and whatever else goes on in its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_durable.jobs import run_id_for

if TYPE_CHECKING:
    from conftest import Site


def test_a_run_is_made_in_steps_that_are_remembered(shop: Site) -> None:
    session_id, run_id = shop.say("Count to 2")

    assert shop.wait_over(run_id) == ["done"]
    steps = [step.units for step in shop.runs.steps(run_id)]
    assert steps == [("model", "tool note q1c0"), ("model", "tool pay q1c1"), ("model",)]
    assert shop.app.read_messages(session_id)[-1].content == "note 0 | pay 1"
    events = [event["type"] for event in shop.app.store.events(session_id)]
    assert events[-1] == "final"
    assert events.count("tool_call_result") == 2
    assert "kept" not in events


def test_a_run_that_is_cancelled_stops_wherever_it_is(shop: Site) -> None:
    session_id, run_id = shop.say("Count to 100")
    shop.wait(lambda: shop.info(run_id).steps >= 2)

    assert shop.runs.cancel(run_id)

    assert shop.wait_over(run_id) == ["cancelled"]
    shop.wait(lambda: shop.app.store.holder(session_id) is None)
    assert shop.info(run_id).steps < 100
    assert not shop.runs.cancel(run_id)
    assert "Traceback" not in (shop.folder / "errors").read_text()


def test_what_is_known_of_a_run_is_true(shop: Site) -> None:
    session_id, run_id = shop.say("Count to 2")
    assert shop.wait_over(run_id) == ["done"]

    info = shop.info(run_id)

    assert (info.attempts, info.steps, info.last) == (1, 3, "natural_end")
    assert info.text == "note 0 | pay 1"
    assert info.job.session_id == session_id
    assert info.worker == shop.workers.all()[0].id
    assert info in shop.runs.jobs(limit=10)
    assert run_id in [one.job.run_id for one in shop.runs.jobs(status="done", limit=10)]
    assert run_id not in [one.job.run_id for one in shop.runs.jobs(status="failed")]
    assert shop.runs.queue() == (0, 0.0)


def test_a_message_that_interrupts_reaches_the_worker(shop: Site) -> None:
    session_id, run_id = shop.say("Count to 1000")
    shop.wait(lambda: shop.info(run_id).steps >= 2)

    shop.app.enqueue(session_id, "Count to 0", "interrupt")

    assert shop.wait_over(run_id) == ["done"]
    assert shop.app.read_messages(session_id)[-1].content == "nothing"
    assert not shop.app.store.inputs(session_id)


def test_the_runs_of_a_session_are_cancelled_from_elsewhere(shop: Site) -> None:
    session_id, first = shop.say("Count to 1000")
    _session, second = shop.say("Count to 1000", session_id)
    shop.wait(lambda: shop.info(first).steps >= 2)

    assert shop.runs.cancel_session(session_id) == sorted([first, second])

    assert shop.wait_over(first, second) == ["cancelled", "cancelled"]
    shop.wait(lambda: shop.app.store.holder(session_id) is None)
    assert shop.runs.cancel_session(session_id) == []


def test_cancelling_a_run_leaves_those_alone_whose_ids_begin_alike(shop: Site) -> None:
    session_id, _run = shop.say("Count to 0")
    other = shop.runs.go_on(session_id, run_id="same-10")
    one = shop.runs.go_on(session_id, run_id="same-1")

    shop.runs.cancel(one)

    assert shop.wait_over(other) == ["done"]


def test_what_is_said_at_the_very_end_of_a_run_is_answered(shop: Site) -> None:
    session_id, run_id = shop.say("Count to 0")
    runs = [run_id]
    with shop.app.subscribe(session_id) as events:
        for event in events:
            if event["type"] != "final":
                continue
            if len(runs) == 6:
                break
            runs.append(shop.say("Count to 0", session_id)[1])

    assert shop.wait_over(*runs) == ["done"] * 6
    said = [message.role for message in shop.app.read_messages(session_id)]
    assert said.count("user") == 6
    assert said[-1] == "assistant"
    assert not shop.app.store.inputs(session_id)


def test_what_was_kept_and_never_submitted_is_answered_once(shop: Site) -> None:
    session_id = shop.app.create_session("counter").session_id
    waiting = shop.app.enqueue(session_id, "Count to 0", "queue")  # and here its sender died

    assert shop.runs.go_on_with_forgotten(seconds=3600) == []
    [run_id] = shop.runs.go_on_with_forgotten(seconds=0)

    assert run_id == run_id_for(session_id, waiting.seq)
    assert shop.wait_over(run_id) == ["done"]
    assert shop.runs.go_on_with_forgotten(seconds=0) == []


def test_a_new_worker_answers_what_was_forgotten(shop: Site) -> None:
    session_id = shop.app.create_session("counter").session_id
    waiting = shop.app.enqueue(session_id, "Count to 0", "queue")

    shop.worker()

    shop.wait(lambda: shop.runs.job(run_id_for(session_id, waiting.seq)) is not None)
    assert shop.wait_over(run_id_for(session_id, waiting.seq)) == ["done"]


@pytest.mark.parametrize(("one", "other"), [(("a", 11), ("a1", 1)), (("customer-1", 1), ("customer-2", 1))])
def test_no_two_things_have_the_same_run(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert run_id_for(*one) != run_id_for(*other)
    assert run_id_for(*one) == run_id_for(*one)
