"""The database is away for a moment, or for good: a question to the queue waits, or fails with a reason."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_app.errors import StoreUnavailable
from agent_durable import database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Site

    from agent_app.testing.postgres import EmbeddedPostgres


@contextmanager
def restarted_soon(postgres: EmbeddedPostgres) -> Iterator[None]:
    """Stop the database, and start it after a question has met with its absence."""
    postgres.stop()
    again = threading.Timer(1.0, postgres.start)
    again.start()
    try:
        yield
    finally:
        again.join()


def test_a_question_about_a_run_waits_for_a_restart(own_site: Site, postgres: EmbeddedPostgres) -> None:
    _session, run_id = own_site.say("Count to 1")

    with restarted_soon(postgres):
        found = own_site.runs.job(run_id)

    assert found is not None
    assert found.status == "waiting"


def test_a_run_is_submitted_and_cancelled_over_a_restart(own_site: Site, postgres: EmbeddedPostgres) -> None:
    _session, first = own_site.say("Count to 1")
    job = replace(own_site.info(first).job, run_id="run-second")

    with restarted_soon(postgres):
        own_site.engine.submit(job)
    with restarted_soon(postgres):
        assert own_site.engine.cancel("run-second")

    assert own_site.info("run-second").status == "cancelled"


def test_a_run_goes_on_after_a_restart_of_the_database(own_site: Site, postgres: EmbeddedPostgres) -> None:
    own_site.worker(TOOL_SECONDS="0.5")
    _session, run_id = own_site.say("Count to 3")
    own_site.wait(lambda: len(own_site.effects()) == 1)

    with restarted_soon(postgres):
        pass

    assert own_site.wait_over(run_id) == ["done"]


def test_a_database_that_stays_away_is_an_error(
    own_site: Site, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    _session, run_id = own_site.say("Count to 1")
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.0)

    postgres.stop()
    try:
        with pytest.raises(StoreUnavailable, match="is the database running"):
            own_site.runs.job(run_id)
        with pytest.raises(StoreUnavailable, match="is the database running"):
            own_site.engine.queue()
    finally:
        postgres.start()
