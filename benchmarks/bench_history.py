"""How a `History` compares with a plain list doing the same work in the same process.

Each ratio is history over list: 1 is as fast (or as small) as the list, less is better. A list that
must keep its old value is copied to be appended to; growing one list in place is the floor.
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from agent_core.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

APPENDS = 320
FORKS = 100


def run() -> list[tuple[str, float]]:
    """Return every measurement as its name and the ratio to a plain list."""
    ratios = []
    for size in (10, 1_000, 100_000):
        items = list(range(size))
        history = History(items)
        growing = ratio(partial(append, history), partial(append_in_place, items))
        keeping = ratio(partial(history.append, 0), partial(append_to_copy, items))
        ratios += [(f"append, {size:,} items", growing), (f"append to a copy, {size:,} items", keeping)]
    items = list(range(100_000))
    history = History(items)
    return [
        *ratios,
        ("iterate, empty body", ratio(partial(walk, history), partial(walk, items))),
        ("iterate, comparing", ratio(partial(compare, history), partial(compare, items))),
        ("index", ratio(partial(index, history), partial(index, items))),
        ("to_list", ratio(history.to_list, items.copy)),
        ("build", ratio(partial(History, items), partial(list, items))),
        ("fork memory, 10,000 items", fork_memory()),
    ]


def ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Return the best time of *ours* over the best of *theirs*, taken in turns."""
    best = [float("inf"), float("inf")]
    calls = [calls_per_round(ours), calls_per_round(theirs)]
    for _ in range(15):
        for which, work in enumerate((ours, theirs)):
            best[which] = min(best[which], timed(work, calls[which]) / calls[which])
    return best[0] / best[1]


def calls_per_round(work: Callable[[], object]) -> int:
    """Return how often to call *work* so that one round takes about five milliseconds."""
    return max(1, int(0.005 / max(timed(work, 3) / 3, 1e-7)))


def timed(work: Callable[[], object], calls: int) -> float:
    start = perf_counter()
    for _ in range(calls):
        work()
    return perf_counter() - start


def append(history: History[int]) -> None:
    for number in range(APPENDS):
        history = history.append(number)


def append_in_place(items: list[int]) -> None:
    for number in range(APPENDS):
        items.append(number)
    del items[-APPENDS:]


def append_to_copy(items: list[int]) -> list[int]:
    return [*items, 0]


def walk(items: Iterable[int]) -> None:
    for _ in items:
        pass


def compare(items: Iterable[int]) -> int:
    found = 0
    for item in items:
        if item == FORKS:
            found += 1
    return found


def index(items: History[int] | list[int]) -> None:
    for position in range(0, 100_000, 317):
        items[position]


def fork_memory() -> float:
    """Return what a fork near the end, plus one item, keeps allocated, over a copy of the list."""
    items = list(range(10_000))
    history = History(items)
    forks = allocated(lambda: [history.prefix(9_990).append(0) for _ in range(FORKS)])
    copies = allocated(lambda: [items.copy() for _ in range(FORKS)])
    return forks / copies


def allocated(make: Callable[[], object]) -> int:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    held = make()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del held
    return after - before


if __name__ == "__main__":
    for name, value in run():
        print(f"{name:<32} {value:9.4f}")
