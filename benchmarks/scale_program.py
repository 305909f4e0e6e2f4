"""The application that is measured, and a worker of it as a process.

``-m benchmarks.scale_program URL`` has a model that answers at once, with ``slow`` one that takes a while.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.costs import cpu

from agent_app import AgentApplication
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_durable import Worker, open_engine

AT_ONCE, SLOTS = 4, 50
SECONDS = 0.2
"""How many runs a worker has at a time whose model answers at once, or after these seconds."""
Mark = Callable[[int, int], None]


def answering(mark: Mark) -> Callable[[list[dict[str, Any]]], Reply]:
    """Return a model that tells somebody how many calls are done, and of how many, whenever it is asked."""

    def answer(messages: list[dict[str, Any]]) -> Reply:
        asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
        done = sum(message["role"] == "tool" for message in messages[asked:])
        wanted = int(str(messages[asked]["content"]).split()[-1])
        mark(done, wanted)
        if done < wanted:
            return Reply(tool_calls=[ToolCall("note", {"number": done}, f"q{asked}c{done}")])
        return Reply(text="Counted.")

    return answer


def unmarked(_done: int, _wanted: int) -> None:
    """Take no notice."""


def note(number: int) -> str:
    """Take a note of a number."""
    return f"noted {number}"


class Notes:
    name = "notes"
    version = "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("note", tool(note))


def slow(messages: list[dict[str, Any]]) -> Reply:
    """Answer as `answering` does, after a while."""
    return replace(answering(unmarked)(messages), delay=SECONDS)


def application(url: str, mark: Mark = unmarked, *, is_slow: bool = False) -> AgentApplication:
    config = {"agents": {"counter": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    model = slow if is_slow else answering(mark)
    plugins = [ScriptedProvider(itertools.repeat(model), record=False), Notes]
    return AgentApplication(config, store=url, plugins=plugins, installed=False)


class WorkerProcess:
    def __init__(self, url: str, *, is_slow: bool = False) -> None:
        command = [sys.executable, "-m", "benchmarks.scale_program", url, *(["slow"] if is_slow else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def wait_ready(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "the worker did not begin"

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")

    def cpu(self) -> float:
        return cpu(self._process.pid)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def work(url: str, *, is_slow: bool) -> None:
    """Be a worker, from the first line of the input until SIGTERM."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_given: told.set())
    app = application(url, is_slow=is_slow)
    engine, workers = open_engine(url)
    at_once = SLOTS if is_slow else AT_ONCE
    worker = Worker(app, engine, workers, concurrency=at_once, given_up=lambda: os._exit(75))
    print("ready", flush=True)
    sys.stdin.readline()
    worker.start()
    told.wait()
    worker.drain(seconds=10)
    workers.close()
    app.close()


if __name__ == "__main__":
    work(sys.argv[1], is_slow="slow" in sys.argv)
