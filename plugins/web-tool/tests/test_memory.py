"""A body of a gigabyte, plain and packed, costs no more memory than a small one."""

from __future__ import annotations

import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import asyncio

    from conftest import Sites

GIGABYTE = 2**30
BLOCK = b"all work and no play " * 3000
MOST_MEGABYTES = 60

CLIENT = """
import asyncio, resource, sys
from web_tool import WebTool

tool = WebTool()
state = tool.init({"web_allow_private": ["127.0.0.1"], "web_max_bytes": 2_000_000})
read = lambda path: asyncio.run(tool.execute_tool("fetch_url", {"url": sys.argv[1] + path}, state))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

assert read("/small")["success"]
before = peak()
result = read(sys.argv[2])
assert result["success"], result
assert "at least 2000000" in result["result"], result["result"][-300:]
print(peak() - before)
"""


async def plain(writer: asyncio.StreamWriter) -> None:
    writer.write(
        f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {GIGABYTE}\r\n\r\n".encode()
    )
    for _ in range(GIGABYTE // len(BLOCK)):
        writer.write(BLOCK)
        await writer.drain()


async def packed(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n")
    packer = zlib.compressobj(1, wbits=31)
    for _ in range(GIGABYTE // len(BLOCK)):
        writer.write(packer.compress(BLOCK))
        await writer.drain()
    writer.write(packer.flush())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is Linux's")
@pytest.mark.parametrize("path", ["/plain", "/packed"])
def test_a_gigabyte_is_left_where_it_is(path: str, serve: Sites) -> None:
    small = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>hello"
    site = serve({"/small": small, "/plain": plain, "/packed": packed})

    done = subprocess.run(
        [sys.executable, "-c", CLIENT, site.url, path], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_MEGABYTES
    site.wait_until_left()
