"""The database is away for a moment, or for good: whoever asks the queue waits, or is told."""

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
    """Stop the database, and start it when whoever asks has met with its absence."""
    postgres.stop()
    again = threading.Timer(1.0, postgres.start)
    again.start()
    try:
        yield
    finally:
        again.join()


def test_whoever_asks_for_a_run_sits_out_a_restart(site: Site, postgres: EmbeddedPostgres) -> None:
    _session, run_id = site.say("Count to 1")

    with restarted_soon(postgres):
        found = site.runs.job(run_id)

    assert found is not None
    assert found.status == "waiting"


def test_a_run_is_submitted_and_cancelled_over_a_restart(site: Site, postgres: EmbeddedPostgres) -> None:
    _session, first = site.say("Count to 1")
    job = replace(site.info(first).job, run_id="run-second")

    with restarted_soon(postgres):
        site.engine.submit(job)
    with restarted_soon(postgres):
        assert site.engine.cancel("run-second")

    assert site.info("run-second").status == "cancelled"


def test_a_run_goes_on_after_a_restart_of_the_database(site: Site, postgres: EmbeddedPostgres) -> None:
    site.worker(TOOL_SECONDS="0.5")
    _session, run_id = site.say("Count to 3")
    site.wait(lambda: len(site.effects()) == 1)

    with restarted_soon(postgres):
        pass

    assert site.wait_over(run_id) == ["done"]


def test_a_database_that_stays_away_is_told_of(
    site: Site, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    _session, run_id = site.say("Count to 1")
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.0)

    postgres.stop()
    try:
        with pytest.raises(StoreUnavailable, match="is the database there"):
            site.runs.job(run_id)
        with pytest.raises(StoreUnavailable, match="is the database there"):
            site.engine.queue()
    finally:
        postgres.start()
