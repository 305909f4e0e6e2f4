"""The application that is measured, and a worker of it as a process: ``-m benchmarks.scale_program URL``."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from benchmarks.costs import cpu

from agent_app import AgentApplication
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_durable import Worker, open_engine

AT_ONCE = 4
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


def application(url: str, mark: Mark = unmarked) -> AgentApplication:
    config = {"agents": {"counter": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    plugins = [ScriptedProvider(itertools.repeat(answering(mark))), Notes]
    return AgentApplication(config, store=url, plugins=plugins, installed=False)


class WorkerProcess:
    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "benchmarks.scale_program", url]
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


def work(url: str) -> None:
    """Be a worker, from the first line of the input until SIGTERM."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_given: told.set())
    app = application(url)
    engine, workers = open_engine(url)
    worker = Worker(app, engine, workers, concurrency=AT_ONCE, given_up=lambda: os._exit(75))
    print("ready", flush=True)
    sys.stdin.readline()
    worker.start()
    told.wait()
    worker.drain(seconds=10)
    workers.close()
    app.close()


if __name__ == "__main__":
    work(sys.argv[1])
