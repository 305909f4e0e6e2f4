"""How many databases and workers a load needs: a simulation driven by measured costs.

Sessions are spread over shards, each with one database and workers of its own. A run waits until one of its
shard's workers has room; then it makes its steps: a wait for the model or a tool, the worker's processor,
the database's. Arrivals are random and have a daily peak, and the busiest minutes of the day are simulated.

One shard is simulated: sessions fall on shards by their hash, so all shards have the same kind of arrivals.
Deliberately kept simple: any free worker takes the next run at once, and all waits are exponential.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

DAY = 86_400.0
HIGHEST_PEAK = math.pi
"""A day of which half is night, with nobody there at all."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a run takes.

    The costs by default are about those that `bench_scale.py` measured with one to four worker processes on
    two cores, see docs/explanation/performance.md. The wait is an assumption: three seconds for each of four
    model calls, one for each of three tool calls.

    Attributes:
        steps: Model calls and tool calls of a run.
        wait: Seconds that a step waits for the model or the tool; nobody's processor is needed then.
        worker: Seconds of a worker's processor for a step.
        database: Seconds of the database's processor for a step.
    """

    steps: int = 7
    wait: float = 2.1
    worker: float = 0.025
    database: float = 0.0085


@dataclass(frozen=True, kw_only=True)
class Shard:
    """What serves a part of the sessions.

    Attributes:
        workers: Worker processes; each has one processor.
        concurrency: Runs that a worker has at a time.
        cores: Processors of the database.
    """

    workers: int
    concurrency: int
    cores: int


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a shard is given.

    Attributes:
        runs_per_day: How many runs begin in a day.
        peak: How much more than on average begins at the busiest moment.
        seconds: How long the busiest part of the day is watched.
        warm_up: Seconds before that, in which queues fill.
    """

    runs_per_day: float
    peak: float = 1.0
    seconds: float = 600.0
    warm_up: float = 120.0


class Result(NamedTuple):
    """What was seen while it was watched.

    Attributes:
        before: Runs that were under way or waiting at the beginning.
        after: Those at the end.
        slots: The part of all room for runs that was taken; likewise the processors of workers and database.
        waits: Seconds that each run waited for room.
        database_waits: Seconds that each step waited for the database.
    """

    before: int
    arrived: int
    finished: int
    after: int
    slots: float
    worker: float
    database: float
    waits: Sequence[float]
    database_waits: Sequence[float]


def rate(load: Load, moment: float) -> float:
    """Return the arrivals per second at a moment of the day, whose busiest is noon.

    By day it is half a sine, by night an even rest; the mean over the day is what it has to be.
    """
    night = (1 - load.peak / math.pi) / (1 - 1 / math.pi)
    day = max(0.0, math.cos(2 * math.pi * (moment / DAY - 0.5)))
    return load.runs_per_day / DAY * (night + (load.peak - night) * day)


def arrivals(load: Load, begin: float, end: float, chance: random.Random) -> Iterator[float]:
    """Yield moments of a Poisson process with a changing rate: one of the highest rate, thinned."""
    highest = load.runs_per_day / DAY * load.peak
    moment = begin
    while (moment := moment + chance.expovariate(highest)) < end:
        if chance.random() * highest <= rate(load, moment):
            yield moment


# The machinery: processes that hold for a while and stand in queues

Process: TypeAlias = "Generator[float | Station, None, None]"


class Station:
    """So many places, and a queue before them."""

    def __init__(self, world: World, places: float) -> None:
        self._world = world
        self._places = places
        self._taken = 0
        self._queue: deque[tuple[float, Process]] = deque()
        self._since = 0.0
        self._busy = 0.0
        self.waits: list[float] = []

    def enter(self, process: Process) -> bool:
        """Take a place for a process, and say so; if there is none, it goes on when there is."""
        if self._taken < self._places:
            self._take(self._world.now)
            return True
        self._queue.append((self._world.now, process))
        return False

    def leave(self) -> None:
        """Give a place back, to whoever has waited longest."""
        self._count(-1)
        if self._queue:
            came, process = self._queue.popleft()
            self._take(came)
            self._world.after(0.0, process)

    def watch(self) -> None:
        """Forget what was before."""
        self._count(0)
        self._busy = 0.0
        self.waits.clear()

    def utilisation(self, seconds: float) -> float:
        """Return which part of the places was taken, on average over so many seconds."""
        self._count(0)
        return self._busy / seconds / self._places if self._places < math.inf else 0.0

    def _take(self, came: float) -> None:
        self._count(1)
        self.waits.append(self._world.now - came)

    def _count(self, more: int) -> None:
        now = self._world.now
        self._busy += self._taken * (now - self._since)
        self._since = now
        self._taken += more


