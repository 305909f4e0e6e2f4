"""What a request costs on our transport, compared with the same request on aiohttp.

A server in a process of its own answers; CPU time of the client alone, in interleaved rounds, so that the
ratios hold on a machine that is busy with other work.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

from agent_provider_kit import HttpRequest
from agent_provider_kit.aiohttp_transport import AiohttpTransport
from agent_provider_kit.http_transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_provider_kit import Transport

ROUNDS, REQUESTS, CHUNKS = 7, 500, 2000
BODY = b'{"prompt": "%b"}' % (b"a" * 1000)
HEADERS = {"Content-Type": "application/json", "User-Agent": "bench", "Authorization": "Bearer sk-bench"}
EVENT = b'data: {"choices":[{"delta":{"content":"hello "}}]}\n\n'
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
ANSWER = b'{"choices":[{"message":{"role":"assistant","content":"%b"}}]}' % (b"b" * 600)
REPLY = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nserver: bench\r\nx-request-id: abcdefgh\r\n"
    b"date: Wed, 18 Nov 2026 10:00:00 GMT\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
)
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def serve(port: Any) -> None:
    """Answer until the process is ended; the path says how."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
            if b" /burst" in head:
                writer.write(STREAM + CHUNK * CHUNKS + b"0\r\n\r\n")
            elif b" /paced" in head:
                writer.write(STREAM)
                for _ in range(CHUNKS):
                    writer.write(CHUNK)
                    await asyncio.sleep(0.0002)
                writer.write(b"0\r\n\r\n")
            else:
                writer.write(REPLY)

    async def listen() -> None:
        server = await asyncio.start_server(converse, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


async def post(transport: Transport, url: str) -> None:
    for _ in range(REQUESTS):
        response = await transport.send(HttpRequest("POST", f"{url}/v1/chat/completions", HEADERS, BODY))
        response.headers.get("Content-Type")
        await response.read()


async def read_burst(transport: Transport, url: str) -> None:
    await read_stream(transport, f"{url}/burst")


async def read_paced(transport: Transport, url: str) -> None:
    await read_stream(transport, f"{url}/paced")


async def read_stream(transport: Transport, url: str) -> None:
    response = await transport.send(HttpRequest("POST", url, HEADERS, BODY))
    async for _ in response.chunks():
        pass


async def cost(work: Callable[[Transport, str], Awaitable[None]], transport: Transport, url: str) -> float:
    before = process_time()
    await work(transport, url)
    return process_time() - before


async def compare(url: str) -> None:
    ours, theirs = HttpTransport(), AiohttpTransport()
    print("| what | aiohttp | ours | ratio |\n|---|---|---|---|")
    for name, work, count in (
        ("a POST of 1 kB", post, REQUESTS),
        (f"a chunk, {CHUNKS} of them at once", read_burst, CHUNKS),
        (f"a chunk, {CHUNKS} one by one", read_paced, CHUNKS),
    ):
        for transport in (ours, theirs):
            await work(transport, url)
        rounds = [(await cost(work, theirs, url), await cost(work, ours, url)) for _ in range(ROUNDS)]
        floor, own = (median(each[side] for each in rounds) / count * 1e6 for side in (0, 1))
        ratio = median(own / floor for floor, own in rounds)
        print(f"| {name} | {floor:.2f} µs | {own:.2f} µs | {ratio:.2f} |")


if __name__ == "__main__":
    ports: Any = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(ports,), daemon=True)
    server.start()
    asyncio.run(compare(f"http://127.0.0.1:{ports.get()}"))
    server.terminate()
    server.join()
