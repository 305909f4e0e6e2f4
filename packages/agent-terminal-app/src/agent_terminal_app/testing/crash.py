"""For tests: a server of a person that is killed, as if its machine had lost its power."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_terminal_app.testing.home import Home

COMMAND = "echo $$ > pid.new; mv pid.new pid; exec sleep 1000"
"""A command that does not end by itself, and says in `pid` that it has begun."""


def kill_server(home: Home) -> None:
    """Kill the server that a person runs."""
    about = json.loads((home.folder / ".local" / "state" / "agent" / "server.json").read_text())
    os.kill(about["pid"], signal.SIGKILL)


@contextmanager
def ending_command(home: Home) -> Iterator[None]:
    """End `COMMAND` after the block: it outlives a server that is killed."""
    try:
        yield
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((home.project / "pid").read_text()), signal.SIGKILL)


def client_of(home: Home, link: str) -> httpx2.Client:
    """Return a client of the server that printed a link."""
    token = (home.folder / ".local" / "share" / "agent" / "server-token").read_text().strip()
    url = link.partition("/login")[0]
    return httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60)


def logged(client: httpx2.Client, session: str) -> str:
    """Return the log of a session as text."""
    answer = client.get(f"/v1/sessions/{session}/events", headers={"accept": "application/json"})
    return json.dumps(answer.json(), ensure_ascii=False)
