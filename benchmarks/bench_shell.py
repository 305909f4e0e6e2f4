"""What a command costs through the shell tool, beside a bare `subprocess.run` in the same run.

Only the ratios mean something: the machine may be shared and slow. Run with `make bench`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tracemalloc
from functools import partial
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shell_tool import ShellTool
from shell_tool.syntax import read_line

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 25
MEGABYTES = 10
OUTPUT = f"yes 0123456789 | head -c {MEGABYTES * 1_000_000}"
LINES = {
    "one command": "git status -s",
    "a pipeline": "grep -rn 'def main' src | sort -u | head -20 > out.txt 2>&1",
    "a script of 60 lines": "\n".join(
        ["for f in *.py; do", *['  wc -l "$f" && cat $f | head -3'] * 58, "done"]
    ),
}
Row = tuple[str, str, str]


class Calls:
    """The tool, ready to be called."""

    def __init__(self, folder: str) -> None:
        self._tool = ShellTool()
        self._state = self._tool.init({"roots": [folder]})

    def run(self, command: str) -> int:
        """Run a command, take its output as it comes, and return how much there was."""
        shown = 0
        for item in self._tool.stream_tool("shell", {"command": command}, self._state):
            shown += len(item["part"]["text"]) if "part" in item else 0
        return shown


def bare(command: str) -> Any:
    return subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def best_of_both(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Return the seconds of the quickest of several runs of each, taken in turns."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for which, work in enumerate((ours, theirs)):
            start = perf_counter()
            work()
            best[which] = min(best[which], perf_counter() - start)
    return best[0], best[1]


def bench_time(calls: Calls) -> list[Row]:
    rows = []
    for name, command, rounds in (
        ("a call of `true`", "true", ROUNDS),
        (f"{MEGABYTES} MB of output", OUTPUT, 5),
    ):
        ours, theirs = best_of_both(partial(calls.run, command), partial(bare, command), rounds)
        rows.append(
            (name, f"{ours / theirs:.2f}x", f"{(ours - theirs) * 1e3:.2f} ms beside {theirs * 1e3:.2f} ms")
        )
    return rows


def bench_memory(calls: Calls) -> list[Row]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shown = calls.run(OUTPUT)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert shown == MEGABYTES * 1_000_000
    tracemalloc.start()
    calls.run(OUTPUT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    unit = 1 if sys.platform == "darwin" else 1024
    name = f"memory for {MEGABYTES} MB of output"
    return [
        (name, f"{grown * unit / 1e6:.1f} MB", "that the process grew; target: under 100 MB"),
        (name, f"{peak / 1e6:.1f} MB", "allocated at once"),
    ]


def bench_reading() -> list[Row]:
    rows = []
    for name, line in LINES.items():
        assert not read_line(line).problem
        start = perf_counter()
        for _ in range(50):
            read_line.cache_clear()
            read_line(line)
        rows.append(
            (f"reading {name}", f"{(perf_counter() - start) / 50 * 1e6:.0f} µs", "for its permissions")
        )
    return rows


def run() -> list[Row]:
    """Return every measurement as its name, its value and what it is held against."""
    with TemporaryDirectory() as folder:
        calls = Calls(folder)
        return [*bench_memory(calls), *bench_time(calls), *bench_reading()]


if __name__ == "__main__":
    for name, value, beside in run():
        print(f"{name:<32} {value:>10}  {beside}")
