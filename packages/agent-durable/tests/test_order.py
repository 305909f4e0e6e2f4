"""Which runs begin, and in which order: limits of tenants and providers, and priorities."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Opening, Site


AN_HOUR = 3600.0


def test_no_more_runs_begin_than_tenant_and_provider_may(
    opening: Opening,
) -> None:
    limits = {"tenant:slow": (2, AN_HOUR), "provider:scripted": (4, AN_HOUR)}
    with opening(limits=limits) as site:
        site.worker()
        slow = [site.say("Count to 0", tenant="slow")[1] for _ in range(5)]
        site.wait(lambda: statuses(site, slow)["done"] == 2)

        others = [site.say("Count to 0", tenant="other")[1] for _ in range(3)]

        site.wait(lambda: statuses(site, others)["done"] == 2)
        assert statuses(site, slow) == {"done": 2, "waiting": 3}
        assert statuses(site, others) == {"done": 2, "waiting": 1}
        assert site.runs.queue().waiting == 4
        waiting = next(run_id for run_id in slow if site.info(run_id).status == "waiting")
        assert site.runs.cancel(waiting)
        assert site.info(waiting).status == "cancelled"
        assert site.runs.queue().waiting == 3


def statuses(site: Site, run_ids: list[str]) -> Counter[str]:
    return Counter(site.info(run_id).status for run_id in run_ids)


def test_the_smaller_its_priority_the_sooner_a_run_begins(site: Site) -> None:
    site.worker(CONCURRENCY="1", TOOL_SECONDS="0.3")
    busy, first = site.say("Count to 10")
    site.wait(lambda: bool(site.effects()))
    sent = {priority: site.say("Count to 1", priority=priority) for priority in (7, 3, 9, 0, 5)}

    assert set(site.wait_over(first, *(run_id for _session, run_id in sent.values()))) == {"done"}

    sessions = list(dict.fromkeys(line.split()[1] for line in site.effects()))
    assert sessions == [busy, *(sent[priority][0] for priority in (0, 3, 5, 7, 9))]
