"""Workers that are not dead, only not heard of: stopped for a while, or cut off from the database."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Site, WorkerProcess

    from agent_app.testing.postgres import EmbeddedPostgres

GIVEN_UP = 75


@pytest.fixture
def proxy(postgres: EmbeddedPostgres) -> Iterator[Proxy]:
    folder = parse_qs(urlsplit(postgres.url).query)["host"][0]
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


def wait_end(process: WorkerProcess) -> int:
    return process.process.wait(300)


def test_a_worker_that_was_stopped_for_too_long_ends_itself(site: Site) -> None:
    first = site.worker(TOOL_SECONDS="0.3")
    sent = [site.say("Count to 6") for _ in range(3)]
    site.wait(lambda: len(site.effects()) >= 4)
    first.process.send_signal(signal.SIGSTOP)
    second = site.worker()
    site.wait(lambda: [one.id for one in site.workers.all()] == [second.lines[0].split()[1]])

    first.process.send_signal(signal.SIGCONT)

    assert wait_end(first) == GIVEN_UP
    check_once(site, sent, 6)
    assert min(site.info(run_id).attempts for _session, run_id in sent) >= 2


def test_a_worker_that_is_cut_off_does_nothing_that_others_do_again(site: Site, proxy: Proxy) -> None:
    site.worker()
    far = site.worker(URL=f"postgresql://agent@127.0.0.1:{proxy.port}/postgres", TOOL_SECONDS="0.3")
    sent = [site.say("Count to 8") for _ in range(8)]
    site.wait(lambda: any(site.info(run_id).worker == far.lines[0].split()[1] for _session, run_id in sent))
    site.wait(lambda: len(site.effects()) >= 10)

    proxy.cut()
    site.wait(lambda: len(site.workers.all()) == 1)  # the other one has taken what it had
    check_once(site, sent, 8)
    proxy.mend()

    assert wait_end(far) == GIVEN_UP


def test_a_short_cut_is_only_a_disturbance(site: Site, proxy: Proxy) -> None:
    far = site.worker(
        URL=f"postgresql://agent@127.0.0.1:{proxy.port}/postgres", TOOL_SECONDS="0.2", SILENT_SECONDS="60"
    )
    sent = [site.say("Count to 6") for _ in range(3)]
    site.wait(lambda: len(site.effects()) >= 4)

    proxy.cut()
    done = len(site.effects())
    proxy.mend()

    check_once(site, sent, 6)
    assert len(site.effects()) > done
    assert far.process.poll() is None


def test_a_restart_of_the_database_is_survived_by_workers_and_clients(
    site: Site, postgres: EmbeddedPostgres
) -> None:
    process = site.worker(TOOL_SECONDS="0.2")
    before = site.say("Count to 6")
    site.wait(lambda: len(site.effects()) >= 2)

    postgres.stop()
    postgres.start()

    after = site.say("Count to 6")
    check_once(site, [before, after], 6)
    assert process.process.poll() is None
