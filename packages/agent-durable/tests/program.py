"""A worker of a small application, as a process of its own.

The agent of a session "Count to N" calls its tools N times. `note` may run twice, `pay` must not. For
"Die N" it calls `crash` instead, which kills the process. Every effect is a line in FOLDER/effects, written
before the tool returns; that is the world outside.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_durable import Worker, open_engine, worker as worker_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path


def answer(messages: list[dict[str, Any]]) -> Reply:
    """Call the tools as often as the last question says, one after the other, then say what they said."""
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    wanted = int(str(messages[asked]["content"]).split()[-1])
    done = [message["content"] for message in messages[asked:] if message["role"] == "tool"]
    if len(done) < wanted:
        name = "pay" if len(done) % 2 else "note"
        name = "crash" if str(messages[asked]["content"]).startswith("Die") else name
        return Reply(tool_calls=[ToolCall(name, {"number": len(done)}, f"q{asked}c{len(done)}")])
    return Reply(text=" | ".join(done) or "nothing")


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
        if self._folder is not None:
            line = f"{tool_name} {context['session_id']} {context['idempotency_key']}\n".encode()
            descriptor = os.open(self._folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, line)
            os.close(descriptor)
        if tool_name == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"success": True, "result": f"{tool_name} {arguments['number']}"}


def application(
    url: str, folder: Path | None = None, *, version: str = "1", seconds: float = 0.0, **sections: Any
) -> AgentApplication:
    """Return the application; another version has another prompt."""
    agent = {"model": "m", "system_prompt": f"Version {version}.", "sections": sections}
    config = {"agents": {"counter": agent}, "models": {"m": {"provider": "scripted"}}}
    tools = Tools(folder, seconds)
    tools.version = version
    plugins = [ScriptedProvider(itertools.repeat(answer)), tools]
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
