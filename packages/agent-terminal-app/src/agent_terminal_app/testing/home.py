"""A person's home and project, with the settings of one model server, and chats and servers in them.

A server can be killed, as if its machine had lost its power.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import httpx2

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

AGENT = [sys.executable, "-m", "agent_terminal_app"]
SETTINGS = """
model = "openai_compatible:scripted-model"
[plugins.openai_compatible]
base_url = "{url}/v1"
api_key = "env:SCRIPTED_KEY"
[plugins.session_title]
title_model = false
"""
_KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "COVERAGE_PROCESS_START")


class Home:
    """A home in a folder of its own.

    Args:
        folder: Where it is; made if it is not there.
        url: The address of a server that speaks Chat Completions.

    Attributes:
        project: The folder that chats run in.
        environment: The variables that programs in it have.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        own = {"HOME": str(folder), "AGENT_KEYRING": "off", "SCRIPTED_KEY": "secret", "SHELL": "/bin/sh"}
        self.environment = {**kept, **own, "TERM": "xterm-256color"}
        self.set(SETTINGS.format(url=url))

    @property
    def settings(self) -> Path:
        """The file of the person's settings."""
        return self.folder / ".config" / "agent" / "config.toml"

    def set(self, text: str) -> None:
        """Add lines to the settings."""
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        before = self.settings.read_text() if self.settings.exists() else ""
        self.settings.write_text(before + text)

    def chat(self, *options: str, columns: int = 100, rows: int = 30) -> Terminal:
        """Return a chat that waits for words."""
        terminal = Terminal(
            [*AGENT, "chat", *options],
            environment=self.environment,
            folder=self.project,
            columns=columns,
            rows=rows,
        )
        terminal.expect_line("ready")
        return terminal

    @contextmanager
    def serve(self, *options: str) -> Iterator[str]:
        """Serve in a process of its own; give the link that logs a browser in."""
        with serving(self.environment, self.project, *options) as link:
            yield link

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `agent`, and return how it ended and what it printed."""
        return subprocess.run(  # noqa: S603 - our own program
            [*AGENT, *arguments],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.project,
            check=False,
            timeout=120,
        )


@contextmanager
def serving(environment: Mapping[str, str], folder: Path, *options: str) -> Iterator[str]:
    """Run `agent serve` on a free port; give the link that logs a browser in.

    Raises:
        AssertionError: If it ends before it has printed one.
    """
    command = [*AGENT, "serve", "--port", "0", *options]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, env=dict(environment), cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            links = (re.search(r"http://\S+/login\?code=[^\s)]+", line) for line in process.stdout)
            link = next((found for found in links if found is not None), None)
            assert link is not None, "agent serve has ended without a link"
            yield link[0]
        finally:
            process.terminate()
            process.wait(90)


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


KITCHEN: Final = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("kitchen")


@server.tool()
def brew(leaves: str) -> str:
    """Brew tea."""
    return f"a cup of {leaves}"


server.run()
'''
