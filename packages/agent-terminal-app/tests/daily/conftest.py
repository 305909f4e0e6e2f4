"""Daily work in a terminal: a home, a project, a server that plays a script, and chats at several widths."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.home import Home
from agent_testing import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _plugins() -> None:
    for name in ("openai_compatible_provider", "files_tool", "shell_tool"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, server: ScriptedServer) -> Home:
    return Home(tmp_path / "home", server.url)
