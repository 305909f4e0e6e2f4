"""Three workers, one of them killed every second, the database restarted: everything ends, nothing twice.

By default a few runs; ``FAULTS=long`` makes 500 of them.
"""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING, NamedTuple

import pytest

from agent_app.errors import StoreUnavailable
from agent_runtime.recovery import MAY_HAVE_RUN

if TYPE_CHECKING:
    from conftest import Site, WorkerProcess

    from agent_app.testing.postgres import EmbeddedPostgres

LONG = os.environ.get("FAULTS") == "long"
RUNS = 500 if LONG else 16
CALLS = 4
KILL_SECONDS = 1.0
RESTARTS = 2 if LONG else 1
SETTINGS = {"TOOL_SECONDS": "0.2", "RECOVERIES": "99"}  # it is not the runs that kill them here
PATIENCE = 1500.0 if LONG else 240.0


class Count(NamedTuple):
    """What became of the runs."""

    runs: int
    calls: int
    effects: int
    uncertain: int
    kills: int
    lost: int
    twice: int


class Killer:
    """Kills a worker now and then, starts another, and restarts the database."""

    def __init__(self, site: Site, postgres: EmbeddedPostgres) -> None:
        self._site = site
        self._postgres = postgres
        self._workers: list[WorkerProcess] = [site.worker(**SETTINGS) for _ in range(3)]
        self._random = random.Random(20)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.kills = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _work(self) -> None:
        restarts = RESTARTS
        while not self._stopped.wait(KILL_SECONDS):
            self._replace_fallen()
            ready = [place for place, worker in enumerate(self._workers) if worker.is_ready]
            if len(ready) < 2:  # a slow machine: one worker to kill and one to continue
                continue
            place = self._random.choice(ready)
            self._workers[place].kill()
            self.kills += 1
            if restarts and self.kills % 3 == 0:
                restarts -= 1
                self._postgres.stop()
                self._postgres.start()
            self._replace_fallen()

    def _replace_fallen(self) -> None:
        """Replace the workers that have ended: killed, or started while the database was away."""
        for place, worker in enumerate(self._workers):
            if worker.has_ended:
                self._workers[place] = self._site.worker_soon(**SETTINGS)


def send(site: Site) -> list[tuple[str, str]]:
    """Send the work; what was acknowledged is what counts."""
    sent: list[tuple[str, str]] = []
    while len(sent) < RUNS:
        try:
            session = site.app.create_session("counter")
            sent.append((session.session_id, site.runs.say(session.session_id, f"Count to {CALLS}")))
        except StoreUnavailable:  # the database is just being restarted: not acknowledged
            threading.Event().wait(0.2)
    return sent


def look(site: Site, sessions: list[str], kills: int) -> Count:
    """Hold what the sessions say against what happened outside."""
    effects = site.effects()
    lost = twice = uncertain = calls = 0
    for session_id in sessions:
        results = [one for one in site.app.load_session(session_id).messages if one.role == "tool"]
        calls += len(results)
        for result in results:
            done = sum(
                session_id in line and line.endswith(f":{result.metadata['tool_call_id']}")
                for line in effects
            )
            is_uncertain = result.content == MAY_HAVE_RUN
            uncertain += is_uncertain
            lost += not done and not is_uncertain
            twice += done > 1 and result.metadata["tool_name"] == "pay"
    return Count(len(sessions), calls, len(effects), uncertain, kills, lost, twice)


def check_events(site: Site, session_id: str) -> None:
    """The log of a session is complete and in order, whichever workers wrote it."""
    events = site.app.store.events(session_id, limit=100_000)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "final"
    texts = [event["text"] for event in events if event["type"] == "final"]
    assert texts[-1].count("|") == CALLS - 1


@pytest.mark.slow
def test_everything_ends_and_nothing_happens_twice(own_site: Site, postgres: EmbeddedPostgres) -> None:
    site = own_site
    killer = Killer(site, postgres)
    killer.start()
    try:
        sent = send(site)
        ended = site.wait_over(*(run_id for _session, run_id in sent), seconds=PATIENCE)
    finally:
        killer.stop()

    assert ended == ["done"] * RUNS
    count = look(site, [session_id for session_id, _run in sent], killer.kills)
    print(f"\n{count}")  # noqa: T201 - the numbers are the result
    assert (count.calls, count.lost, count.twice) == (RUNS * CALLS, 0, 0)
    for session_id, _run in sent:
        check_events(site, session_id)
        assert not site.app.store.inputs(session_id)  # every acknowledged input was answered
