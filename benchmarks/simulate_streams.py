"""What streams of events cost databases as the number of servers grows, with and without read replicas.

Every server hears of every event, and reads all that are new in one look, at most fifty times a second. A
look takes a part of a processor of the database that it asks: the primary, which also writes the events, or
one of its replicas, which only applies them. A database that has more to do than its processors can do lets
looks wait, and so readers.

The costs were measured (see `Costs`); arrivals are random. All databases have the same number of processors.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PICTURE = Path(__file__).parent.parent / "docs" / "explanation" / "streams.svg"
TICK = 0.01
SERVERS = (1, 100, 200, 300, 400, 600, 800)
REPLICAS = (0, 1, 2)
COLOURS = ("#c92a2a", "#1971c2", "#2f9e44")


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds of a database's processor.

    Measured with a server and a streaming replica of it on one busy machine, on 18 November 2026: 4,000
    events in transactions of two, and 400 looks each at pages of 2 to 500 events.

    Attributes:
        write: To write one event and announce it.
        apply: To apply one event on a replica.
        look: To look for new events.
        read: For each event that a look finds.
        pause: How long a server waits between two looks; no processor is needed for that.
    """

    write: float = 0.16e-3
    apply: float = 0.006e-3
    look: float = 0.2e-3
    read: float = 0.0015e-3
    pause: float = 0.02


class Result(NamedTuple):
    """How busy the processors were, as parts of one database's, and how long looks waited, in seconds."""

    primary: float
    replica: float
    wait: float
    longest: float


class _Database:
    """Processors with work before them; how much is done is counted, and how long new work would wait."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self.waiting = self.given = 0.0

    def take(self, seconds: float) -> float:
        """Take work, and return when it is done: after so many seconds."""
        self.given += seconds
        self.waiting += seconds
        return self.waiting / self._cores

    def pass_time(self) -> None:
        self.waiting = max(0.0, self.waiting - self._cores * TICK)


def simulate(
    *,
    servers: int,
    replicas: int,
    events: float,
    cores: int = 8,
    seconds: float = 20.0,
    costs: Costs | None = None,
    seed: int = 1,
) -> Result:
    """Watch databases while so many events a second are written, and so many servers follow them."""
    costs, chance = costs or Costs(), random.Random(seed)
    primary = _Database(cores)
    copies = [_Database(cores) for _ in range(replicas)]
    asked = copies or [primary]
    written, waits = 0.0, []
    next_look = [chance.random() * costs.pause for _ in range(servers)]
    seen = [0.0] * servers
    due = chance.expovariate(events)
    moment = 0.0
    while moment < seconds:
        moment += TICK
        while due <= moment:
            written += 1
            primary.take(costs.write)
            for one in copies:
                one.take(costs.apply)
            due += chance.expovariate(events)
        for server in range(servers):
            if next_look[server] > moment or seen[server] == written:
                continue
            found, seen[server] = written - seen[server], written
            done = asked[server % len(asked)].take(costs.look + costs.read * found)
            waits.append(done)
            next_look[server] = moment + done + costs.pause
        for one in (primary, *copies):
            one.pass_time()
    waits.sort()
    all_of_it = cores * seconds
    return Result(
        primary.given / all_of_it,
        max((one.given / all_of_it for one in copies), default=0.0),
        waits[len(waits) // 2],
        waits[len(waits) * 99 // 100],
    )


def draw(found: dict[int, list[Result]], events: float, limit: float) -> str:
    """Return a picture: how busy the primary is by the number of servers, a line for each number of replicas.

    A dotted line is how busy each replica is.
    """
    left, top, width, height = 60, 70, 560, 260
    most = max(SERVERS)

    def x(servers: int) -> float:
        return left + servers / most * width

    def y(busy: float) -> float:
        return top + height - min(busy, 1.0) * height

    font = 'font-family="sans-serif" font-size="12" fill="#343a40"'
    title = f"How busy the primary is with {events:,.0f} events a second, by servers that stream them"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 80} {top + height + 50}" {font}>',
        f'<rect width="{width + 80}" height="{top + height + 50}" fill="white"/>',
        f'<text x="10" y="18" font-size="14">{title}</text>',
    ]
    for percent in range(0, 101, 20):
        at = y(percent / 100)
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{at:.0f}" y2="{at:.0f}" stroke="#dee2e6"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.0f}" text-anchor="end">{percent}%</text>')
    parts.append(
        f'<line x1="{left}" x2="{left + width}" y1="{y(limit):.0f}" y2="{y(limit):.0f}" stroke="#868e96" '
        'stroke-dasharray="5 4"/>'
    )
    for servers in SERVERS:
        parts.append(
            f'<text x="{x(servers):.0f}" y="{top + height + 18}" text-anchor="middle">{servers}</text>'
        )
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">servers</text>')
    for number, (replicas, results) in enumerate(found.items()):
        colour, at = COLOURS[number], 10 + number * 150
        name = "no replica" if not replicas else f"{replicas} replica{'s' if replicas > 1 else ''}"
        points = " ".join(f"{x(s):.1f},{y(one.primary):.1f}" for s, one in zip(SERVERS, results, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if replicas:
            points = " ".join(
                f"{x(s):.1f},{y(one.replica):.1f}" for s, one in zip(SERVERS, results, strict=True)
            )
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-dasharray="2 3"/>'
            )
        parts.append(f'<line x1="{at}" x2="{at + 22}" y1="40" y2="40" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{at + 28}" y="44">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str] | None = None) -> None:
    """Print how busy databases are for growing numbers of servers, and draw it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=float, default=4_600.0, help="events a second")
    parser.add_argument("--cores", type=int, default=8, help="processors of each database")
    parser.add_argument("--busy", type=float, default=0.6, help="how busy a database may be")
    parser.add_argument("--draw", action="store_true", help=f"write {PICTURE.name}")
    asked = parser.parse_args(arguments)
    found: dict[int, list[Result]] = {}
    print(f"{asked.events:,.0f} events a second, {asked.cores} processors for each database")
    print("replicas  servers  primary  replica  wait p50  wait p99")
    for replicas in REPLICAS:
        found[replicas] = []
        for servers in SERVERS:
            one = simulate(servers=servers, replicas=replicas, events=asked.events, cores=asked.cores)
            found[replicas].append(one)
            enough = "" if max(one.primary, one.replica) <= asked.busy else "  too much"
            copy = f"{one.replica:7.0%}" if replicas else "      -"
            waits = f"{one.wait * 1e3:5.0f} ms  {one.longest * 1e3:5.0f} ms"
            print(f"{replicas:8}  {servers:7}  {one.primary:7.0%}  {copy}  {waits}{enough}")
    if asked.draw:
        PICTURE.write_text(draw(found, asked.events, asked.busy), encoding="utf-8")


if __name__ == "__main__":
    main()
