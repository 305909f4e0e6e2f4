"""Workers that are not dead, only not heard of: stopped for a while, or cut off from the database."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Site

    from agent_app.testing.postgres import EmbeddedPostgres

GIVEN_UP = 75


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    folder = parse_qs(urlsplit(server).query)["host"][0]
    between = Proxy(f"{folder}/.s.PGSQL.5432")
    yield between
    between.close()


def check_once(site: Site, sent: list[tuple[str, str]], calls: int) -> None:
    """Every run is over, with all its calls, and what must not happen twice did not."""
    assert set(site.wait_over(*(run_id for _session, run_id in sent))) == {"done"}
    paid = [line for line in site.effects() if line.startswith("pay")]
    assert len(paid) == len(set(paid))
    for session_id, _run in sent:
        results = [one for one in site.app.load_session(session_id).messages if one.role == "tool"]
        assert len({one.metadata["tool_call_id"] for one in results}) == len(results) == calls
        events = site.app.store.events(session_id, limit=10_000)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def through(proxy: Proxy, site: Site) -> str:
    """Return the address of a site's database through the proxy."""
    return f"postgresql://agent@127.0.0.1:{proxy.port}{urlsplit(site.url).path}"


@pytest.mark.slow
def test_a_worker_that_was_stopped_for_too_long_ends_itself(site: Site) -> None:
    first = site.worker(TOOL_SECONDS="0.3")
    sent = [site.say("Count to 12") for _ in range(3)]
    site.wait(lambda: len(site.effects()) >= 4)
    first.signal(signal.SIGSTOP)
    left = [run_id for _session, run_id in sent if not site.info(run_id).is_over]
    assert left
    second = site.worker()
    site.wait(lambda: [one.id for one in site.workers.all()] == [second.id])

    first.signal(signal.SIGCONT)

    assert first.wait() == GIVEN_UP
    check_once(site, sent, 12)
    assert all(site.info(run_id).attempts >= 2 for run_id in left)


def test_a_row_that_a_suspended_worker_has_locked_blocks_no_one(site: Site) -> None:
    site.workers.add("stopped", "one that was stopped in the middle of a transaction", 1, [])
    site.workers.add("alive", "one that would take it over", 1, [])
    with psycopg.connect(site.url) as connection:
        changed = connection.execute("UPDATE agent_workers SET beat = beat WHERE id = 'stopped'")
        assert changed.rowcount == 1

        with site.workers.taking("stopped") as taken:
            assert not taken
        assert site.workers.beat("alive")

    with site.workers.taking("stopped") as taken:
        assert taken


@pytest.mark.slow
def test_a_worker_that_is_cut_off_does_nothing_that_others_do_again(site: Site, proxy: Proxy) -> None:
    # Long enough for a busy machine, where a worker may be silent for a while that nobody has cut off; and
    # with one slot near by, so that some of the runs go far away.
    silent = {"SILENT_SECONDS": "15"}
    site.worker(**silent, CONCURRENCY="1")
    far = site.worker(**silent, URL=through(proxy, site), TOOL_SECONDS="0.3")
    sent = [site.say("Count to 8") for _ in range(8)]
    site.wait(lambda: any(site.info(run_id).worker == far.id for _session, run_id in sent))
    site.wait(lambda: len(site.effects()) >= 10)

    proxy.cut()
    site.wait(lambda: len(site.workers.all()) == 1)  # the other one has taken what it had
    check_once(site, sent, 8)
    proxy.mend()

    assert far.wait() == GIVEN_UP


@pytest.mark.slow
def test_a_short_cut_is_only_a_disturbance(site: Site, proxy: Proxy) -> None:
    far = site.worker(URL=through(proxy, site), TOOL_SECONDS="0.2", SILENT_SECONDS="60")
    sent = [site.say("Count to 6") for _ in range(3)]
    site.wait(lambda: len(site.effects()) >= 4)

    proxy.cut()
    done = len(site.effects())
    proxy.mend()

    check_once(site, sent, 6)
    assert len(site.effects()) > done
    assert not far.has_ended


def test_a_restart_of_the_database_is_survived_by_workers_and_clients(
    own_site: Site, postgres: EmbeddedPostgres
) -> None:
    site = own_site
    process = site.worker(TOOL_SECONDS="0.2")
    before = site.say("Count to 6")
    site.wait(lambda: len(site.effects()) >= 2)

    postgres.stop()
    postgres.start()

    after = site.say("Count to 6")
    check_once(site, [before, after], 6)
    assert not process.has_ended
