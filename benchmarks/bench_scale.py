"""What durable runs cost beside plain ones, and how far more workers help: one machine, one PostgreSQL.

A step is one model call or one tool call, done and stored. The model answers at once, so what is measured is
the platform and the database. DBOS's own empty step in the same database is the floor. The ratios are inside
one run and mean something on any machine; milliseconds are those of this one. `--quick` takes under a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.costs import Cost, Meter, Server, median
from benchmarks.scale_program import AT_ONCE, SECONDS, SLOTS, WorkerProcess, application
from dbos import DBOS

from agent_app.testing.postgres import EmbeddedPostgres
from agent_durable import DurableRuns, Worker, open_engine

if TYPE_CHECKING:
    from collections.abc import Callable

WORKERS = (1, 2, 4)
PATIENCE = 240.0


@dataclass(frozen=True)
class Plan:
    """How much is measured: rounds of long runs in one process, then short runs for the worker processes."""

    rounds: int
    calls: int
    runs: int
    run_calls: int
    slow_runs: int


QUICK = Plan(rounds=2, calls=8, runs=8, run_calls=3, slow_runs=100)
WHOLE = Plan(
    rounds=9, calls=14, runs=60, run_calls=3, slow_runs=300
)  # an agent makes 16 model calls at most by default


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<46}{figure:>12}  {note}", flush=True)


# (a) and (b): plain runs, durable runs and empty workflows, one at a time in one process


@DBOS.workflow(name="empty")
async def empty(steps: int) -> None:
    for number in range(steps):
        await DBOS.run_step_async({"name": f"step {number}"}, nothing)


async def nothing() -> dict[str, Any]:
    return {}


class InOneProcess:
    """Runs of the three kinds, in turn, so that whatever disturbs one disturbs the others as well.

    Of a run, what lies between its first and its last model call is measured: two steps for each tool call.
    """

    def __init__(self, url: str, plan: Plan, meter: Meter) -> None:
        self._plan = plan
        self._meter = meter
        self._kind = ""
        self._app = application(url, self._mark)
        self._engine, self._workers = open_engine(url)
        self._runs = DurableRuns(self._app, self._engine)
        self._counted = threading.Event()

    def measure(self) -> None:
        worker = Worker(self._app, self._engine, self._workers, concurrency=1, given_up=lambda: os._exit(75))
        worker.start()
        try:
            asyncio.run(self._rounds())
        finally:
            worker.drain(seconds=10)
            self._workers.close()
            self._app.close()

    async def _rounds(self) -> None:
        for number in range(self._plan.rounds + 1):
            await self._empty_runs()
            await self._plain_run()
            await asyncio.to_thread(self._durable_run)
            if number == 0:
                self._meter.costs.clear()  # the first round opens connections

    async def _empty_runs(self) -> None:
        self._meter.begin()
        for _ in range(10):
            await empty(0)
        self._meter.end("empty workflow", 10)
        self._meter.begin()
        await empty(2 * self._plan.calls)
        self._meter.end("empty step", 2 * self._plan.calls)

    async def _plain_run(self) -> None:
        self._kind = "plain step"
        session = await self._app.create_session_async()
        async for _event in self._app.chat_async(session.session_id, f"Count to {self._plan.calls}"):
            pass

    def _durable_run(self) -> None:
        self._kind = "durable step"
        self._counted.clear()
        run_id = self._runs.say(self._app.create_session().session_id, f"Count to {self._plan.calls}")
        assert self._counted.wait(PATIENCE), "the durable run did not come to its end"
        wait_until(lambda: self._is_done(run_id))

    def _is_done(self, run_id: str) -> bool:
        info = self._runs.job(run_id)
        return info is not None and info.status == "done"

    def _mark(self, done: int, wanted: int) -> None:
        if done == 0:
            self._meter.begin()
        elif done == wanted:
            self._meter.end(self._kind, 2 * wanted)
            self._counted.set()


# (c): durable runs, by worker processes


@dataclass(frozen=True)
class Throughput:
    """How fast worker processes were, and what a run took of everybody's processors."""

    rate: float
    workers_cpu: float
    server_cpu: float
    grown: dict[str, float]
    connections: int


