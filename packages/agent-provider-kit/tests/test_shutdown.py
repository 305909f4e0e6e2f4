"""Nothing is left open: programs that use the transport in every way end without a warning."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agent_testing import ScriptedServer, chat_reply

PROGRAMS = {
    "a loop that ends": """
async def main():
    await fetch()

asyncio.run(main())
""",
    "several loops one after the other": """
async def main():
    await asyncio.gather(fetch(), fetch(), fetch())

asyncio.run(main())
asyncio.run(main())
""",
    "a caller without a loop": """
run_awaitable(fetch)
run_awaitable(fetch)
""",
    "both kinds, and threads": """
threads = [threading.Thread(target=lambda: asyncio.run(fetch())) for _ in range(4)]
for thread in threads:
    thread.start()
run_awaitable(fetch)
for thread in threads:
    thread.join()
""",
    "a reply that is not read to its end": """
async def main():
    response = await send()
    async with aclosing(response.chunks()) as pieces:
        async for piece in pieces:
            break

asyncio.run(main())
""",
    "a reply that is only looked at": """
async def main():
    response = await send()
    response.close()

asyncio.run(main())
""",
    "a reply that is dropped": """
async def main():
    response = await send()
    async for piece in response.chunks():
        break

asyncio.run(main())
""",
    "a loop that is closed by hand": """
loop = asyncio.new_event_loop()
loop.run_until_complete(fetch())
loop.run_until_complete(loop.shutdown_asyncgens())
loop.close()
""",
}
BEGINNING = """
import asyncio, gc, logging, sys, threading
from contextlib import aclosing
from agent_core.io import run_awaitable
from agent_provider_kit import HttpRequest, default_transport

logging.getLogger("asyncio").setLevel(logging.ERROR)  # not how long imports take

async def send():
    return await default_transport().send(HttpRequest("POST", sys.argv[1], {}, b'{"stream": true}'))

async def fetch():
    return await (await send()).read()
"""


# One process runs all of them, each followed by a collection; the last one ends with the process.
ALL = "\n".join(f"{program}\ngc.collect()" for program in PROGRAMS.values())
ALONE = ["a caller without a loop", "both kinds, and threads"]


@pytest.mark.parametrize("program", [ALL, *map(PROGRAMS.get, ALONE)], ids=["all of them", *ALONE])
def test_nothing_is_left_open_at_the_end_of(program: str) -> None:
    with ScriptedServer(otherwise=chat_reply("One two three")) as server:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-X", "dev", "-W", "error", "-c", BEGINNING + program, server.url]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        server.wait_until_closed()

    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert server.requests
