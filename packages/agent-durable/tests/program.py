"""A worker of a small application, as a process of its own.

The agent of a session "Count to N" calls its tools N times. `note` may run twice, `pay` must not. For
"Die N" it calls `crash` instead, which kills the process. Every effect is a line in FOLDER/effects, written
before the tool returns; that is the world outside.

The agent `desk` hands over to `refunds`, which does the same. The agent `author` has one tool, a small graph
of agents in plain Python. If there is a file FOLDER/die_at, whoever comes to the place that it names removes
the file and kills the process.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_durable import Worker, open_engine, worker as worker_module
from agent_runtime import Agent
from agent_testing import FunctionModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from agent_core import FunctionTool
    from agent_testing import ModelRequest


def answer(messages: list[dict[str, Any]], folder: Path | None = None) -> Reply:
    """Call the tools as often as the last question says, one after the other, then say what they said."""
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    role = str(messages[0]["content"]).rstrip(".")
    if role == "Desk":
        return Reply(tool_calls=[ToolCall("transfer_to_refunds")])
    if role == "Author":
        written = [message["content"] for message in messages if message["role"] == "tool"]
        titles = {"titles": ["tea", "milk", "bread"]}
        return Reply(text=written[-1]) if written else Reply(tool_calls=[ToolCall("book", titles, "b")])
    question = str(messages[asked]["content"])
    wanted = int(question.rsplit(maxsplit=1)[-1])
    if role == "Refunds":
        die_at(folder, "refunds")
        asked += 3  # behind the question, the call of the desk and its result
    done = [message["content"] for message in messages[asked:] if message["role"] == "tool"]
    if len(done) < wanted:
        name = "pay" if len(done) % 2 else "note"
        name = "crash" if question.startswith("Die") else name
        return Reply(tool_calls=[ToolCall(name, {"number": len(done)}, f"q{asked}c{len(done)}")])
    return Reply(text=" | ".join(done) or "nothing")


def die_at(folder: Path | None, place: str) -> None:
    """Kill the process the first time that it comes to the place where a test wants it to die."""
    file = None if folder is None else folder / "die_at"
    if file is not None and file.exists() and file.read_text() == place:  # pragma: no cover - it dies
        file.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def graph(folder: Path | None) -> FunctionTool[..., list[str]]:
    """Return a graph of agents: a loop with a branch for each chapter, and a map over them with a limit."""

    def write(request: ModelRequest) -> str:
        said = f"about {request.messages[-1]['content']}"
        note(folder, f"write {said}")
        die_at(folder, said)
        return said

    writer = Agent(FunctionModel(write), name="writer")
    critic = Agent(
        FunctionModel(lambda request: "good" if "more" in str(request.messages) else "more"), name="critic"
    )

    def chapter(title: str) -> str:
        draft = writer.run(title).output
        for _ in range(3):
            verdict = critic.run(draft).output
            if verdict == "good":
                break
            draft = writer.run(f"{verdict} {title}").output
        return draft

    @tool(idempotent=True)
    def book(titles: list[str]) -> list[str]:
        """Write a book of chapters."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            return list(pool.map(chapter, titles))

    return book


def note(folder: Path | None, line: str) -> None:
    """Have an effect outside."""
    if folder is not None:
        descriptor = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)


class Tools:
    """The tools, with effects outside."""

    name = "tools"
    version = "1"
    idempotent = frozenset({"note"})

    def __init__(self, folder: Path | None = None, seconds: float = 0.0) -> None:
        self._folder = folder
        self._seconds = seconds

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools."""
        parameters = {"type": "object", "properties": {"number": {"type": "integer"}}}
        return [
            {"type": "function", "function": {"name": name, "parameters": parameters}}
            for name in ("note", "pay", "crash")
        ]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any], context: Any) -> dict[str, Any]:
        """Have the effect, after a while."""
        time.sleep(self._seconds)
        note(self._folder, f"{tool_name} {context['session_id']} {context['idempotency_key']}")
        if tool_name == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"success": True, "result": f"{tool_name} {arguments['number']}"}


def application(
    url: str, folder: Path | None = None, *, version: str = "1", seconds: float = 0.0, **sections: Any
) -> AgentApplication:
    """Return the application; another version has another prompt."""
    agent = {"model": "m", "system_prompt": f"Version {version}.", "sections": sections}
    agents: dict[str, Any] = {
        "counter": agent,
        "desk": {"model": "m", "system_prompt": "Desk.", "handoffs": ["refunds"], "sections": sections},
        "refunds": {"model": "m", "system_prompt": "Refunds.", "sections": sections},
        "author": {"model": "m", "system_prompt": "Author.", "sections": sections},
    }
    config = {"agents": agents, "models": {"m": {"provider": "scripted"}}, "default_agent": "counter"}
    tools = Tools(folder, seconds)
    tools.version = version
    plugins = [ScriptedProvider(itertools.repeat(partial(answer, folder=folder))), tools, graph(folder)]
    return AgentApplication(config, store=url, plugins=plugins, installed=False)


def traced(url: str) -> Callable[[], None]:  # pragma: no cover - in another process
    """Send traces of this process to a collector; return how to send the last of them."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from traces_feature import trace_agents

    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    trace_agents(tracer_provider=tracers)
    return tracers.shutdown


def work(
    url: str, folder: Path, version: str, environment: dict[str, str], lines: Connection
) -> None:  # pragma: no cover - in another process
    """Run a worker until SIGTERM, and send a line about each thing that a test waits for."""
    os.environ.update(environment)
    with (folder / "errors").open("ab") as errors:
        os.dup2(errors.fileno(), 2)
    seconds = float(os.environ.get("TOOL_SECONDS", "0.05"))
    asks = {"permissions": {"ask": ["pay"], "allow": ["note"]}} if os.environ.get("ASKS") else {}
    limits = {whom: (count, period) for whom, count, period in json.loads(os.environ.get("LIMITS", "[]"))}
    worker_module.SILENT_SECONDS = float(os.environ.get("SILENT_SECONDS", "6"))
    worker_module.FORGOTTEN_SECONDS = 0.0
    end_traces = traced(os.environ["OTLP"]) if "OTLP" in os.environ else None
    app = application(url, folder, version=version, seconds=seconds, **asks)
    engine, workers = open_engine(url, limits=limits)
    worker = Worker(
        app,
        engine,
        workers,
        concurrency=int(os.environ.get("CONCURRENCY", "4")),
        recoveries=int(os.environ.get("RECOVERIES", str(worker_module.RECOVERIES))),
        given_up=lambda: os._exit(75),
    )
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_given: stopped.set())
    worker.start()
    lines.send(f"ready {worker.id}")
    stopped.wait()
    lines.send(" ".join(["handed over", *worker.drain(seconds=20)]))
    if end_traces is not None:
        end_traces()
