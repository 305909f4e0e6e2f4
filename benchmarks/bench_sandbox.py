"""What a sandbox adds to a command: `bash -c :` alone, and in each sandbox that this machine has.

Run it with `python benchmarks/bench_sandbox.py [ROUNDS]`. Each way takes turns with none, so that a busy
moment of the machine meets both; the median and the lower quarter of each are printed. The ways do not take
turns with each other: the kernel tidies a network namespace up after its end, and another one would have to
wait for that. The target is below 20 ms.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_plugin_kit.sandbox import Sandbox, SandboxSettings
from agent_plugin_kit.sandbox.bubblewrap import find_bubblewrap
from agent_plugin_kit.sandbox.landlock import find_landlock

if TYPE_CHECKING:
    from collections.abc import Callable

TARGET_MS = 20
ALONE = "no sandbox"
COMMAND = ["bash", "--noprofile", "--norc", "-c", ":"]


def alone(folder: Path) -> None:
    """Run the command as it is."""
    subprocess.run(COMMAND, cwd=folder, check=True)


def inside(box: Sandbox, settings: SandboxSettings) -> Callable[[Path], None]:
    """Return a function that runs the command in a sandbox, with all that is done for it."""

    def run(folder: Path) -> None:
        confined = box.confine(COMMAND, settings, roots=[folder], folder=folder, env=os.environ)
        subprocess.run(
            confined.command, cwd=folder, env=confined.env, pass_fds=confined.descriptors, check=True
        )
        confined.started()
        confined.ended()

    return run


def main() -> None:
    """Measure, and print a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    usual, with_hosts = SandboxSettings.read({}), SandboxSettings.read({"sandbox_hosts": ["a.example"]})
    ways: dict[str, Callable[[Path], None]] = {ALONE: alone}
    bubblewrap, landlock = find_bubblewrap(), find_landlock()
    if not isinstance(bubblewrap, str):
        ways["bubblewrap"] = inside(Sandbox(bubblewrap), usual)
        ways["bubblewrap, with hosts"] = inside(Sandbox(bubblewrap), with_hosts)
    if not isinstance(landlock, str):
        ways["Landlock"] = inside(Sandbox(landlock), usual)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        subprocess.run(["git", "init", "-q", text], check=True)
        for name in [one for one in ways if one != ALONE]:
            for _ in range(rounds):
                for each in (ALONE, name):
                    began = time.perf_counter()
                    ways[each](folder)
                    taken[each].append((time.perf_counter() - began) * 1000)
    base = statistics.median(taken[ALONE])
    print(f"{'':24}{'median':>10}{'quarter':>10}{'adds':>10}{'times':>8}")
    for name, times in taken.items():
        middle, quarter = statistics.median(times), statistics.quantiles(times)[0]
        print(f"{name:24}{middle:8.1f}ms{quarter:8.1f}ms{middle - base:8.1f}ms{middle / base:7.1f}x")
    if "bubblewrap" in taken and statistics.quantiles(taken["bubblewrap"])[0] - base > TARGET_MS:
        sys.exit(f"the sandbox adds more than {TARGET_MS} ms to a command")


if __name__ == "__main__":
    main()
