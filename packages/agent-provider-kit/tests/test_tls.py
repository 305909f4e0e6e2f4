"""Speaking HTTPS with a certificate made for the test; in processes of their own, since one context is
made per process."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_testing import ScriptedServer, json_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FETCH = """
import asyncio, logging, sys
from agent_provider_kit import HttpRequest, default_transport

logging.getLogger("asyncio").setLevel(logging.ERROR)  # not how long imports take

async def fetch(times):
    for _ in range(times):
        response = await default_transport().send(HttpRequest("GET", sys.argv[1], {}))
        print((await response.read()).decode())

for times in (2, 1):
    try:
        asyncio.run(fetch(times))
    except ConnectionError as error:
        print("ConnectionError", error)
"""


@pytest.fixture
def secure_server(certificate: Path) -> Iterator[ScriptedServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ScriptedServer(otherwise=json_reply({"safe": True}), tls=context) as server:
        yield server


def fetch(server: ScriptedServer, trusted: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    if trusted is not None:
        environment["SSL_CERT_FILE"] = str(trusted)
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", FETCH, server.url]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_trusted_server_is_spoken_to_and_left_in_order(
    secure_server: ScriptedServer, certificate: Path
) -> None:
    done = fetch(secure_server, certificate)

    assert (done.stdout, done.stderr) == ('{"safe":true}\n' * 3, "")
    assert secure_server.connections == 2  # one per loop


def test_a_server_that_nobody_vouches_for_is_refused(secure_server: ScriptedServer) -> None:
    done = fetch(secure_server, None)

    assert done.stdout.count("ConnectionError") == 2
    assert "CERTIFICATE_VERIFY_FAILED" in done.stdout
    assert secure_server.requests == []
