"""How many functions a server calls for a streamed chunk and for a request, which no neighbour changes.

    python benchmarks/bench_serving_calls.py [--top 40] [--store URL]

Server, model and reader are threads of one process. The model sends a chunk, its own write on a real socket,
when the reader has got the one before: so each chunk is one read, one event and one write, however busy the
machine is. Calls of Python functions (each resumption of a coroutine or generator counts) and of C functions
are those of the event loop, and separately those of all other threads of the server. A chunk is the
difference between answers of many and few chunks; a request is what is left of an answer without its chunks.
"""

from __future__ import annotations

import argparse
import json
import socket
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_server import LocalAccess, background, create_server
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "a-token-of-the-benchmark"
FEW, MANY = 20, 220
WARM, ROUNDS = 5, 5


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'c', 'model': 'm', 'choices': [choice]})}\n\n".encode()


class Model:
    """An OpenAI-compatible server that waits for the reader before each chunk."""

    def __init__(self) -> None:
        self.chunks = FEW
        self.read = threading.Semaphore(0)
        self.burst = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True, name="model").start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._answer, args=(connection,), daemon=True, name="model").start()

    def _answer(self, connection: socket.socket) -> None:
        while self._read_request(connection):
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            connection.sendall(head)
            words = [event({"content": f"tok{number} "}) for number in range(self.chunks)]
            if self.burst:
                connection.sendall(b"".join(map(_http_chunk, words)))
            else:
                for word in words:
                    connection.sendall(_http_chunk(word))
                    self.read.acquire()
            usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": self.chunks}}
            end = event({}, "stop") + f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode()
            connection.sendall(_http_chunk(end) + b"0\r\n\r\n")

    def _read_request(self, connection: socket.socket) -> bool:
        received = b""
        while b"\r\n\r\n" not in received:
            part = connection.recv(65536)
            if not part:
                return False
            received += part
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"ength:" in line)
        while len(body) < length:
            body += connection.recv(65536)
        return True


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Calls:
    """Counts calls by function, of the loop and of other threads."""

    def __init__(self) -> None:
        self.on = False
        self.loop: Counter[str] = Counter()
        self.workers: Counter[str] = Counter()
        self.hand_overs = 0

    def note(self, frame: Any, kind: str, argument: Any) -> None:
        if not self.on or kind not in ("call", "c_call"):
            return
        thread = threading.current_thread().name
        if thread.startswith(("model", "MainThread")):
            return
        if kind == "call":
            code = frame.f_code
            name = f"{Path(code.co_filename).parent.name}/{Path(code.co_filename).name}:{code.co_qualname}"
        else:
            name = f"C {getattr(argument, '__qualname__', argument)} <- {frame.f_code.co_qualname}"
        if name == "io/workers.py:run_in_worker":
            self.hand_overs += 1
        (self.loop if thread == "server" else self.workers)[name] += 1


@dataclass(frozen=True)
class Measured:
    """The calls of a request, and how often work was handed to a thread."""

    loop: Counter[str]
    workers: Counter[str]
    hand_overs: int

    def __sub__(self, other: Measured) -> Measured:
        return Measured(
            _minus(self.loop, other.loop),
            _minus(self.workers, other.workers),
            self.hand_overs - other.hand_overs,
        )

    def __truediv__(self, count: float) -> Measured:
        return Measured(_share(self.loop, count), _share(self.workers, count), self.hand_overs)


def _share(one: Counter[str], count: float) -> Counter[str]:
    return Counter({name: number / count for name, number in one.items()})


def _minus(one: Counter[str], other: Counter[str]) -> Counter[str]:
    left = one.copy()
    left.subtract(other)
    return left


class Reader:
    """Asks the server over a plain socket, and tells the model of each text that came."""

    def __init__(self, url: str, model: Model) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._model = model

    def new_session(self) -> str:
        answer = self._send("POST", "/v1/sessions", {}, "application/json")
        return str(json.loads(b"".join(answer).partition(b"\r\n\r\n")[2])["id"])

    def ask(self, session_id: str) -> int:
        """Ask something, and return how many texts came."""
        frames, rest = 0, b""
        for data in self._send(
            "POST", f"/v1/sessions/{session_id}/runs", {"text": "Hi"}, "text/event-stream"
        ):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.startswith(b"data: ") and b'"type":"text"' in line:
                    frames += 1
                    self._model.read.release(line.count(b"tok"))
        return frames

    def _send(self, method: str, path: str, body: dict[str, Any], accept: str) -> Iterator[bytes]:
        data = json.dumps(body).encode()
        with socket.create_connection((self._host, self._port)) as connection:
            connection.sendall(
                f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n"
                f"content-type: application/json\r\naccept: {accept}\r\ncontent-length: {len(data)}\r\n"
                "connection: close\r\n\r\n".encode()
                + data
            )
            while part := connection.recv(65536):
                yield part


@contextmanager
def serving(model: Model, calls: Calls, store: str) -> Iterator[str]:
    config = {
        "agents": {"a": {"model": "m", "system_prompt": "You are a helpful assistant."}},
        "models": {"m": {"provider": "openai_compatible", "model": "any"}},
        "plugins": {"openai_compatible": {"base_url": model.url, "api_key": "any"}},
    }
    with tempfile.TemporaryDirectory() as folder:
        where = f"sqlite:///{folder}/app.db" if store == "file" else store
        threading.setprofile(calls.note)
        plugins = [OpenAICompatibleProvider]
        with (
            AgentApplication(
                config, store=where, assets=Path(folder) / "assets", plugins=plugins, installed=False
            ) as app,
            background(create_server(app, LocalAccess(TOKEN))) as url,
        ):
            yield url
            threading.setprofile(None)


def measure(reader: Reader, model: Model, calls: Calls, chunks: int) -> Measured:
    """Return what the cheapest of several requests took: what a timer does besides is not in it."""
    model.chunks = chunks
    measured = []
    for _ in range(ROUNDS):
        session_id = reader.new_session()
        calls.loop, calls.workers, calls.hand_overs = Counter(), Counter(), 0
        calls.on = True
        frames = reader.ask(session_id)
        calls.on = False
        assert model.burst or frames == chunks, f"{frames} frames of {chunks} chunks"
        measured.append(Measured(calls.loop, calls.workers, calls.hand_overs))
    return min(measured, key=lambda one: one.loop.total() + one.workers.total())


def show(title: str, measured: Measured, top: int) -> None:
    for where, counted in (("loop", measured.loop), ("other threads", measured.workers)):
        python = sum(count for name, count in counted.items() if not name.startswith("C "))
        print(f"{title + ', ' + where:40} {counted.total():8.1f} calls, {python:8.1f} of Python functions")
        for name, count in counted.most_common(top):
            print(f"    {count:8.2f}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--top", type=int, default=0, help="show the functions that are called most")
    parser.add_argument("--store", default="file", help="another store than a SQLite file")
    asked = parser.parse_args()
    model, calls = Model(), Calls()
    with serving(model, calls, asked.store) as url:
        reader = Reader(url, model)
        for _ in range(WARM):
            reader.ask(reader.new_session())
        few, many = (measure(reader, model, calls, chunks) for chunks in (FEW, MANY))
        chunk = (many - few) / (MANY - FEW)
        show("a paced chunk", chunk, asked.top)
        show("a request without its chunks", few - chunk / (1 / FEW), asked.top)
        print(f"{'hand-overs to threads of a request':40} {few.hand_overs:8.1f}")
        model.burst = True
        show("a request with 200 chunks in one write", measure(reader, model, calls, 200), 0)


if __name__ == "__main__":
    main()
