"""What many readers of one server process cost in memory: answers being written, and readers that wait.

    python benchmarks/bench_serving.py [--streams 1000] [--readers 10000] [--seconds 300]

The server is `serve_program.py` in a process of its own. Its model is a third process that sends a word from
time to time, until the last stream has begun. Everything is on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
TOKEN = "a-token-of-the-benchmark"
SESSIONS = 100
"""Over how many sessions the readers are spread that wait."""
AT_ONCE = 50
WORD = json.dumps({"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]})
LAST = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


async def answer_as_model(
    enough: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer a request for chat completions with a word per second, until it is enough."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    while not enough.is_set():
        writer.write(f"data: {WORD}\n\n".encode())
        await writer.drain()
        await asyncio.sleep(1)
    writer.write(f"data: {LAST}\n\ndata: [DONE]\n\n".encode())
    await writer.drain()
    writer.close()


async def serve_model(port: int) -> None:
    """Be the model; SIGUSR1 ends its answers."""
    enough = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, enough.set)
    answer = partial(answer_as_model, enough)
    async with await asyncio.start_server(answer, "127.0.0.1", port, backlog=4096) as server:
        await server.serve_forever()


class Reader(asyncio.Protocol):
    """A connection that asks for something and counts what it gets."""

    def __init__(self, request: bytes, wanted: bytes) -> None:
        self.found = asyncio.get_running_loop().create_future()
        self.ended = asyncio.get_running_loop().create_future()
        self.body = b""
        self._request = request
        self._wanted = wanted
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self.found.done():
            return
        self.body += data
        if self._wanted in self.body:
            self.found.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.found.done():
            self.found.set_exception(RuntimeError(f"the server closed, after {self.body[-300:]!r}"))
        self.ended.set_result(None)


def request(method: str, path: str, body: str = "", *, stream: bool = False) -> bytes:
    """Return the bytes of a request."""
    accept = "text/event-stream" if stream else "application/json"
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: {accept}\r\n"
    head += f"authorization: Bearer {TOKEN}\r\n"
    sent = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
    return f"{head}{sent}connection: close\r\n\r\n{body}".encode()


class Load:
    """Connections to one server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def open(self, sent: bytes, wanted: bytes) -> Reader:
        """Connect, and return when what is wanted has come."""
        async with self._at_once:
            loop = asyncio.get_running_loop()
            _, reader = await loop.create_connection(lambda: Reader(sent, wanted), "127.0.0.1", self._port)
            await reader.found
            return reader

    async def new_session(self) -> str:
        """Make a session."""
        reader = await self.open(request("POST", "/v1/sessions", "{}"), b'"id":')
        await reader.ended
        found: str = json.loads(reader.body.partition(b"\r\n\r\n")[2])["id"]
        return found

    async def streams(self, count: int, pid: int, enough: Callable[[], object]) -> float:
        """Have that many answers written at once, and return the memory of the server at its highest."""
        sessions = await asyncio.gather(*[self.new_session() for _ in range(count)])
        body = '{"text": "hello"}'
        runs = [request("POST", f"/v1/sessions/{one}/runs", body, stream=True) for one in sessions]
        readers = await asyncio.gather(*[self.open(one, b'"word ') for one in runs])
        await asyncio.sleep(3)  # some words for each
        assert not any(one.ended.done() for one in readers), "a stream has ended before the last one began"
        enough()
        await asyncio.gather(*[one.ended for one in readers])
        return memory(pid, "VmHWM")

    async def waiting(self, count: int, pid: int) -> tuple[float, float]:
        """Have that many readers wait; return the memory of the server, and the share of a core it takes."""
        sessions = [await self.new_session() for _ in range(SESSIONS)]
        asked = [request("GET", f"/v1/sessions/{one}/events", stream=True) for one in sessions]
        readers = await asyncio.gather(
            *[self.open(asked[number % SESSIONS], b"retry:") for number in range(count)]
        )
        before, begun = cpu(pid), time.monotonic()
        await asyncio.sleep(20)  # two heartbeats for each
        assert not any(one.ended.done() for one in readers), "a reader was sent away"
        share = (cpu(pid) - before) / (time.monotonic() - begun)
        for one in readers:
            assert one.transport is not None
            one.transport.abort()
        return memory(pid, "VmRSS"), share


def memory(pid: int, field: str) -> float:
    """Return megabytes of a process: VmRSS for now, VmHWM for the highest."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def cpu(pid: int) -> float:
    """Return the seconds that a process has worked."""
    return time.clock_gettime((~pid << 3) | 2)


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def start(script: Path, *arguments: str, folder: str) -> subprocess.Popen[bytes]:
    """Start a program of the benchmark."""
    env = {**os.environ, "TMPDIR": folder}
    return subprocess.Popen([sys.executable, str(script), *arguments], env=env)


async def measure(load: Load, pid: int, enough: Callable[[], object], *, streams: int, readers: int) -> None:
    """Print a line for each load."""
    while True:
        try:
            await load.open(request("GET", "/livez"), b"200 OK")
            break
        except OSError:
            await asyncio.sleep(0.1)
    print(f"idle server: {memory(pid, 'VmRSS'):.0f} MB", flush=True)
    if streams:
        highest = await load.streams(streams, pid, enough)
        print(f"{streams} answers at once: {highest:.0f} MB at the highest", flush=True)
    if readers:
        now, share = await load.waiting(readers, pid)
        print(f"{readers} readers that wait: {now:.0f} MB, {share:.0%} of a core", flush=True)


def main() -> None:
    """Start a model and a server for each load, and stop them in the end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--readers", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=300, help="after which time it gives up")
    parser.add_argument("--model", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.model:
        asyncio.run(serve_model(asked.model))
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each connection is an open file, at both ends
    for streams, readers in ((asked.streams, 0), (0, asked.readers)):
        with tempfile.TemporaryDirectory() as folder:
            model, port = free_port(), free_port()
            programs = [start(Path(__file__), "--model", str(model), folder=folder)]
            enough = partial(programs[0].send_signal, signal.SIGUSR1)
            try:
                address = f"http://127.0.0.1:{model}/v1"
                server = start(
                    HERE / "serve_program.py", "--port", str(port), "--llm", address, "--model", "any",
                    folder=folder,
                )  # fmt: skip
                programs.append(server)
                work = measure(Load(port), server.pid, enough, streams=streams, readers=readers)
                asyncio.run(asyncio.wait_for(work, asked.seconds))
            finally:
                for program in programs:
                    program.send_signal(signal.SIGTERM)
                for program in programs:
                    program.wait(60)


if __name__ == "__main__":
    main()
