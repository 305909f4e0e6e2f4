"""Processes that run an agent and die on being shown an event: each `run_start` and each result in turn.

Each run has another number of answers and of calls, some of which run at the same time and take longer than
others. A process notes what it was shown before it dies.

    python shown.py FOLDER FIRST_RUN LAST_RUN

Below FOLDER, each run has a folder for each event at which it died: `RUN-NUMBER`, with `sessions.db`,
`shown` (the events, a line each) and `effects` (the calls that ran).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
TARGETS = ("run_start", "tool_call_result")
DIED = -signal.SIGKILL


class Scenario:
    """What happens in a run; the same number is the same run."""

    def __init__(self, number: int) -> None:
        random = Random(number)
        self.awaits = bool(number % 2)
        self.run_id = "r" if number % 3 == 0 else None
        self.seconds: dict[int, float] = {}
        self.answers: list[Any] = []
        for _ in range(random.randint(1, 2)):
            calls = []
            for _ in range(random.randint(1, 4)):
                work = len(self.seconds)
                self.seconds[work] = random.choice([0.0, 0.0, 0.01, 0.03])
                calls.append(ToolCall(random.choice(["together", "alone"]), {"work": work}, f"c{work}"))
            self.answers.append(Reply(text="Working.", tool_calls=calls))
        self.answers.append("Done.")

    def tools(self, effects: Path) -> list[Any]:
        def work(work: int) -> str:
            """Work for a while."""
            threading.Event().wait(self.seconds[work])
            with effects.open("a") as file:
                print(work, file=file)
            return f"worked {work}"

        return [tool(work, name="together", parallel=True), tool(work, name="alone", parallel=False)]


class Tools:
    """The tools of a scenario, as a plugin."""

    name, version = "tools", "1"

    def __init__(self, tools: list[Any]) -> None:
        self._tools = tools

    def register(self, registrar: Any) -> None:
        for one in self._tools:
            registrar.tool(one.name, one)


def run(number: int, folder: Path, dies_at: int) -> None:
    """Run a scenario, and die at one of its events."""
    scenario = Scenario(number)
    app = AgentApplication(
        CONFIG,
        store=f"sqlite:///{folder / 'sessions.db'}",
        plugins=[ScriptedProvider(scenario.answers), Tools(scenario.tools(folder / "effects"))],
        installed=False,
    )
    app.create_session(session_id="s")
    with (folder / "shown").open("a") as shown:
        seen = 0

        def watch(event: dict[str, Any]) -> None:
            nonlocal seen
            if event["type"] not in TARGETS:
                return
            print(
                json.dumps({"type": event["type"], "message": event.get("message")}), file=shown, flush=True
            )
            seen += 1
            if seen == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

        if scenario.awaits:
            asyncio.run(_watch_async(app, scenario, watch))
        else:
            for event in app.chat("s", "Go.", run_id=scenario.run_id):
                watch(event)


async def _watch_async(app: AgentApplication, scenario: Scenario, watch: Any) -> None:
    async for event in app.chat_async("s", "Go.", run_id=scenario.run_id):
        watch(event)


def each_death(number: int, root: Path) -> Iterator[Path]:
    """Run a scenario again and again, dying one event later each time, until it comes to its end."""
    for dies_at in range(1, 100):
        folder = root / f"{number}-{dies_at}"
        folder.mkdir()
        (folder / "effects").touch()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            run(number, folder, dies_at)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, DIED), (number, dies_at, status)
        yield folder
        if status == 0:
            return


if __name__ == "__main__":
    for scenario_number in range(int(sys.argv[2]), int(sys.argv[3]) + 1):
        for _folder in each_death(scenario_number, Path(sys.argv[1])):
            pass
