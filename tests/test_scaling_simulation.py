"""The simulation of many shards agrees with queueing theory, and the documentation with the simulation."""

from __future__ import annotations

import contextlib
import io
import math
import random
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.simulate_scaling import (  # noqa: E402 - a script, found by its path
    DAY,
    HIGHEST_PEAK,
    Costs,
    Load,
    Result,
    Shard,
    Simulation,
    arrivals,
    main,
    percentile,
    rate,
)
from benchmarks.simulate_streams import (  # noqa: E402 - likewise
    PICTURE,
    Costs as StreamCosts,
    main as show_streams,
    simulate,
)

PAGE = ROOT / "docs" / "explanation" / "scaling.md"
SERVICE = Costs(steps=1, wait=1.0, worker=0.0, database=0.0)
"""A run that is one wait: a shard is then a queue before as many places as there is room for runs."""

STORED = Costs(steps=1, wait=0.0, worker=0.0, database=1.0)
"""A run that is one statement: a shard is then a queue before the database."""


def steady(per_second: float, seconds: float = 20_000.0) -> Load:
    return Load(runs_per_day=per_second * DAY, seconds=seconds, warm_up=500.0)


def simulated(costs: Costs, load: Load, *, places: int, cores: int = 1, seed: int = 1) -> Result:
    return Simulation(costs, Shard(workers=1, concurrency=places, cores=cores), load, seed).result()


def mean(values: object) -> float:
    listed = list(values)  # type: ignore[call-overload]
    return math.fsum(listed) / len(listed)


def erlang_c(places: int, busy: float) -> float:
    """Return how likely it is to find all places taken, when so many are taken on average."""
    below = math.fsum(busy**number / math.factorial(number) for number in range(places))
    full = busy**places / math.factorial(places) / (1 - busy / places)
    return full / (below + full)


@pytest.mark.parametrize("busy", [0.3, 0.5, 0.8])
def test_one_database_is_the_queue_of_the_textbook(busy: float) -> None:
    found = simulated(STORED, steady(busy), places=100_000)

    assert mean(found.database_waits) == pytest.approx(busy / (1 - busy), rel=0.15)
    assert found.database == pytest.approx(busy, rel=0.05)


@pytest.mark.parametrize(("places", "busy"), [(2, 1.2), (5, 4.0), (20, 17.0)])
def test_room_for_several_runs_is_the_queue_of_the_textbook(places: int, busy: float) -> None:
    found = simulated(SERVICE, steady(busy, 100_000 / busy), places=places)
    waiting = erlang_c(places, busy)

    assert mean(wait > 0 for wait in found.waits) == pytest.approx(waiting, rel=0.1)
    assert mean(found.waits) == pytest.approx(waiting / (places - busy), rel=0.2)
    assert found.slots == pytest.approx(busy / places, rel=0.05)


def test_the_longest_waits_are_those_of_the_textbook() -> None:
    found = simulated(SERVICE, steady(4.0), places=5)

    # Whoever waits, waits for an exponential time with the rate of the places that are left over.
    expected = math.log(erlang_c(5, 4.0) / 0.01) / (5 - 4.0)
    assert percentile(found.waits, 0.99) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("per_second", [0.5, 5.0, 50.0])
def test_no_run_is_lost_or_made_up(seed: int, per_second: float) -> None:
    found = simulated(Costs(), steady(per_second, 100.0), places=40, cores=2, seed=seed)

    assert found.before + found.arrived == found.finished + found.after
    assert found.arrived > 0


def test_every_part_is_as_busy_as_its_costs_say() -> None:
    costs = Costs(steps=3, wait=0.5, worker=0.04, database=0.02)
    found = Simulation(costs, Shard(workers=4, concurrency=50, cores=2), steady(20.0, 2_000.0)).result()

    assert found.worker == pytest.approx(20 * 3 * 0.04 / 4, rel=0.05)
    assert found.database == pytest.approx(20 * 3 * 0.02 / 2, rel=0.05)


