"""How quickly the `agent` command is there: its version, and the first prompt of a chat in a terminal.

Everything is measured beside `python -c "import asyncio"`, turn by turn in one run, so the ratios mean
something on any machine; the best of several turns counts. A ratio above the limit ends it with an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import pexpect

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 15
LIMIT = 3.0
PROMPT = "»"
AGENT = ("-m", "agent_terminal_app")


def environment(home: str) -> dict[str, str]:
    """Return a home without settings, so that a chat is a first run."""
    places = {f"XDG_{name}_HOME": f"{home}/{name.lower()}" for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {**os.environ, **places, "HOME": home, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}


def run(*arguments: str) -> Callable[[dict[str, str]], float]:
    """Return a measurement: from the start of Python to its end."""

    def measure(env: dict[str, str]) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], env=env, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    return measure


def first_prompt(*arguments: str) -> Callable[[dict[str, str]], float]:
    """Return a measurement: from the start of Python to the prompt that a person can type at."""

    def measure(env: dict[str, str]) -> float:
        began = time.perf_counter()
        child = pexpect.spawn(
            sys.executable, [*AGENT, *arguments], env=env, cwd=env["HOME"], encoding="utf-8", timeout=60
        )
        child.expect(PROMPT)
        took = time.perf_counter() - began
        child.sendeof()
        child.expect(pexpect.EOF)
        child.close()
        return took

    return measure


MEASURED = {
    "python -c 'import asyncio'": run("-c", "import asyncio"),
    "agent --version": run(*AGENT, "--version"),
    "agent chat --demo, first prompt": first_prompt("chat", "--demo"),
    "agent chat, first prompt": first_prompt("chat"),
}


def main() -> int:
    best = dict.fromkeys(MEASURED, float("inf"))
    with tempfile.TemporaryDirectory() as home:
        for _ in range(TURNS):
            for name, measure in MEASURED.items():
                best[name] = min(best[name], measure(environment(home)))
    beside, *others = best
    print(f"{beside:<44}{best[beside] * 1000:>9.0f} ms")
    for name in others:
        print(f"{name:<44}{best[name] / best[beside]:>9.2f} x  ({best[name] * 1000:.0f} ms)")
    slow = [name for name in others if best[name] > LIMIT * best[beside]]
    for name in slow:
        print(f"too slow: {name} takes more than {LIMIT:g} times as long as {beside}", file=sys.stderr)
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