class ByWorkers:
    """Puts runs into the queue, lets worker processes begin, and waits until the last run is over."""

    def __init__(self, url: str, plan: Plan, server: Server) -> None:
        self._url = url
        self._plan = plan
        self._server = server

    def measure(self, count: int, *, is_slow: bool = False) -> Throughput:
        first = count * (SLOTS if is_slow else AT_ONCE)  # runs that open connections are not measured
        steps = self._steps()
        self._send(first + self._plan.runs)
        workers = [WorkerProcess(self._url, is_slow=is_slow) for _ in range(count)]
        try:
            for worker in workers:
                worker.wait_ready()
            for worker in workers:
                worker.go()
            self._wait(lambda: self._left() <= self._plan.runs, workers)
            return self._timed(workers, steps, first + self._plan.runs)
        finally:
            for worker in workers:
                worker.stop()

    def _timed(self, workers: list[WorkerProcess], steps: int, sent: int) -> Throughput:
        """Measure until the last run is over; some are half done when it begins, so steps are counted."""

        def spent() -> tuple[float, ...]:
            return time.perf_counter(), sum(worker.cpu() for worker in workers), self._server.cpu()

        before, begun, grown = spent(), self._steps(), self._server.counts()
        self._wait(lambda: not self._left(), workers)
        seconds, ours, server = (after - then for then, after in zip(before, spent(), strict=True))
        ended = self._steps()
        runs = (ended - begun) / (ended - steps) * sent
        more = {name: (now - grown[name]) / runs for name, now in self._server.counts().items()}
        return Throughput(runs / seconds, ours / runs, server / runs, more, self._server.connections())

    def _wait(self, what: Callable[[], bool], workers: list[WorkerProcess]) -> None:
        def is_so() -> bool:
            assert all(worker.is_alive() for worker in workers), "a worker has ended"
            return what()

        wait_until(is_so)

    def _send(self, count: int) -> None:
        """Put runs into the queue, each of a session of its own."""
        app = application(self._url)
        engine, workers = open_engine(self._url)
        runs = DurableRuns(app, engine)
        try:
            for _ in range(count):
                runs.say(app.create_session().session_id, f"Count to {self._plan.run_calls}")
        finally:
            engine.stop()
            workers.close()
            app.close()

    def _left(self) -> int:
        sql = "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"
        return int(self._server.ask(sql))

    def _steps(self) -> int:
        return int(self._server.ask("SELECT count(*) FROM dbos.operation_outputs"))


def wait_until(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, "the runs did not end in time"
        time.sleep(0.02)


# The table


def steps_of(calls: int) -> int:
    """Return how many steps a run has: a model call before each tool call, and one for the answer."""
    return 2 * calls + 1


def show_steps(costs: dict[str, Cost]) -> None:
    floor, plain = costs["empty step"], costs["plain step"]
    more = costs["durable step"] - plain
    line("DBOS: an empty step", "1.00x", describe(floor))
    line("DBOS: an empty workflow", f"{costs['empty workflow'].wall / floor.wall:.2f}x", "the empty step")
    line("a plain step", f"{plain.wall / floor.wall:.2f}x", f"the empty step; {describe(plain)}")
    line("a durable step", f"{costs['durable step'].wall / plain.wall:.2f}x", "a plain step, by time")
    line("a durable step, CPU of all", f"{costs['durable step'].cpu / plain.cpu:.2f}x", "a plain step")
    line("what durable adds to a step", f"{more.wall / floor.wall:.2f}x", "the empty step; target: under 2")
    line("what durable adds to a step, CPU of all", f"{more.cpu / floor.cpu:.2f}x", "the empty step")


def describe(cost: Cost) -> str:
    return (
        f"{cost.wall * 1e3:.1f} ms, CPU {cost.ours * 1e3:.1f} ms + {cost.server * 1e3:.1f} ms of the server"
    )


def show_workers(found: dict[int, Throughput], plan: Plan, plain: Cost) -> None:
    steps = steps_of(plan.run_calls)
    first = found[WORKERS[0]]
    for count, one in found.items():
        name = "1 worker process" if count == 1 else f"{count} worker processes"
        line(f"{name}: runs per second", f"{one.rate / first.rate:.2f}x", f"one worker; {one.rate:.1f}/s")
    for count, one in found.items():
        name = "1 worker process" if count == 1 else f"{count} worker processes"
        whole = (one.workers_cpu + one.server_cpu) / steps
        times = (
            f"{one.workers_cpu / steps * 1e3:.1f} ms + {one.server_cpu / steps * 1e3:.1f} ms of the server"
        )
        line(f"{name}: CPU of a step", f"{whole / plain.cpu:.2f}x", f"a plain step; {times}")
    grown = first.grown
    line(f"a run of {steps} steps: rows written", f"{grown['rows']:.0f}", f"{grown['commits']:.0f} commits")
    line(
        f"a run of {steps} steps: bytes kept",
        f"{grown['store'] / 1000:.1f} kB",
        f"+ {grown['engine'] / 1000:.1f} kB of DBOS; {grown['log'] / 1000:.0f} kB of write-ahead log",
    )
    most = max(found)
    each = (found[most].connections - first.connections) / (most - WORKERS[0])
    line("connections that a worker holds", f"{each:.0f}", f"at {AT_ONCE} runs at a time")


def show_slots(one: Throughput, plan: Plan) -> None:
    """Show what a worker does that has many runs at a time, each of which mostly waits for its model."""
    steps, name = steps_of(plan.run_calls), f"1 worker, {SLOTS} slots, {SECONDS * 1000:.0f} ms for an answer"
    line(name, f"{one.rate * steps:.0f}/s", f"steps; {1000 / (one.rate * steps):.1f} ms each, target: 10")
    times = f"{one.workers_cpu / steps * 1e3:.1f} ms + {one.server_cpu / steps * 1e3:.1f} ms of the server"
    line("CPU of a step there", "", times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under a minute, and rough")
    plan = QUICK if parser.parse_args().quick else WHOLE
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(folder) as database:
        server = Server(database.url)
        meter = Meter(server)
        InOneProcess(database.url, plan, meter).measure()
        costs = {what: median(found) for what, found in meter.costs.items()}
        show_steps(costs)
        by_workers = ByWorkers(database.url, plan, server)
        show_workers({count: by_workers.measure(count) for count in WORKERS}, plan, costs["plain step"])
        slow = replace(plan, runs=plan.slow_runs)
        show_slots(ByWorkers(database.url, slow, server).measure(1, is_slow=True), plan)


if __name__ == "__main__":
    main()