class World:
    """Processes in the order of their time."""

    def __init__(self, begin: float) -> None:
        self.now = begin
        self._number = 0
        self._due: list[tuple[float, int, Process]] = []

    def after(self, seconds: float, process: Process) -> None:
        """Let a process go on after a while."""
        self._number += 1
        heapq.heappush(self._due, (self.now + seconds, self._number, process))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._due and self._due[0][0] <= until:
            self.now, _, process = heapq.heappop(self._due)
            self._go_on(process)
        self.now = until

    def _go_on(self, process: Process) -> None:
        for wanted in process:
            if not isinstance(wanted, Station):
                self.after(wanted, process)
                return
            if not wanted.enter(process):
                return


class Simulation:
    """One shard under load, at the busiest time of the day."""

    def __init__(self, costs: Costs, shard: Shard, load: Load, seed: int = 1) -> None:
        self._costs = costs
        self._load = load
        self._chance = random.Random(seed)
        self._watched = (DAY - load.seconds) / 2
        self._world = World(self._watched - load.warm_up)
        self._slots = Station(self._world, shard.workers * shard.concurrency)
        self._worker = Station(self._world, shard.workers)
        self._database = Station(self._world, shard.cores)
        self._arrived = self._finished = 0

    def result(self) -> Result:
        """Let time pass, and return what was seen in the watched part of it."""
        end = self._watched + self._load.seconds
        stations = self._slots, self._worker, self._database
        self._world.after(0.0, self._arriving(end))
        self._world.run(self._watched)
        before = self._arrived, self._finished
        for station in stations:
            station.watch()
        self._world.run(end)
        slots, worker, database = (station.utilisation(self._load.seconds) for station in stations)
        return Result(
            before=before[0] - before[1],
            arrived=self._arrived - before[0],
            finished=self._finished - before[1],
            after=self._arrived - self._finished,
            slots=slots,
            worker=worker,
            database=database,
            waits=self._slots.waits,
            database_waits=self._database.waits,
        )

    def _arriving(self, end: float) -> Process:
        for moment in arrivals(self._load, self._world.now, end, self._chance):
            yield moment - self._world.now
            self._arrived += 1
            self._world.after(0.0, self._run())

    def _run(self) -> Process:
        costs = self._costs
        yield self._slots
        for _ in range(costs.steps):
            yield self._time(costs.wait)
            for station, seconds in ((self._worker, costs.worker), (self._database, costs.database)):
                if seconds:
                    yield station
                    yield self._time(seconds)
                    station.leave()
        self._slots.leave()
        self._finished += 1

    def _time(self, mean: float) -> float:
        return self._chance.expovariate(1 / mean) if mean else 0.0


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which a part of the values is; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


