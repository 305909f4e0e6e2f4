"""Servers as real processes, and a plugin to reach them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_tools import McpTools
from mcp_tools.connection import Pace
from mcp_tools.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVERS = Path(__file__).parent / "servers"
PATIENCE = 60.0
Tools = list[dict[str, Any]]


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that only waits to be removed does not."""
    with suppress(OSError):
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - one line
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False


class World:
    """A plugin, its settings, and the files that it works with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plugin = McpTools(Pace(first=0.01, longest=0.05))
        self.servers: dict[str, dict[str, Any]] = {}
        self.sandbox = "off"
        self._processes: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def described(*names: str) -> Tools:
        """Return tools of these names, for a book."""
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return [{"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in names]

    @staticmethod
    def until(condition: Callable[[], bool]) -> None:
        """Wait until something is so, for as long as is bearable."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it did not come to that"
            time.sleep(0.01)

    @property
    def config(self) -> dict[str, Any]:
        return {"servers": self.servers, "pins": str(self.folder / "pins.json"), "sandbox": self.sandbox}

    @property
    def settings(self) -> Settings:
        return Settings.read(self.config)

    def book(self, name: str, tools: Tools, **more: Any) -> Path:
        """Write what a polite server offers."""
        path = self.folder / f"{name}.book"
        path.write_text(json.dumps({"tools": tools, **more}))
        return path

    def polite(self, name: str, tools: Tools, *, more: bool = False, **declared: Any) -> None:
        """Declare a server that is made with the SDK, over stdio."""
        book = self.book(name, tools, more=more)
        line = {"command": sys.executable, "args": [str(SERVERS / "polite.py"), str(book)]}
        self.servers[name] = {**line, "cwd": str(self.folder), **declared}

    def elsewhere(self, name: str, tools: Tools, *options: str, more: bool = False, **declared: Any) -> None:
        """Start a server that is made with the SDK, over HTTP, and declare it."""
        port_file = self.folder / f"{name}.port"
        port_file.unlink(missing_ok=True)
        line = [sys.executable, str(SERVERS / "polite.py"), str(self.book(name, tools, more=more))]
        self._processes.append(subprocess.Popen([*line, str(port_file), *options]))
        self.until(lambda: port_file.exists() and port_file.read_text() != "")
        self.servers[name] = {"url": f"http://127.0.0.1:{port_file.read_text()}/mcp", **declared}

    def rough(self, name: str, conduct: str = "", **declared: Any) -> None:
        """Declare a server that behaves badly, over stdio."""
        line = {"command": sys.executable, "args": ["-I", str(SERVERS / "rough.py"), conduct or "well"]}
        self.servers[name] = {**line, "cwd": str(self.folder), **declared}

    def booked(self, name: str, tools: Tools) -> None:
        """Declare a server that lists what stands in its book and starts fast, over stdio."""
        self.rough(name, str(self.book(name, tools)))

    def approve(self, *names: str) -> None:
        """Approve servers as they are."""
        for name in names or self.servers:
            self.plugin.approve(name, self.config)

    def act(self, action: str, **params: Any) -> dict[str, Any]:
        """Run one of the plugin's actions."""
        session: Any = None
        return self.plugin.execute_action(action, session, [], params, {"config": self.config})

    def status(self, name: str) -> dict[str, Any]:
        """Return how a server stands."""
        found: dict[str, Any] = next(one for one in self.act("status")["servers"] if one["server"] == name)
        return found

    def offered(self) -> list[str]:
        """Return the names of the tools that a model sees."""
        return [schema["name"] for schema in self.plugin.toolbox(self.settings).get_tool_schemas()]

    def stream(self, tool: str, *, cancellation: Any = None, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Call a tool."""
        return self.plugin.toolbox(self.settings).stream_tool(tool, arguments, cancellation=cancellation)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its result."""
        return list(self.stream(tool, **arguments))[-1]

    def close(self) -> None:
        """End the plugin, and every server that was started here."""
        self.plugin.close()
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def new_world() -> type[World]:
    """Return the class, for fixtures of a wider scope."""
    return World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def gone() -> Callable[[int], None]:
    """Return a function that waits for the end of a process."""
    return lambda pid: World.until(lambda: not is_running(pid))
