"""Keep and draw how fast we are: `make bench-history` measures, adds a line to the history, and draws it.

Times are divided by that of a loop in pure Python on the same machine at the same moment, so that lines of
different machines can stand in one picture. A figure of 2 means: as long as two of these loops.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import AgentCore
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
HISTORY = ROOT / "benchmarks" / "history.jsonl"
PICTURE = ROOT / "docs" / "screens" / "performance-history.svg"
_TIMES = 25
_LOOP = 200_000
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")
_WIDTH, _HEIGHT, _LEFT, _ROW = 760, 300, 50, 18


def main() -> None:
    """Measure unless only the picture is wanted, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draw", action="store_true", help="only draw what is there")
    if not parser.parse_args().draw:
        line = {**about(), "figures": measured()}
        with HISTORY.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line, indent=1))
    lines = [json.loads(text) for text in HISTORY.read_text(encoding="utf-8").splitlines()]
    PICTURE.write_text(drawn(lines), encoding="utf-8")


def about() -> dict[str, str]:
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    return {"date": datetime.now(UTC).date().isoformat(), "version": version, "commit": commit}


def measured() -> dict[str, float]:
    """Return every figure, in loops."""
    core = AgentCore()
    core.register_provider(ScriptedProvider(iter(lambda: "ok", None), record=False))
    session = core.add_message(core.create_session(), "user", "hello")
    calling = Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})])

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    def talk() -> None:
        Agent(ScriptedProvider([calling, "3"], record=False), tools=[add]).run("1 and 2?")

    agent = Agent(ScriptedProvider(iter(lambda: "ok", None), record=False))
    work: dict[str, tuple[Callable[[], object], int]] = {
        "import agent_runtime": (lambda: python("import agent_runtime"), 1),
        "a request of AgentCore": (lambda: core.send_request(session, {}), 20),
        "a run of Agent": (lambda: agent.run("hello"), 20),
        "a new Agent with a tool call": (talk, 5),
    }
    return {name: round(in_loops(one, times), 4) for name, (one, times) in work.items()}


def python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def in_loops(work: Callable[[], object], times: int) -> float:
    """Return how long something takes: the best of several tries, by the best loop between them."""
    work()
    tries = [(timed(work, times) / times, timed(loop, 1)) for _ in range(_TIMES)]
    return min(one for one, _ in tries) / min(one for _, one in tries)


def timed(work: Callable[[], object], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - began


def loop() -> int:
    total = 0
    for number in range(_LOOP):
        total += number & 7
    return total


def drawn(lines: list[dict[str, Any]]) -> str:
    """Return a picture: a curve for each figure, each as a part of its largest value."""
    names = list(dict.fromkeys(name for line in lines for name in line["figures"]))
    step = (_WIDTH - _LEFT - 20) / max(1, len(lines) - 1)
    height, font = _HEIGHT + _ROW * len(names) + 30, 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" {font}>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{_LEFT} 10V{_HEIGHT - 20}H{_WIDTH - 20}" fill="none" stroke="#888"/>',
    ]
    for number, name in enumerate(names):
        values = [line["figures"].get(name) for line in lines]
        top = max(value for value in values if value is not None)
        spots = [
            (_LEFT + at * step, _HEIGHT - 20 - value / top * (_HEIGHT - 40))
            for at, value in enumerate(values)
            if value is not None
        ]
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{x:.0f},{y:.0f}" for x, y in spots)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{colour}"/>' for x, y in spots]
        row = _HEIGHT + 10 + number * _ROW
        last = values[-1]
        parts.append(f'<text x="{_LEFT}" y="{row}" fill="{colour}">{escape(name)}: {last} loops</text>')
    first, newest = lines[0], lines[-1]
    ends = f"{first['date']} ({first['commit']}) to {newest['date']} ({newest['commit']})"
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 5}" fill="#555">{escape(ends)}</text></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
