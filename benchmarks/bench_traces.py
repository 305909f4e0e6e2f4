"""What traces and metrics add to a run, with a Chat Completions server on this machine as the model.

Run it with `python benchmarks/bench_traces.py [ROUNDS]`. Runs with and without traces take turns in one
process, so that a busy moment of the machine meets both. Spans go to a batch processor and metrics to a
reader, and both are then dropped. The server answers in 20 ms (40 pieces when it streams), which is quicker
than any model, or at once, where nothing is left but our own work and that of OpenTelemetry. The least time
of all runs is compared.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from agent_runtime import Agent
from traces_feature import trace_agents

PIECES = 40
THINKS = 0.020
ROUNDS_WITH_TOOLS = 5
TARGET = 3.0


class Dropped(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


async def serve() -> None:
    """Answer Chat Completions; the model's name says how: "slow" or "fast", with "tools" or without."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            asked = json.loads(await reader.readexactly(int(size.partition(b":")[2])))
            thinks = THINKS if "slow" in asked["model"] else 0.0
            await (_stream if asked.get("stream") else _whole)(writer, asked, thinks)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def _whole(writer: asyncio.StreamWriter, asked: dict[str, Any], thinks: float) -> None:
    done = sum(message["role"] == "tool" for message in asked["messages"])
    message: dict[str, Any] = {"role": "assistant", "content": "word " * PIECES}
    if "tools" in asked["model"] and done < ROUNDS_WITH_TOOLS:
        called = {"name": "look", "arguments": '{"place": "here"}'}
        call = {"id": f"call_{done}", "type": "function", "function": called}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    await asyncio.sleep(thinks)
    body = json.dumps({"id": "c", "choices": [{"index": 0, "message": message}], "usage": _USED}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def _stream(writer: asyncio.StreamWriter, _asked: dict[str, Any], thinks: float) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for number in range(PIECES):
        await asyncio.sleep(thinks / PIECES)
        last = {"finish_reason": "stop"} if number == PIECES - 1 else {}
        _send(writer, {"id": "c", "choices": [{"index": 0, "delta": {"content": "word "}, **last}]})
    _send(writer, {"id": "c", "choices": [], "usage": _USED})
    done = b"data: [DONE]\n\n"
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(done), done))


def _send(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


_USED = {"prompt_tokens": 10, "completion_tokens": PIECES, "total_tokens": 10 + PIECES}


def look(place: str) -> str:
    """Look at a place."""
    return f"nothing to see {place}"


async def once(agent: Agent[None, str], *, stream: bool) -> float:
    """Run an agent once, and return the seconds."""
    began = time.perf_counter()
    if stream:
        async for _ in agent.stream_async("Hello."):
            pass
    else:
        await agent.run_async("Hello.")
    return time.perf_counter() - began


async def measure(agent: Agent[None, str], rounds: int, traced: Any, *, stream: bool) -> tuple[float, float]:
    """Return the least seconds without and with traces."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds + 3):
        for on in (number % 2 == 0, number % 2 == 1):
            stop = trace_agents(**traced) if on else None
            seconds[on].append(await once(agent, stream=stream))
            if stop is not None:
                stop()
    return min(seconds[False][3:]), min(seconds[True][3:])


async def main(rounds: int, port: str) -> None:
    """Measure, and print a table."""
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(Dropped()))
    traced = {
        "tracer_provider": tracers,
        "meter_provider": MeterProvider(metric_readers=[InMemoryMetricReader()]),
    }
    config = {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": "none"}
    print("| run | model | without | with | added | |\n|---|---|---|---|---|---|")
    for speed in ("slow", "fast"):
        for kind in ("oneshot", "stream", "tools"):
            tools = [look] if kind == "tools" else []
            agent = Agent(f"openai_compatible:{speed}-{kind}", tools=tools, config=config)
            off, on = await measure(agent, rounds, traced, stream=kind == "stream")
            share = 100 * (on / off - 1)
            verdict = ("below" if share < TARGET else "ABOVE") + f" {TARGET:g} %" if speed == "slow" else ""
            print(
                f"| {kind} | {'20 ms' if speed == 'slow' else 'at once'} | {off * 1e3:.2f} ms "
                f"| {on * 1e3:.2f} ms | {(on - off) * 1e6:.0f} µs, {share:.1f} % | {verdict} |"
            )
    tracers.shutdown()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, server.stdout.readline().strip()))
        finally:
            server.kill()
