"""A person's home and project, empty but for the settings of one model server, and chats in them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
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