def test_more_workers_are_never_worse() -> None:
    load, costs = steady(10.0, 400.0), Costs(steps=2, wait=1.0, worker=0.01, database=0.01)
    waits = [
        mean(Simulation(costs, Shard(workers=workers, concurrency=4, cores=4), load).result().waits)
        for workers in (4, 5, 6, 8, 12)
    ]

    assert waits == sorted(waits, reverse=True)
    assert waits[0] > 10 * waits[-1]


@pytest.mark.parametrize("peak", [1.0, 1.5, 2.5, HIGHEST_PEAK])
def test_a_day_has_its_peak_at_noon_and_its_mean_all_the_same(peak: float) -> None:
    load = Load(runs_per_day=DAY, peak=peak)
    moments = [rate(load, moment) for moment in range(0, int(DAY), 60)]

    assert mean(moments) == pytest.approx(1.0, rel=1e-3)
    assert max(moments) == rate(load, DAY / 2) == pytest.approx(peak)
    assert min(moments) >= -1e-9


def test_arrivals_follow_the_day() -> None:
    load = Load(runs_per_day=50_000, peak=2.5)
    came = list(arrivals(load, 0.0, DAY, random.Random(3)))
    at_noon = sum(abs(moment - DAY / 2) < 1_800 for moment in came)

    assert len(came) == pytest.approx(50_000, rel=0.02)
    assert at_noon == pytest.approx(50_000 / 24 * 2.5, rel=0.06)
    assert came == sorted(came)


def test_the_same_seed_is_the_same_day() -> None:
    load = steady(5.0, 50.0)

    assert simulated(Costs(), load, places=50) == simulated(Costs(), load, places=50)
    assert simulated(Costs(), load, places=50) != simulated(Costs(), replace(load, seconds=51.0), places=50)


def printed(arguments: list[str]) -> str:
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        main(arguments)
    return screen.getvalue()


def documented() -> list[tuple[str, str]]:
    """Return the commands of the page, and what it says that they print."""
    command = r"^\$ \.venv/bin/python benchmarks/simulate_scaling\.py(.*)\n((?:(?!```).*\n)+)```"
    return re.findall(command, PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("arguments", "output"), documented())
def test_the_page_shows_what_the_simulation_prints(arguments: str, output: str) -> None:
    assert printed(shlex.split(arguments)) == output


def test_the_page_shows_the_simulation() -> None:
    assert len(documented()) >= 2


def test_a_load_that_is_too_much_is_said_to_be() -> None:
    shown = printed(["--most-shards", "1", "--most-workers", "1", "--seconds", "30"])

    assert "1 shards with 1 workers each are not enough" in shown


@pytest.mark.parametrize(("servers", "replicas"), [(10, 0), (100, 0), (100, 1), (100, 4)])
def test_streams_cost_what_arithmetic_says_where_nothing_waits(servers: int, replicas: int) -> None:
    costs, events, cores = StreamCosts(), 1000.0, 8
    found = simulate(servers=servers, replicas=replicas, events=events, cores=cores)
    looks = servers / max(replicas, 1) / 0.03  # the pause, and the rest of a tick of 10 ms
    reading = looks * costs.look + servers / max(replicas, 1) * events * costs.read

    writing = events * costs.write
    primary = writing + (0.0 if replicas else reading)
    assert found.primary == pytest.approx(primary / cores, rel=0.1)
    if replicas:
        assert found.replica == pytest.approx((events * costs.apply + reading) / cores, rel=0.1)


def test_the_page_shows_what_the_simulation_of_streams_prints_and_draws(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = r"^\$ \.venv/bin/python benchmarks/simulate_streams\.py\n((?:(?!```).*\n)+)```"
    (output,) = re.findall(command, PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    monkeypatch.setattr("benchmarks.simulate_streams.PICTURE", tmp_path / "streams.svg")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        show_streams(["--draw"])

    assert said.getvalue() == output
    assert (tmp_path / "streams.svg").read_text() == PICTURE.read_text()