# The question: how few are enough


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked.

    Attributes:
        patience: The highest 99th percentile of the wait in the queue, in seconds.
        room: The part of the database's processors that may be busy at the peak.
        most_workers: How many workers a database has connections for.
    """

    costs: Costs
    load: Load
    concurrency: int
    cores: int
    patience: float
    room: float
    most_workers: int
    seed: int

    @cache  # noqa: B019 - a command asks a few questions and ends
    def ask(self, shards: int, workers: int) -> Result:
        """Simulate one of so many shards, with so many workers each."""
        shard = Shard(workers=workers, concurrency=self.concurrency, cores=self.cores)
        load = replace(self.load, runs_per_day=self.load.runs_per_day / shards)
        return Simulation(self.costs, shard, load, self.seed).result()

    def is_enough(self, result: Result) -> bool:
        """Say whether nobody waits for too long, and the database has room left."""
        return percentile(result.waits, 0.99) <= self.patience and result.database <= self.room


def offered(question: Question) -> float:
    """Return how many runs are under way at the peak if none of them waits for room (Little's law)."""
    costs, load = question.costs, question.load
    return load.runs_per_day / DAY * load.peak * costs.steps * (costs.wait + costs.worker + costs.database)


def fewest_workers(question: Question, shards: int) -> int | None:
    """Return the smallest number of workers that is enough for each of so many shards.

    None if a database has not so many connections. Fewer than there are runs under way cannot be enough.
    """
    least = math.ceil(offered(question) / shards / question.concurrency)
    for workers in range(max(1, least), question.most_workers + 1):
        if question.is_enough(question.ask(shards, workers)):
            return workers
    return None


def fewest_shards(question: Question, most: int) -> int | None:
    """Return the smallest number of shards that is enough when each has all the workers it can."""
    least = math.ceil(offered(question) / (question.most_workers * question.concurrency))
    for shards in range(max(1, least), most + 1):
        if question.is_enough(question.ask(shards, question.most_workers)):
            return shards
    return None


# The command


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the load comes to, and how few shards and workers are enough for it."""
    question, most = read(arguments)
    load, costs = question.load, question.costs
    mean = load.runs_per_day / DAY
    for what, each in (("runs", mean), ("steps", mean * costs.steps)):
        print(f"{what} per second: {each:.0f} on average, {each * load.peak:.0f} at the peak")
    print(f"runs under way at the peak: {offered(question):.0f}")
    print()
    print("shards  workers each  slots busy  worker CPU  database CPU  wait p50  wait p99")
    shards = fewest_shards(question, most)
    if shards is None:
        print(f"{most} shards with {question.most_workers} workers each are not enough")
        return
    for number in (shards, 2 * shards):
        show(question, number)


def show(question: Question, shards: int) -> None:
    """Print the lines around the smallest number of workers."""
    enough = fewest_workers(question, shards)
    if enough is None:
        return
    for workers in sorted({max(1, enough - 1), enough}):
        one = question.ask(shards, workers)
        mark = "  enough" if question.is_enough(one) else "  too few"
        print(
            f"{shards:>6}  {workers:>12}  {one.slots:>10.0%}  {one.worker:>10.0%}  {one.database:>12.0%}"
            f"  {percentile(one.waits, 0.5):>6.2f} s  {percentile(one.waits, 0.99):>6.2f} s{mark}"
        )


def read(arguments: Sequence[str] | None) -> tuple[Question, int]:
    """Read the command line."""
    usual = Costs()
    parser = argparse.ArgumentParser(description="How many databases and workers a load needs.")
    parser.add_argument("--sessions", type=float, default=1e6, help="a day")
    parser.add_argument("--runs", type=float, default=4.0, help="of a session")
    parser.add_argument("--peak", type=float, default=2.5, help="times the mean, 1 to 3.14")
    parser.add_argument("--steps", type=int, default=usual.steps, help="of a run")
    parser.add_argument("--wait", type=float, default=usual.wait, help="seconds of a step, for model or tool")
    parser.add_argument("--worker-ms", type=float, default=usual.worker * 1e3, help="CPU of a step")
    parser.add_argument("--database-ms", type=float, default=usual.database * 1e3, help="CPU of a step")
    parser.add_argument("--concurrency", type=int, default=40, help="runs of a worker at a time")
    parser.add_argument("--cores", type=int, default=8, help="of a database")
    parser.add_argument("--most-workers", type=int, default=13, help="that a database has connections for")
    parser.add_argument("--most-shards", type=int, default=64)
    parser.add_argument("--patience", type=float, default=1.0, help="seconds, 99th percentile")
    parser.add_argument("--room", type=float, default=0.6, help="of the database's CPU that may be busy")
    parser.add_argument("--seconds", type=float, default=180.0, help="of the peak that are simulated")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if not 1 <= given.peak <= HIGHEST_PEAK:
        parser.error("--peak must be between 1 and 3.14")
    costs = Costs(
        steps=given.steps, wait=given.wait, worker=given.worker_ms / 1e3, database=given.database_ms / 1e3
    )
    question = Question(
        costs=costs,
        load=Load(runs_per_day=given.sessions * given.runs, peak=given.peak, seconds=given.seconds),
        concurrency=given.concurrency,
        cores=given.cores,
        patience=given.patience,
        room=given.room,
        most_workers=given.most_workers,
        seed=given.seed,
    )
    return question, given.most_shards


if __name__ == "__main__":
    main()
